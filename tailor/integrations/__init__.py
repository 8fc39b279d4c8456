"""Other programs that a run works with."""
