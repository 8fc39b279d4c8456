"""Windows is refused with a sentence where a run would begin, and not before."""

from __future__ import annotations

import sys

import pytest

from tailor import Learner, MultiClass, TailorError
from tailor.cli import run_command
from tailor.storage import SqliteStore, open_store


@pytest.fixture
def on_windows(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")


@pytest.mark.usefixtures("on_windows")
def test_a_store_is_refused(tmp_path):
    for opened in (open_store, SqliteStore):
        with pytest.raises(
            TailorError, match=r"need Linux or macOS: .* fcntl, which Windows lacks"
        ):
            opened(tmp_path / "run.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("on_windows")
def test_a_command_is_refused(capsys):
    assert run_command() == 2
    assert "tailor: runs and commands need Linux or macOS" in capsys.readouterr().err


@pytest.mark.usefixtures("on_windows")
def test_the_package_is_not():
    learner = Learner(MultiClass(2), pool=9, strategies="random", batch=3)
    learner.tell([0, 1], [0, 1])
    assert learner.counts.tolist() == [1, 1]
