"""What is believed about the labels that each arm finds, and how it is sampled."""
