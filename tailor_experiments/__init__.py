"""Comparing algorithms: datasets, experiments, regret simulations and speed measurements. The core
never imports it.
"""
