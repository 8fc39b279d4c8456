"""The small experiment's rows, made once."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "datasets"))  # its writers of official files

from digits_experiment import SMALL, TOML, run_here

from tailor_experiments.comparison.experiment import Contender
from tailor_experiments.comparison.gather import load
from tailor_experiments.comparison.report import write_report


@pytest.fixture
def toml(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(TOML)
    return path


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """(folder, rows) of the small experiment, never interrupted."""
    out = tmp_path_factory.mktemp("whole")
    return out, run_here(SMALL, out)


@pytest.fixture(scope="session")
def multilabel(tmp_path_factory):
    out = tmp_path_factory.mktemp("multilabel")
    contenders = (
        Contender("TAILOR"),
        Contender(
            "TAILOR, wide", "tailor", ("emal", "uncertainty", "galaxy", "most-likely-positive")
        ),
        Contender("random", "random-meta", ("random",)),
    )
    data = {"name": "digits-multilabel", "options": {}}
    return out, run_here(replace(SMALL, name="sayings", data=data, contenders=contenders), out)


@pytest.fixture(scope="session")
def drawn(whole, multilabel, tmp_path_factory):
    """The folder of a report of both, drawn in this process. Tests that read it are of the group
    "drawn", so that it is drawn once.
    """
    out = tmp_path_factory.mktemp("drawn")
    write_report(load(whole[0], multilabel[0]), out)
    return out
