"""The commands of tailor_experiments, added to `tailor` through entry points."""
