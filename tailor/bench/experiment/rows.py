"""Rows on disk: one JSON object a line, each line whole or not there."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tailor.errors import InputError

ROWS, PACKED, RUNS = "rows.jsonl", "rows.jsonl.gz", "runs"
#: What differs between two runs of the same trial.
INCIDENTAL = ("seconds", "peak_mib", "device_peak_mib", "versions", "resumed")
Row = dict[str, Any]


def read_rows(path: Path) -> list[Row]:
    """The whole lines of a file; none where there is no file."""
    if not path.exists():
        return []
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = data.decode().split("\n")[:-1]  # what follows the last newline was cut off in writing
        return [json.loads(line) for line in lines]
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{path} is damaged: {error}; delete the line, or the folder to run the trial anew") from error


class RowFile:
    """A trial's rows: appended one at a time, flushed to disk, each round once."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, read_rows(path)
        if path.exists():
            data = path.read_bytes()
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                os.truncate(path, whole)

    def __len__(self) -> int:
        return len(self.rows)

    def append(self, row: Row) -> None:
        if row["round"] != len(self.rows):
            raise AssertionError(f"row of round {row['round']} where that of round {len(self.rows)} is due")
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.rows.append(row)


def load_rows(out: Path) -> list[Row]:
    """All rows of a results folder: those of its trials, or where these are gone, its rows.jsonl, gzipped or not."""
    found = [row for path in sorted((out / RUNS).glob(f"*/{ROWS}")) for row in read_rows(path)]
    found = found or read_rows(out / ROWS) or read_rows(out / PACKED)
    if not found:
        raise InputError(f"no rows in {out}: give the folder that `tailor bench run` wrote to")
    return found


def collect(out: Path) -> Path:
    """All trials' rows in one file, which can be kept without them."""
    aside = out / f"{ROWS}.tmp"
    aside.write_text("".join(json.dumps(row) + "\n" for row in load_rows(out)), encoding="utf-8")
    os.replace(aside, out / ROWS)
    return out / ROWS


def essence(rows: Sequence[Row]) -> list[Row]:
    """Rows without what differs between two runs of the same trial, in order."""
    bare = [{k: v for k, v in row.items() if k not in INCIDENTAL} for row in rows]
    return sorted(bare, key=lambda r: (r["experiment"], r["contender"], r["seed"], r["round"]))
