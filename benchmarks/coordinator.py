"""How long an annotator waits: next() and answer() of a coordinator, while it trains and
chooses in the background.

    python benchmarks/coordinator.py [--examples 100000] [--classes 10] [--people 1] [--think 0.2]
    [--labels 600] [--postgres]

Vectors of 64 numbers, batches of 100, the probe model; SQLite, or a PostgreSQL that is started for
it, in a temporary folder. Each simulated person looks at an example for --think seconds, on
average.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from tailor.annotation import Coordinator
from tailor.capacity.peak_memory import peak_mib
from tailor.run import config
from tailor.run.project import Project
from tailor.testing.postgres import postgres_server


class Crowd:
    """People who label until there are enough, and a page that polls."""

    def __init__(
        self, coordinator: Coordinator, truth: np.ndarray, think: float, labels: int
    ) -> None:
        self.coordinator = coordinator
        self.truth = truth
        self.think = think
        self.labels = labels
        self.times: dict[str, list[float]] = {"next": [], "answer": [], "both": [], "overview": []}
        self.training: list[float] = []  # of both, while the planner worked
        self.dry = 0
        self.over = threading.Event()

    def label(self, who: str) -> None:
        chance = random.Random(who)
        while not self.over.is_set():
            started = time.perf_counter()
            handed = self.coordinator.next(who, 2)
            taken = time.perf_counter()
            if not handed.items:
                self.dry += 1
                time.sleep(0.05)
                continue
            item = handed.items[0]
            time.sleep(chance.expovariate(1 / self.think) if self.think else 0)
            busy = self.coordinator.session.stage != "idle"
            begun = time.perf_counter()
            self.coordinator.answer(who, item.id, [str(self.truth[int(item.id)])])
            answered = time.perf_counter() - begun
            self.times["next"].append(taken - started)
            self.times["answer"].append(answered)
            self.times["both"].append(taken - started + answered)
            if busy:
                self.training.append(self.times["both"][-1])
            if len(self.times["both"]) >= self.labels:
                self.over.set()

    def poll(self) -> None:
        while not self.over.wait(0.5):
            started = time.perf_counter()
            self.coordinator.overview()
            self.times["overview"].append(time.perf_counter() - started)

    def run(self, people: int) -> None:
        threads = [
            threading.Thread(target=self.label, args=(f"person {n}",)) for n in range(people)
        ]
        threads.append(threading.Thread(target=self.poll))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def begin(folder: Path, examples: int, classes: int, batch: int, store: str | None) -> np.ndarray:
    rng = np.random.default_rng(0)
    shares = np.geomspace(1, 0.05, classes)
    truth = rng.choice(classes, examples, p=shares / shares.sum())
    centres = rng.normal(size=(classes, 64)) * 0.5
    np.save(folder / "x.npy", (centres[truth] + rng.normal(size=(examples, 64))).astype(np.float32))
    values: dict[str, Any] = {
        "task": {"kind": "multi-class", "classes": [str(k) for k in range(classes)]},
        "pool": {"path": "x.npy"},
        "model": {"name": "probe"},
        "selection": {"batch": batch},
    }
    if store:
        values["run"] = {"store": store}
    config.write(folder, values)
    return truth


def milliseconds(times: list[float]) -> dict[str, float]:
    if not times:
        return {}
    p50, p99 = np.percentile(times, [50, 99]) * 1000
    return {
        "p50": round(p50, 2),
        "p99": round(p99, 2),
        "max": round(max(times) * 1000, 2),
        "n": len(times),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--people", type=int, default=1)
    parser.add_argument("--think", type=float, default=0.2)
    parser.add_argument("--labels", type=int, default=600)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    server = postgres_server() if given.postgres else contextlib.nullcontext()
    with tempfile.TemporaryDirectory() as folder, server as running:
        # That the run is trusted with its database is remembered there.
        os.environ["XDG_STATE_HOME"] = folder
        store = running.url() if running is not None else None
        truth = begin(
            Path(folder),
            given.examples,
            given.classes,
            given.batch,
            store,
        )
        started = time.perf_counter()
        coordinator = Coordinator(Project(Path(folder), trust=True))
        opened = time.perf_counter() - started
        with coordinator:
            while coordinator.next("person 0").state != "ready":
                time.sleep(0.01)
            first = time.perf_counter() - started
            crowd = Crowd(coordinator, truth, given.think, given.labels)
            crowd.run(given.people)
            run_state = coordinator.run_state()
        print(
            json.dumps(
                {
                    "store": "PostgreSQL" if store else "SQLite",
                    "examples": given.examples,
                    "classes": given.classes,
                    "people": given.people,
                    "think": given.think,
                    "opened_s": round(opened, 2),
                    "first_example_s": round(first, 2),
                    "rounds": len(run_state.rounds),
                    "asked": [record.asked for record in run_state.rounds],
                    "dry": crowd.dry,
                    **{f"{name}_ms": milliseconds(times) for name, times in crowd.times.items()},
                    "both_while_preparing_ms": milliseconds(crowd.training),
                    "peak_mib": round(peak_mib()),
                },
                indent=1,
            )
        )


if __name__ == "__main__":
    main()
