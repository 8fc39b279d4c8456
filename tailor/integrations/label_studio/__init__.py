"""Label Studio as the place where people answer: batches go there as tasks, annotations come back
as they are made.
"""
