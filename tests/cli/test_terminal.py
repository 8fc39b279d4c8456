"""At a real terminal: progress bars, and file names that would steer it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest
from in_process import main_here
from PIL import Image
from runs import app, begin, edit

from tailor.cli.terminal import printable
from tailor_experiments.cli.demo import summary
from tailor_experiments.demo import DemoRow, DemoSetting


def at_terminal(*args, cwd):
    """(exit status, everything shown) of a command whose streams are a terminal."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "tailor", *map(str, args)]
    child = subprocess.Popen(command, cwd=cwd, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(leader)
    return child.wait(), shown.decode(errors="replace")


def test_bars_and_odd_names(tmp_path):
    rng = np.random.default_rng(0)
    for k, name in enumerate(["a", "b"]):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(12):
            picture = rng.integers(0, 100, (8, 8, 3)) + 100 * k
            Image.fromarray(picture.astype(np.uint8)).save(tmp_path / "photos" / name / f"{i}.png")
    (tmp_path / "photos" / "a" / "\x1b[31mred.png").write_bytes(b"no picture")
    how = ("--labels", "folder", "--backbone", "pixels", "--batch", 4)
    init = at_terminal("init", "photos", *how, "-r", "r", cwd=tmp_path)
    assert init[0] == 0, init[1]
    status, shown = at_terminal("run", "-r", "r", "--rounds", 2, cwd=tmp_path)
    assert status == 0, shown
    assert "Traceback" not in shown
    assert "\x1b[31mred" not in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert "8 labels of 25 examples" in plain
    assert "[31mred.png: not an image" in plain


def test_a_line_says_that_loops_are_compiled_and_only_then(tmp_path, monkeypatch):
    monkeypatch.setenv(
        "NUMBA_CACHE_DIR", str(tmp_path / "compiled")
    )  # as on a machine that never ran it
    run = begin(tmp_path, batch=10)
    edit(run, strategies=["confidence"])
    for expected in (1, 0):
        status, shown = at_terminal("run", "-r", run, "--rounds", 1 + expected, cwd=tmp_path)
        assert status == 0, shown
        assert shown.count("Compiling (once on this machine)") == expected


def test_printable():
    assert printable("plain ü 猫\n") == "plain ü 猫\n"
    assert "\x1b" not in printable("\x1b[31m\x07")


def test_one_seed_has_no_error():
    rows = [DemoRow("TAILOR", 0, 1, 40, 0.5, 3, 0.25)]
    (cell,) = list(summary(rows, DemoSetting(rounds=1, seeds=1)).columns[1].cells)[:1]
    assert cell == "0.500 ± –"


def test_help_shows_flags_without_a_type():
    from test_documented import commands
    from typer.testing import CliRunner

    for name, _ in commands():
        shown = CliRunner().invoke(app, [*name.split()[1:], "--help"]).output
        assert "--help" in shown, name
        assert "<bool>" not in shown, name
    assert "<bool>" not in CliRunner().invoke(app, ["--help"]).output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["st"], ["status"]),
        (["label-studio", "co"], ["connect"]),
        (["status", "--run", ""], ["first", "second"]),
        (["train", "model", "--run", "se"], ["second"]),
        (["label", "photos", "-r", "f"], ["first"]),
        (["plan", "--family", "gal"], ["galaxy", "galaxy-all"]),
    ],
)
def test_a_shell_completes_commands_runs_and_families(tmp_path, words, expected):
    for name in ("first", "second", "third"):
        (tmp_path / name).mkdir()
        if name != "third":
            (tmp_path / name / "tailor.toml").write_text("")
    line = " ".join(["tailor", *words])
    asked = {"_TAILOR_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    code = "import sys; sys.argv = ['tailor']; from tailor.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | asked,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == expected, done.stderr


def test_the_script_for_a_shell_is_shown(monkeypatch):
    from typer.testing import CliRunner

    # The shell is named here: where tests run in the background there is none to be found.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    shown = CliRunner().invoke(app, ["--show-completion", "bash"], prog_name="tailor").output
    assert "_TAILOR_COMPLETE=complete_bash" in shown


def test_the_last_line_of_the_demo_can_be_copied(tmp_path):
    """However long the folder's name, at 80 columns too."""
    out = tmp_path / ("long-" * 20)
    small = ("--seeds", 1, "--rounds", 1, "--batch", 10, "--classes", 2, "--workers", 1)
    done = main_here("demo", "--out", out, *small, columns=80)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last == f"tailor status --run {out / 'runs' / 'tailor-0'}"
    shown = main_here(*last.split()[1:])
    assert shown.returncode == 0, shown.stderr
