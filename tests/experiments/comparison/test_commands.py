"""The commands: killed, interrupted and gone on with; refused where they must be."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from digits_experiment import TOML, run_here
from in_process import main_here

from tailor_experiments.comparison.config import read
from tailor_experiments.comparison.rows import essence, load_rows, read_rows


def rows_there(out):
    return sum(len(read_rows(path)) for path in out.glob("runs/*/rows.jsonl"))


def start(toml, out, rows):
    """A run of its own, once it has written so many rows."""
    words = [
        sys.executable,
        "-m",
        "tailor",
        "bench",
        "run",
        str(toml),
        "--out",
        str(out),
        "--workers",
        "2",
    ]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ends = time.monotonic() + 180
    while rows_there(out) < rows and child.poll() is None and time.monotonic() < ends:
        time.sleep(0.01)
    assert child.poll() is None, child.stderr.read()
    assert rows_there(out) >= rows, "no rows within three minutes"
    return child


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    folder = tmp_path_factory.mktemp("complete")
    (folder / "e.toml").write_text(TOML)
    run_here(read(folder / "e.toml"), folder / "out")
    return folder / "out"


def test_an_ended_run_goes_on(complete, toml, tmp_path, capfd):
    """Killed, gone on with, interrupted, gone on with: the rows of a run that nobody touched."""
    out = tmp_path / "out"
    left = 0
    for end in (signal.SIGKILL, signal.SIGINT):
        child = start(toml, out, left + 2)
        child.send_signal(end)
        _, said = child.communicate(
            timeout=180
        )  # until the workers are gone too: they hold the pipes as well
        if end == signal.SIGINT:
            assert child.returncode == 130, said
            assert f"Go on with: tailor bench run {toml} --out {out}" in said
            assert "Traceback" not in said
        left = rows_there(out)
        assert 2 <= left < 24
    done = main_here("bench", "run", toml, "--out", out, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert capfd.readouterr().err == ""  # nor did the worker say anything
    assert "24 rows in" in done.stdout
    assert essence(load_rows(out)) == essence(load_rows(complete))


def test_running_again_changes_nothing(complete, toml):
    before = {p: p.read_bytes() for p in complete.glob("runs/*/rows.jsonl")}
    assert main_here("bench", "run", toml, "--out", complete).returncode == 0
    assert {p: p.read_bytes() for p in complete.glob("runs/*/rows.jsonl")} == before


def test_report_and_compare(complete, tmp_path):
    done = main_here(
        "bench",
        "report",
        complete,
        "--out",
        tmp_path,
        "--target",
        "0.5",
        "--smooth",
        "1",
        "--focus",
        "random",
        "--reach",
        "TAILOR",
    )
    assert done.returncode == 0, done.stderr
    assert "random minus" in done.stdout
    assert "Labels to reach TAILOR: the fewest labels" in " ".join(done.stdout.split())
    assert (tmp_path / "report.html").is_file()
    done = main_here("bench", "compare", complete, complete)
    assert done.returncode == 0, done.stderr
    assert "B minus A" in done.stdout
    done = main_here("bench", "report", complete, "--out", tmp_path, "--reach", "rondom")
    assert done.returncode == 2
    assert "rondom" in done.stderr


def test_wrong_input_is_refused(toml, tmp_path):
    toml.write_text(toml.read_text().replace("random-meta", "random-mete"))
    for words in (
        ("run", toml, "--out", tmp_path / "out"),
        ("run", tmp_path / "no.toml"),
        ("run", toml, "--track", "tensorbored"),
        ("report", tmp_path),
        ("run", toml, "--only", "rondom"),
        ("paper", "cifar10", "--data", tmp_path),
    ):
        done = main_here("bench", *words)
        assert done.returncode == 2, done.stdout
        assert done.stderr.startswith("tailor: ")
        assert "Traceback" not in done.stderr


def test_a_log_says_how_far_it_is(capsys, monkeypatch):
    """10 of 40 rows in 60 seconds, 4 of them there before: 30 more take 300."""
    from tailor_experiments.cli import trials

    now = 0.0
    monkeypatch.setattr(trials.time, "monotonic", lambda: now)
    clock = trials._Clock(4)
    now = 59.0
    clock.tell(9, 40)
    now = 60.0
    clock.tell(10, 40)
    clock.tell(11, 40)
    assert capsys.readouterr().err == "10 of 40 rows, about 5 min left\n"
