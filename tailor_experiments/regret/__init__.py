"""Simulated regret of the selectors, and what the theory says of it."""
