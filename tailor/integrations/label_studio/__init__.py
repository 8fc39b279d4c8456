"""Label Studio as the place where people answer: each batch goes there as tasks, and annotations
come back as they are made.
"""
