"""How good a run's model is, which labels are likely to be wrong, and when to stop."""
