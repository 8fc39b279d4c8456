"""Runs for the commands: digits as pictures in a folder per class, and as vectors with several
labels.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from in_process import main_here
from PIL import Image
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from tailor.cli.app import app

NAMES = {0: "zero [0]", 1: "one", 2: "two", 3: "three"}
BROKEN = "one/broken.png"
DIGITS = load_digits()
QUICK = ("--model", "probe(steps=40)")


def tailor(*words, code=0):
    """A command in this process; what it said on standard output."""
    result = CliRunner().invoke(app, [str(w) for w in words])
    if code == 0 and result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


def python_m(*words, **options):
    """A command in a process of its own."""
    environment = os.environ | {"COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "tailor", *map(str, words)],
        capture_output=True,
        text=True,
        env=environment,
        **options,
    )


def refused(*words, **options):
    """A command that must fail as every error does: status 2, one message on standard error, no
    traceback.

    With options of subprocess.run() in a process of its own.
    """
    result = python_m(*words, **options) if options else main_here(*words)
    assert result.returncode == 2, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("tailor: ")
    return result.stderr


def pictures(folder: Path, size: int = 150) -> Path:
    """Digits 0 to 3 as 8 x 8 PNGs, 0 ten times as frequent as the others, and one picture that
    can't be read.
    """
    digits = DIGITS
    common = np.flatnonzero(digits.target == 0)[: size // 2]
    rare = np.flatnonzero((digits.target > 0) & (digits.target < 4))[: size - 1 - len(common)]
    for at in [*common, *rare]:
        own = folder / NAMES[int(digits.target[at])]
        own.mkdir(parents=True, exist_ok=True)
        Image.fromarray((digits.images[at] * 15).astype(np.uint8)).save(own / f"{at:04d}.png")
    (folder / BROKEN).write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
    return folder


def several(digit: int) -> list[str]:
    found = {"even": digit % 2 == 0, "large": digit > 5, "round": digit in (0, 6, 8, 9)}
    return [name for name, there in found.items() if there]


def vectors(path: Path, size: int = 150) -> Path:
    """Digits as vectors in Parquet, with an id column and a list of labels each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    digits = DIGITS
    table = {
        "name": [f"digit-{i}" for i in range(size)],
        "embedding": [row.astype(np.float32).tolist() for row in digits.data[:size]],
        "labels": [several(int(d)) for d in digits.target[:size]],
    }
    pq.write_table(pa.table(table), path)
    return path


def edit(run: Path, **keys) -> None:
    """Set keys of the tailor.toml, each in the first section that has it."""
    path = run / "tailor.toml"
    lines = path.read_text().split("\n")
    for key, value in keys.items():
        places = [i for i, line in enumerate(lines) if line.startswith((f"{key} = ", f"# {key} ="))]
        assert places, key
        lines[places[0]] = f"{key} = {json.dumps(value)}"
    path.write_text("\n".join(lines))


def begin(folder: Path, *, batch: int = 20, **keys) -> Path:
    """A run on the pictures, not begun yet."""
    pool = folder / "pictures"
    if not pool.exists():
        pictures(pool)
    run = folder / "run"
    tailor(
        "init",
        pool,
        "--run",
        run,
        "--labels",
        "folder",
        *QUICK,
        "--backbone",
        "pixels(size=8)",
        "--batch",
        batch,
    )
    edit(run, rounds=2, holdout=0.2, device="cpu", **keys)
    return run


def begin_several(folder: Path, **keys) -> Path:
    run = folder / "several"
    pool = vectors(folder / "vectors.parquet")
    tailor(
        "init",
        pool,
        "--run",
        run,
        "--labels",
        "labels",
        *QUICK,
        "--backbone",
        "given",
        "--batch",
        20,
    )
    edit(run, key="name", rounds=2, holdout=0.2, device="cpu", **keys)
    return run


def state(run: Path) -> dict:
    return json.loads(tailor("status", "--run", run, "--json"))


def read_csv(path: Path) -> list[dict]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_csv(path: Path, rows: list[dict]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_jsonl(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def labels(run: Path) -> list[tuple]:
    """What is labelled, and how it came to be: all of it that doesn't hold a time."""
    from tailor.run.export import rows
    from tailor.run.project import Project

    return [
        tuple(str(row[k]) for k in row if k != "time") for row in rows(Project(run).run_state())
    ]


def truth(one: str):
    return one.split("/")[0] if "/" in one else several(int(DIGITS.target[int(one.split("-")[1])]))
