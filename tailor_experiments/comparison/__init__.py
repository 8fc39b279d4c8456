"""Experiments: contenders on one dataset over several trials, their rows, statistics and report."""

from __future__ import annotations

from tailor_experiments.comparison.config import read
from tailor_experiments.comparison.experiment import Contender, Experiment, default_contenders
from tailor_experiments.comparison.rows import load_rows
from tailor_experiments.comparison.run import run

__all__ = [
    "Contender",
    "Experiment",
    "default_contenders",
    "load_rows",
    "read",
    "run",
]
