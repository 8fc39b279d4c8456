"""Ctrl-C: what was answered is saved, the message says how to go on, and going on ends where it
would have ended.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time

import parts
import pytest
from runs import begin, edit, labels, state, tailor

from tailor.models.plain_backbones import Pixels


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
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
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


# In a process of its own: after two pieces of the pool the backbone stays inside torch for good, as
# a slow network does for long; a file says that it is there.
SLOW_BACKBONE = """
import sys
from pathlib import Path

note, *command = sys.argv[1:]

import torch
from tailor.models.plain_backbones import Pixels

embed, pieces = Pixels.embed, []

def slow(self, examples):
    if len(pieces) == 2:
        Path(note).write_text("stuck")
        while True:
            torch.ones(300, 300) @ torch.ones(300, 300)
    pieces.append(len(examples))
    return embed(self, examples)

Pixels.embed = slow
sys.argv[1:] = command
from tailor.cli import main
main()
"""


def begin_slow(note, *command):
    words = [sys.executable, "-c", SLOW_BACKBONE, str(note), *map(str, command)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("command", ["run", "ask", "predict", "label"])
def test_interrupted_while_the_pool_is_read_what_was_read_is_kept(
    copy, tmp_path, monkeypatch, command
):
    if command == "label":
        parts.need("labelling page")
    run = copy / "run"
    note = tmp_path / "note"
    model = tmp_path / "model"
    if command == "predict":
        tailor("train", model, "--run", run)
    else:
        for name in ("run.db", "run.db.head"):
            (run / name).unlink()
    shutil.rmtree(run / "cache")
    words = {
        "run": ("run", "--run", run),
        "ask": ("ask", "--run", run, "--out", tmp_path / "ask.csv"),
        "predict": ("predict", model, "--run", run, "--out", tmp_path / "p.csv"),
        "label": ("label", run, "--no-open", "--port", 0),
    }[command]
    child = begin_slow(note, *words)
    try:
        until(lambda: note.exists() or child.poll() is not None)
        assert child.poll() is None, child.stderr.read()
        child.send_signal(signal.SIGINT)
        _, stderr = child.communicate(timeout=300)
    finally:
        child.kill()
    assert child.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "terminate" not in stderr
    embed = Pixels.embed
    pictures_read = []

    def counted(self, examples):
        pictures_read.extend(examples)
        return embed(self, examples)

    monkeypatch.setattr(Pixels, "embed", counted)
    tailor("run", "--run", run, "--rounds", 2)
    # two pieces were there, with the picture that can't be read
    assert len(pictures_read) == 150 - 2 * 64


def until(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)
