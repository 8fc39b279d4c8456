"""`import tailor` is quick, and each part imports without what it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tailor

HEAVY = {"torch", "numba", "sklearn", "matplotlib", "scipy", "typer", "rich"}
WEB = {"fastapi", "pydantic", "sqlalchemy", "starlette", "uvicorn"}


def loaded_by(code, packages):
    """Which of the packages a new Python has loaded after running the code."""
    script = f"import sys\n{code}\nprint(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in process.stdout.split()}
    return loaded & packages


def test_import_tailor_loads_nothing_heavy():
    assert loaded_by("import tailor; dir(tailor)", HEAVY) == set()


def test_importing_the_learner_loads_nothing_heavy():
    """The algorithms import without their heavy tools: those come when an arm is opened."""
    code = "from tailor import Learner, MultiClass; Learner(MultiClass(2), 5)"
    assert loaded_by(code, HEAVY) <= {"numba", "scipy"}


@pytest.mark.parametrize(
    "module",
    [
        "tailor.selection.learner",
        "tailor.models",
        "tailor.run.session",
        "tailor_experiments.comparison",
        "tailor_experiments.datasets",
    ],
)
def test_algorithms_and_experiments_import_without_the_web(module):
    assert loaded_by(f"import {module}", WEB) == set()


def test_every_public_name_is_there():
    for name in tailor.__all__:
        assert getattr(tailor, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tailor.nothing
