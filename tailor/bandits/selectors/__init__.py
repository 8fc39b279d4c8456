"""One meta-selector a file: each plans which arm fills which slot, and learns from what the arms
found.
"""
