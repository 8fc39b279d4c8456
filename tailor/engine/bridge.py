"""A session's way to its model over an engine: features, training and predictions where the engine runs them."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tailor.bridge import Bridge
from tailor.engine.base import Engine, LocalEngine
from tailor.engine.shards import PROBS, SHARD, Predictions
from tailor.engine.view import Sharded
from tailor.engine.work import Copy, predict, read_pool
from tailor.errors import InputError, UnknownName
from tailor.journal import Journal
from tailor.models.base import Model, Progress
from tailor.pools.base import Pool
from tailor.task import Task

ENGINES = ("memory", "local", "ray")


@dataclass(frozen=True)
class Plant:
    """An engine with what it needs for a run.

    folder   for shards and weights; every node must see it
    copy     model -> how other processes get at it
    shard    rows of a shard
    workers  that train one network together; 1: it is trained in this process
    """

    engine: Engine
    folder: Path
    copy: Callable[[Model], Copy]
    shard: int = SHARD
    workers: int = 1

    def bridge(self, pool: Pool, model: Model, progress: Progress) -> EngineBridge:
        return EngineBridge(pool, model, progress, self)


def make_plant(options: Mapping[str, Any], folder: Path, copy: Callable[[Model], Copy]) -> Plant | None:
    """From the [engine] section of a run's settings; None: predictions are held in memory, without an engine."""
    given = dict(options)
    name = given.pop("name", "memory")
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    if name == "memory":
        return None
    shard, workers = int(given.pop("shard", SHARD)), int(given.pop("workers", 1))
    for key, value in (("shard", shard), ("workers", workers)):
        if value < 1:
            raise InputError(f"{key} is {value}: at least 1 is needed")
    if name == "local":
        return Plant(LocalEngine(), folder, copy, shard)
    from tailor.engine.ray_engine import RayEngine

    return Plant(RayEngine(**given), folder, copy, shard, workers)


class EngineBridge(Bridge):
    """As Bridge, with predictions of the whole pool in shards; the picks are those of the same numbers in memory."""

    def __init__(self, pool: Pool, model: Model, progress: Progress, plant: Plant) -> None:
        super().__init__(pool, model, progress)
        self._plant, self._elsewhere = plant, not isinstance(plant.engine, LocalEngine)

    def prepare(self) -> dict[int, str]:
        copy, source = self._plant.copy(self.model), getattr(self.model, "source", None)
        if self._elsewhere and "cache" in copy.options and source is not None and len(source.rows) < len(self.pool):
            read_pool(self._plant.engine, copy, len(self.pool))
        return super().prepare()

    def fit(self, positions: np.ndarray, labels: np.ndarray, seed: int) -> None:
        if self._plant.workers == 1 or not self._elsewhere:
            super().fit(positions, labels, seed)
            return
        from tailor.engine.together import fit_together

        with tempfile.TemporaryDirectory(dir=self._folder("training")) as folder:
            saved = fit_together(
                self._plant.engine, self._plant.copy(self.model), self._at[positions], labels,
                seed=seed, workers=self._plant.workers, folder=Path(folder),
            )  # fmt: skip
            self.model.load(saved)

    def predict_all(self, task: Task) -> tuple[Any, None]:
        """(predictions in shards, no features: those have them too)"""
        weights = self._folder("weights")
        self.model.save(weights)
        copy = replace(self._plant.copy(self.model), weights=str(weights)) if self._elsewhere else None
        made = predict(
            self._plant.engine, self.model, self._folder("predictions"),
            at=self._at, copy=copy, fingerprint=_digest(weights, self._at), shard=self._plant.shard,
        )  # fmt: skip
        return Sharded(made, self._plant.engine, self._tuned(made), self._passes(made)), None

    def finetune(self, journal: Journal, seed: int) -> Any:
        self._tuning = super().finetune(journal, seed), journal
        return None  # the shards bring their own

    def dropout(self, journal: Journal, passes: int, seed: int) -> Any:
        self._dropping = super().dropout(journal, passes, seed)
        return None

    def _tuned(self, made: Predictions) -> Callable[[int], Predictions] | None:
        """Fine-tuning takes its targets, and so all probabilities, in memory; what it says goes to shards again."""
        if not self.can("finetune"):
            return None

        def tuned(epochs: int) -> Predictions:
            tune, journal = self._tuning
            targets = made.take(PROBS, slice(0, made.rows)).astype(np.float32)
            targets[journal.books.labelled] = journal.books.labels
            return self._like(made, "tuned").write_all(tune(targets, epochs))

        return tuned

    def _passes(self, made: Predictions) -> Callable[[], Iterator[Predictions]] | None:
        if not self.can("dropout"):
            return None
        return lambda: (self._like(made, f"pass-{n}").write_all(p) for n, p in enumerate(self._dropping()))

    def _like(self, made: Predictions, name: str) -> Predictions:
        return replace(made, folder=str(self._folder(name)), features=0)

    def _folder(self, name: str) -> Path:
        folder = self._plant.folder.absolute() / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _digest(weights: Path, at: np.ndarray) -> str:
    """Of a saved model and the pool's positions: a round that is gone through again finds its shards."""
    found = hashlib.blake2b(at.tobytes(), digest_size=16)
    for path in sorted(weights.iterdir()):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()
