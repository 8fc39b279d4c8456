"""Choosing which examples to ask for: the learner, its rounds, and what they know of the pool."""
