"""The selectors, one a file."""
