"""Ctrl-C: what was answered is saved, the message says how to go on, and going on ends where it would have ended."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys

import pytest
from runs import begin, edit, labels, state, tailor


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    run = begin(folder, batch=10)
    edit(run, rounds=4)
    fresh = shutil.copytree(folder, tmp_path_factory.mktemp("fresh") / "home") / "run"
    tailor("run", "--run", run)
    return fresh, labels(run)


@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupted_run_goes_on(whole, tmp_path, after):
    fresh, expected = whole
    run = shutil.copytree(fresh.parent, tmp_path / "home") / "run"
    child = subprocess.Popen(
        [sys.executable, "-m", "tailor", "run", "--run", str(run)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        for _ in range(after):
            line = child.stderr.readline()
            assert line.startswith("round ")
        child.send_signal(signal.SIGINT)
        stdout, stderr = child.communicate(timeout=180)
    finally:
        child.kill()
    assert child.returncode == 130, stderr
    assert stdout == ""
    assert "everything answered is saved" in stderr
    assert f"Go on with: tailor run --run {run}" in stderr
    assert "Traceback" not in stderr
    assert 10 * after <= state(run)["answered"] < 50
    assert set(labels(run)) <= set(expected)
    tailor("run", "--run", run)
    assert labels(run) == expected
