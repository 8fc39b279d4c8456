"""Runs and model folders that version 0.1.0 wrote, before the package was rearranged: they open and
go on alike.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import pytest

from tailor.models.base import Notice
from tailor.run.export import rows
from tailor.run.project import Project
from tailor.run.upgrading import upgrade_run

WRITTEN = Path(__file__).parent / "written_before"


@pytest.fixture(params=["multiclass", "multilabel"])
def project(request, tmp_path):
    """A copy of a run with late, corrected, skipped and withdrawn answers, votes, and changes of
    its classes.
    """
    shutil.copytree(WRITTEN / request.param, tmp_path / "run")
    upgrade_run(tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)  # the classes were changed in the run
        yield Project(tmp_path / "run")


@pytest.fixture
def expected(project):
    return json.loads((project.folder / "expected.json").read_text())


def _renamed(row):
    """A row of version 0.1.0 in today's words: the hold-out was called the reserve."""
    words = {"reserve": "holdout"}
    arms = {"reserve": "hold-out"}
    renamed = {words.get(key, key): value for key, value in row.items()}
    return renamed | {"arm": arms.get(row["arm"], row["arm"])}


def test_the_exported_rows_are_the_same(project, expected):
    session = project.session()
    exported = [json.loads(json.dumps(row)) for row in rows(session.run_state)]
    assert exported == [_renamed(row) for row in expected["rows"]]


def test_the_next_questions_are_the_same(project, expected):
    session = project.session()
    assert session.ask(20).ids == expected["first"]
    one_class = ["cat"] if project.settings.kind == "multi-label" else "cat"
    session.tell({name: one_class for name in expected["first"]})
    assert session.ask(10).ids == expected["second"]


def test_the_model_folder_predicts(project):
    pool = project.pool()
    model = project.model(pool)
    model.load(project.folder / "model")
    model.prepare()
    probs = model.predict(range(5)).probs
    assert probs.shape == (5, 4)
