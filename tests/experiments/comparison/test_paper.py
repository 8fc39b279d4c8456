"""The paper's settings from their official files to rows, and the commands that run them."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from dataclasses import replace

import official_files as files
import pytest
from in_process import main_here

from tailor_experiments.comparison.paper import paper_experiment
from tailor_experiments.comparison.rows import load_rows
from tailor_experiments.comparison.run import prepare
from tailor_experiments.comparison.trial import Trial
from tailor_experiments.datasets import PAPER

QUICK = (
    "--batch",
    6,
    "--rounds",
    1,
    "--trials",
    1,
    "--weights",
    "scratch",
    "--device",
    "cpu",
    "--workers",
    1,
)


@pytest.mark.parametrize(
    ("name", "write", "metric", "single"),
    [
        ("cifar10-2", files.write_cifar10, "balanced accuracy", "galaxy alone"),
        ("celeba", lambda folder: files.write_celeba(folder, n=30), "mAP", "emal alone"),
    ],
)
def test_from_the_command_line(name, write, metric, single, tmp_path):
    write(tmp_path / "data")
    out = tmp_path / "out"
    only = ("--only", "TAILOR", "--only", single)
    done = main_here(
        "bench",
        "paper",
        name,
        "--data",
        tmp_path / "data",
        *QUICK,
        *only,
        "--out",
        out,
        "--cache",
        tmp_path / "cache",
    )
    assert done.returncode == 0, done.stderr
    assert f"4 rows in {out}" in done.stdout
    assert not (out / "cache").exists()
    rows = load_rows(out)
    assert {(r["contender"], r["round"], r["labels"]) for r in rows} == {
        (contender, number, 6 * number + 6) for contender in ("TAILOR", single) for number in (0, 1)
    }
    assert {(r["data"], r["metric"]) for r in rows} == {(name.partition("-")[0], metric)}


def test_progress_shows_the_time_left(toml, tmp_path):
    """On a terminal: a bar for all trials, with what is left of the time."""
    ours, theirs = pty.openpty()
    words = ["run", str(toml), "--out", str(tmp_path / "out"), "--only", "random", "--workers", "1"]
    command = [sys.executable, "-m", "tailor", "bench", *words]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert child.wait(180) == 0, shown.decode()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search(r"all trials +\S+ +\d+/8 .*\d:\d\d:\d\d", text), text[-2000:]


def test_run_takes_another_place_of_the_data(tmp_path, monkeypatch):
    files.write_fashion(tmp_path / "there", n=40)
    (tmp_path / "e.toml").write_text(
        '[experiment]\nname = "f"\n[data]\nname = "fashion-2"\npath = "nowhere"\n'
        '[model]\nname = "probe(steps=10)"\nbackbone = "pixels(size=8, grey=true)"\ndevice = '
        '"cpu"\n'
    )
    words = (
        "--batch",
        5,
        "--rounds",
        1,
        "--trials",
        1,
        "--only",
        "random",
        "--workers",
        1,
        "--out",
        tmp_path / "out",
    )
    done = main_here("bench", "run", tmp_path / "e.toml", *words)
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    monkeypatch.chdir(tmp_path)
    done = main_here("bench", "run", tmp_path / "e.toml", "--data", "there", *words)
    assert done.returncode == 0, done.stderr
    assert [r["labels"] for r in load_rows(tmp_path / "out")] == [5, 10]


WRITERS = {
    "coco": files.write_coco,
    "voc": files.write_voc,
    "cars": files.write_cars,
    "imagenet": files.write_imagenet,
    "kuzushiji49": files.write_kuzushiji,
    "caltech256": files.write_caltech,
    "cifar100-10": files.write_cifar100,
    "svhn-2": files.write_svhn,
    "cifar10-2": files.write_cifar10,
    "celeba": files.write_celeba,
}


@pytest.mark.filterwarnings("ignore::tailor.models.base.Notice")
@pytest.mark.parametrize("name", PAPER)
def test_every_setting_goes_from_its_files_to_rows(name, tmp_path):
    """With a small network and one label a round: of some there are only three pictures."""
    WRITERS[name](tmp_path / "data")
    found = paper_experiment(
        name, str(tmp_path / "data"), trials=1, device="cpu", weights="scratch", network="small-cnn"
    )
    found = replace(found, model={**found.model, "size": 16, "epochs": 1})
    full = prepare(found.changed(batch=1, rounds=1), tmp_path / "out", only=["TAILOR"])
    rows = Trial(full, full.contenders[0], 0, tmp_path / "out").run()
    assert [r["labels"] for r in rows] == [1, 2]
    assert {r["task"] for r in rows} == {"multi-label" if PAPER[name].multilabel else "multi-class"}
