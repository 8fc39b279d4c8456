"""What an acknowledged event costs: append, a million ids, reading again; SQLite and PostgreSQL.

python benchmarks/store.py [APPENDS] [IDS]      # one JSON line a store; PostgreSQL is started for
                                                it
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tailor.storage import Store, open_store
from tailor.testing.postgres import postgres_server


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(open_it: Callable[[], Store], appends: int, ids: list[str]) -> dict[str, float]:
    body = {"answers": [[123_456, [3]]], "skipped": [], "by": "ada"}
    with open_it() as store:
        for _ in range(50):
            store.append("told", body)
        waits = np.array([seconds(lambda: store.append("told", body)) for _ in range(appends)])
        adding = seconds(lambda: store.add_examples(ids))
        reading = seconds(store.examples)
        events = seconds(lambda: sum(1 for _ in store.events()))
    half, nearly, most = np.quantile(waits, [0.5, 0.99, 1.0]) * 1000
    return {
        "append_p50_ms": round(half, 3),
        "append_p99_ms": round(nearly, 3),
        "append_max_ms": round(most, 3),
        "appends_per_second": round(appends / waits.sum()),
        "add_ids_s": round(adding, 2),
        "read_ids_s": round(reading, 2),
        "read_events_s": round(events, 3),
    }


def main() -> None:
    appends, count = (
        int(word) for word in (sys.argv[1:] + ["2000", "1000000"][len(sys.argv) - 1 :])
    )
    ids = [f"folder/{i // 1000}/picture-{i:08d}.jpg" for i in range(count)]
    with tempfile.TemporaryDirectory() as folder, postgres_server() as server:
        for name, place in (("sqlite", Path(folder) / "run.db"), ("postgresql", server.url())):
            row = measure(lambda place=place: open_store(place), appends, ids)
            print(json.dumps({"store": name, "appends": appends, "ids": count, **row}), flush=True)


if __name__ == "__main__":
    main()
