"""Commands on a run from elsewhere: asked at a terminal, refused without one."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import parts
import pytest
from in_process import main_here

sys.path.insert(0, str(Path(__file__).parents[1] / "run"))

from hostile import stranger_run

from tailor.cli import NOT_TRUSTED

COMMANDS = {
    "status": ("status", "--run", "RUN"),
    "backup": ("backup", "RUN-copy", "--run", "RUN"),
    "check": ("check", "RUN"),
    "salvage": ("check", "RUN", "--salvage", "RUN-saved"),
    "upgrade": ("upgrade", "RUN"),
    "ask": ("ask", "--run", "RUN", "--out", "OUT.csv"),
    "tell": ("tell", "RUN/answers.csv", "--run", "RUN"),
    "run": ("run", "--run", "RUN"),
    "export": ("export", "OUT.csv", "--run", "RUN"),
    "train": ("train", "OUT", "--run", "RUN"),
    "predict": ("predict", "RUN/model", "--run", "RUN", "--out", "OUT.csv"),
    "plan": ("plan", "RUN"),
    "label": ("label", "RUN", "--no-open"),
    "label-studio": ("label-studio", "connect", "--run", "RUN", "--token", "x", "--project", "1"),
}


@pytest.fixture
def run(tmp_path):
    folder = stranger_run(tmp_path / "run", {"run": {"store": "../elsewhere.db"}})
    (folder / "answers.csv").write_text("id,label\n0,left\n")
    return folder


def words_of(command, run, tmp_path):
    words = (word.replace("RUN", str(run)) for word in COMMANDS[command])
    return [word.replace("OUT", str(tmp_path / "out")) for word in words]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_a_run_that_is_not_trusted(command, run, tmp_path):
    if command == "label":
        parts.need("labelling page")
    if command == "label-studio":
        parts.need("Label Studio")
    done = main_here(*words_of(command, run, tmp_path))
    assert done.returncode == NOT_TRUSTED, done.stderr
    assert f"write to {tmp_path / 'elsewhere.db'}" in done.stderr
    assert f"read {run / 'points.npy'}" in done.stderr
    assert f"tailor trust {run}" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_trust_lists_trusts_and_forgets(run, tmp_path):
    shown = main_here("trust", run, "--show")
    assert f"write to {tmp_path / 'elsewhere.db'}" in shown.stdout
    assert "not trusted with all of that" in shown.stdout
    assert main_here("status", "--run", run).returncode == NOT_TRUSTED
    assert "It is trusted with that." in main_here("trust", run).stdout
    assert main_here("status", "--run", run).returncode == 0
    main_here("trust", run, "--forget")
    assert main_here("status", "--run", run).returncode == NOT_TRUSTED
    assert main_here("status", "--run", run, "--trust").returncode == 0
    assert main_here("status", "--run", run).returncode == 0


def test_a_run_that_reaches_nothing_needs_no_trust(tmp_path):
    folder = stranger_run(tmp_path / "run")
    assert "needs no trust" in main_here("trust", folder).stdout
    assert main_here("status", "--run", folder).returncode == 0


def test_users_that_came_with_a_run_are_asked_about(tmp_path, monkeypatch):
    parts.need("labelling page")
    from tailor.run.trust import forget
    from tailor.web.users import Users

    folder = stranger_run(tmp_path / "run")
    Users(folder).add("mallory", "correct horse")
    forget(folder)  # they were made on another machine
    done = main_here("label", folder, "--no-open")
    assert done.returncode == NOT_TRUSTED
    assert "let in the users in web/users.json" in done.stderr
    # Nor are they trusted because one more is added.
    monkeypatch.setattr(sys, "stdin", io.StringIO("battery staple\n"))
    assert main_here("users", "add", "me", "--run", folder).returncode == 0
    assert main_here("label", folder, "--no-open").returncode == NOT_TRUSTED


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", NOT_TRUSTED)])
def test_at_a_terminal_it_is_asked(run, answer, status):
    said, returned = at_a_terminal(["status", "--run", str(run)], answer)
    assert "Trust it? [y/N]" in said
    assert "elsewhere.db" in said
    assert returned == status
    assert main_here("status", "--run", run).returncode == status


def at_a_terminal(words, answer):
    """What a command says at a terminal where its question gets this answer, and its status."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tailor", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"COLUMNS": "200"},
    )
    os.close(theirs)
    said = b""
    answered = False
    while True:
        ready, _, _ = select.select([ours], [], [], 120)
        assert ready, said
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux: the other end is closed
            break
        if not piece:
            break
        said += piece
        if b"[y/N]" in said and not answered:
            answered = True
            os.write(ours, f"{answer}\n".encode())
    os.close(ours)
    return said.decode(), process.wait()
