"""Rows on disk: one JSON object a line, each line whole or not there."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tailor.common.atomic_files import write_atomically
from tailor.errors import InputError

ROWS = "rows.jsonl"
PACKED = "rows.jsonl.gz"
RUNS = "runs"
#: What differs between two runs of the same trial.
INCIDENTAL = ("seconds", "peak_mib", "device_peak_mib", "versions", "resumed")
#: Without these a line is no row.
NEEDED = (
    "experiment",
    "data",
    "task",
    "metric",
    "contender",
    "selector",
    "families",
    "reward",
    "seed",
    "round",
    "rounds",
    "labels",
    "score",
    "pulls",
    "top_pulls",
    "seconds",
    "peak_mib",
    "versions",
    "config",
    "resumed",
)
Row = dict[str, Any]


def read_rows(path: Path) -> list[Row]:
    """The whole lines of a file, gzipped or not; none where there is no file."""
    if not path.exists():
        return []
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        lines = data.decode().split("\n")
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is damaged: {error}; {_remedy(path)}") from error
    lines.pop()  # what follows the last newline: nothing, or a row that was cut off in writing
    rows = []
    for number, line in enumerate(lines, 1):
        rows.append(_parse_row(line, path, number))
    return rows


def _parse_row(line: str, path: Path, number: int) -> Row:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{path}, line {number} is damaged: {error}; {_remedy(path)}") from error
    if not isinstance(row, dict):
        row = {}
    lacking = [key for key in NEEDED if key not in row]
    if lacking:
        keys = ", ".join(lacking)
        raise InputError(
            f"{path}, line {number} is no row of an experiment: it lacks {keys}; {_remedy(path)}"
        )
    return row


def _remedy(path: Path) -> str:
    if path.parent.parent.name == RUNS:
        return f"delete the folder {path.parent} to run that trial anew"
    return "put a whole copy in its place"


class RowFile:
    """A trial's rows: appended one at a time, flushed to disk, each round once.

    Raises InputError where the file holds other rounds than 0, 1, 2, ...
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = read_rows(path)
        rounds = [row["round"] for row in self.rows]
        if rounds != list(range(len(rounds))):
            raise InputError(
                f"{path} holds the rounds {rounds}, one after the other is due; {_remedy(path)}"
            )
        self._drop_cut_off_line()

    def _drop_cut_off_line(self) -> None:
        """A line that was cut off in writing would run into the next one."""
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        end_of_last_line = data.rfind(b"\n") + 1
        if end_of_last_line < len(data):
            os.truncate(self.path, end_of_last_line)

    def __len__(self) -> int:
        return len(self.rows)

    def append(self, row: Row) -> None:
        """Write the row of the next round; it is on disk when this returns."""
        due = len(self.rows)
        if row["round"] != due:
            raise AssertionError(f"row of round {row['round']} where that of round {due} is due")
        line = json.dumps(row) + "\n"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self.rows.append(row)


def load_rows(out: Path) -> list[Row]:
    """All rows of a results folder: those of its trials, and of trials that are gone what its
    rows.jsonl keeps, gzipped or not.
    """
    rows = []
    paths = (out / RUNS).glob(f"*/{ROWS}")
    for path in sorted(paths):
        rows += read_rows(path)
    trials = {trial_of(row) for row in rows}
    collected = read_rows(out / ROWS) or read_rows(out / PACKED)
    for row in collected:
        if trial_of(row) not in trials:
            rows.append(row)
    if not rows:
        raise InputError(f"no rows in {out}: give the folder that `tailor bench run` wrote to")
    return rows


def trial_of(row: Row) -> tuple[str, str, int]:
    """Experiment, contender and seed: the same for all rows of a trial, and for no others."""
    return row["experiment"], row["contender"], row["seed"]


def collect(out: Path) -> Path:
    """All trials' rows in one file, which can be kept without them -> its path."""
    lines = [json.dumps(row) + "\n" for row in load_rows(out)]
    write_atomically(out / ROWS, "".join(lines))
    return out / ROWS


def essence(rows: Sequence[Row]) -> list[Row]:
    """Rows without what differs between two runs of the same trial, in order."""
    lasting = []
    for row in rows:
        columns = {key: value for key, value in row.items() if key not in INCIDENTAL}
        lasting.append(columns)
    return sorted(lasting, key=lambda row: (*trial_of(row), row["round"]))
