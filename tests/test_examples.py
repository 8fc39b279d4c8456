"""The scripts and the notebook in examples/ run as they stand, and stay short."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest
from doc_blocks import Block, PageRunner

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
#: a line that each script prints, as far as it is the same on every machine
PRINTED = {
    "compare_algorithms.py": "contender          labels by class      balanced accuracy",
    "label_a_folder.py": "60 rows in labels.csv",
    "own_model.py": "accuracy 0.",
    "own_strategy.py": "labels by class: [",
    "simulate_annotators.py": "30% wrong answers: accuracy 0.",
}


@pytest.fixture(autouse=True)
def scratch_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "Agg")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_runs(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    assert PRINTED[script.name] in capsys.readouterr().out


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_is_stored_without_output(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    runner = PageRunner({})
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
            text = "".join(cell["source"]) + "\n"
            runner.run_python(Block(notebook, number, "python", "", text, ""))


def test_examples_are_short_and_listed():
    listed = (EXAMPLES / "README.md").read_text()
    assert len(SCRIPTS) == 5
    assert len(NOTEBOOKS) == 1
    for path in [*SCRIPTS, *NOTEBOOKS]:
        assert f"({path.name})" in listed
    for script in SCRIPTS:
        assert len(script.read_text().splitlines()) < 60, script.name
