"""What checking costs: reading a million events with their chain of checksums, and without.

python benchmarks/replay.py [EVENTS] [IDS]     # one JSON line; SQLite, seconds of this process
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tailor.storage import Event, SqliteStore, sqlite
from tailor.storage.chain import ChainHead, StoredRow, ids_digest


def seconds(work: Callable[[], Any]) -> float:
    """Of this process on the processor: others may be busy beside it."""
    start = time.process_time()
    work()
    return time.process_time() - start


def read(path: Path) -> None:
    with SqliteStore(path, readonly=True) as store:
        for _ in store.events():
            pass


def unchecked(head: ChainHead, rows: list[StoredRow], place: object) -> ChainHead:
    """In the place of verify_rows(): takes rows as they are."""
    last = rows[-1]
    return ChainHead(last[0], last[5])


def main(events: int = 1_000_000, ids: int = 1_000_000) -> dict[str, float]:
    body = {"answers": [[123_456, [3]]], "skipped": [], "by": "ada"}
    names = [f"folder/{number // 1000}/picture-{number:08d}.jpg" for number in range(ids)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        joined = Event(1, 0.0, "examples", {"first": 0, "count": ids}, ids_digest(names))
        told = (Event(number, 0.5, "told", body) for number in range(2, events + 1))
        with SqliteStore(path) as store:
            store.restore(names, (event for part in ([joined], told) for event in part), int)
        checked_s = seconds(lambda: read(path))
        verify = sqlite.verify_rows
        sqlite.verify_rows = unchecked  # type: ignore[assignment]
        unchecked_s = seconds(lambda: read(path))
        sqlite.verify_rows = verify

        def write_again() -> None:
            with SqliteStore(path) as store:
                for _ in store.events():
                    pass
                store.append("told", body)

        return {
            "events": events,
            "ids": ids,
            "mib": round(path.stat().st_size / 2**20),
            "read_unchecked_s": round(unchecked_s, 2),
            "read_checked_s": round(checked_s, 2),
            "read_append_close_s": round(seconds(write_again), 2),
        }


if __name__ == "__main__":
    arguments = [int(word) for word in sys.argv[1:]]
    print(json.dumps(main(*arguments)))
