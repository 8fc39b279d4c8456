"""Experiments: contenders on one dataset over several trials, their rows, statistics and report."""

from __future__ import annotations

from tailor.bench.experiment.config import Contender, Experiment, default_contenders, read
from tailor.bench.experiment.rows import load_rows
from tailor.bench.experiment.run import run

__all__ = ["Contender", "Experiment", "default_contenders", "load_rows", "read", "run"]
