"""What a round will cost in time and memory, measured on small pools before it is run."""
