"""The session's own cost at a million ids: ask(1000) and tell(1000), besides training and choosing.

python benchmarks/session.py [IDS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.capacity.peak_memory import peak_mib
from tailor.models.base import Model, Prediction, quiet
from tailor.pools.base import Pool
from tailor.run.session import Session
from tailor.run.session_round import SessionRound
from tailor.run.settings import Settings
from tailor.storage import SqliteStore


class Many(Pool):
    kind = "vector"

    def __init__(self, size: int) -> None:
        self._ids = [f"folder/{i // 1000}/picture-{i:08d}.jpg" for i in range(size)]

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def read(self, positions: Sequence[int]) -> list[Any]:
        return [np.zeros(2, np.float32) for _ in positions]


class Instant(Model):
    """Says at once what it said before: so that only the session is measured."""

    def __init__(self, task: Any, pool: Pool) -> None:
        super().__init__(task, pool)
        self.probs = (
            np.random.default_rng(0).dirichlet(np.ones(task.size), len(pool)).astype(np.float32)
        )
        self.features = np.zeros((len(pool), 2), np.float32)

    def fit(
        self, positions: np.ndarray, labels: np.ndarray, *, seed: int, progress: Any = quiet
    ) -> None:
        return

    def predict(self, positions: np.ndarray, progress: Any = quiet) -> Prediction:
        if len(positions) == len(self.probs):
            return Prediction(self.probs, self.features)
        return Prediction(self.probs[positions], self.features[positions])

    def save(self, folder: Path) -> None:
        return

    def load(self, folder: Path) -> None:
        return


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    settings = Settings(
        "multi-class",
        tuple("abcdefghij"),
        ("confidence", "margin", "random"),
        batch=1000,
    )
    choosing = [0.0]
    opened = SessionRound.open.__func__  # type: ignore[attr-defined]

    def timed(cls: type[SessionRound], *args: Any, **more: Any) -> SessionRound:
        started = time.perf_counter()
        walk: SessionRound = opened(cls, *args, **more)
        choosing[0] += time.perf_counter() - started
        return walk

    SessionRound.open = classmethod(timed)  # type: ignore[method-assign,assignment]
    with tempfile.TemporaryDirectory() as folder:
        pool = Many(size)
        model = Instant(settings.task, pool)
        started = time.perf_counter()
        session = Session(
            SqliteStore(Path(folder, "run.db")),
            pool,
            model,
            settings,
        )
        print(f"{size:,} ids: begin {time.perf_counter() - started:.2f} s")
        for number in range(5):
            choosing[0], started = 0.0, time.perf_counter()
            asked = session.ask(1000)
            ask = time.perf_counter() - started - choosing[0]
            answers = {id: int(hash(id) % 10) for id in asked.ids}
            started = time.perf_counter()
            session.tell(answers)
            tell = time.perf_counter() - started
            print(
                f"round {number}: ask(1000) {ask:.3f} s + choosing {choosing[0]:.3f} s, "
                f"tell(1000) {tell:.3f} s"
            )
        session.store.close()
        started = time.perf_counter()
        session = Session(
            SqliteStore(Path(folder, "run.db")),
            pool,
            model,
            settings,
        )
        print(f"open again {time.perf_counter() - started:.2f} s, peak memory {peak_mib():.0f} MiB")
        session.store.close()


if __name__ == "__main__":
    main()
