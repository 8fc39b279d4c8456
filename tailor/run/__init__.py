"""A durable run: what was asked and answered, kept in a store, and everything computed from it."""
