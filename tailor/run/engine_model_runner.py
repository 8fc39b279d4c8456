"""A session's way to its model over an engine: features, training and predictions where the engine
runs them.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from tailor.compute.base import Engine, LocalEngine
from tailor.compute.model_work import Copy, predict, predict_passes, read_pool
from tailor.compute.prediction_shards import PROBS, SHARD, Predictions, check_dtype
from tailor.compute.sharded_view import Sharded
from tailor.compute.whole_pool import check_at_once
from tailor.errors import InputError, UnknownName
from tailor.models.base import Model, ProgressCallback
from tailor.models.targets import Targets
from tailor.models.uninformed import uninformed_probability
from tailor.pools.base import Pool
from tailor.run.model_runner import ModelRunner
from tailor.run.state import RunState
from tailor.task import Task

ENGINES = ("memory", "local", "ray")


@dataclass(frozen=True)
class Plant:
    """An engine with what it needs for a run.

    folder   for shards and weights; every node must see it
    copy     model -> how other processes get at it
    shard    rows of a shard
    workers  that train one network together; 1: it is trained in this process
    dtype    of the numbers in the shards
    """

    engine: Engine
    folder: Path
    copy: Callable[[Model], Copy]
    shard: int = SHARD
    workers: int = 1
    dtype: str = "float16"

    def model_runner(
        self, pool: Pool, model: Model, progress: ProgressCallback
    ) -> EngineModelRunner:
        return EngineModelRunner(pool, model, progress, self)


def make_plant(
    options: Mapping[str, Any], folder: Path, copy: Callable[[Model], Copy]
) -> Plant | None:
    """From the [engine] section of a run's settings; None: predictions are held in memory, without
    an engine.
    """
    given = dict(options)
    name = given.pop("name", "memory")
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    if name == "memory":
        return None
    shard = int(given.pop("shard", SHARD))
    workers = int(given.pop("workers", 1))
    for key, value in (("shard", shard), ("workers", workers)):
        if value < 1:
            raise InputError(f"{key} is {value}: at least 1 is needed")
    dtype = check_dtype(given.pop("dtype", "float16"))
    if name == "local":
        return Plant(LocalEngine(), folder, copy, shard, dtype=dtype)
    from tailor.compute.ray_engine import RayEngine

    return Plant(RayEngine(**given), folder, copy, shard, workers, dtype)


class EngineModelRunner(ModelRunner):
    """As Bridge, with predictions of the whole pool in shards; the picks are those of the same
    numbers in memory.
    """

    def __init__(self, pool: Pool, model: Model, progress: ProgressCallback, plant: Plant) -> None:
        super().__init__(pool, model, progress)
        self._plant = plant
        self._elsewhere = not isinstance(plant.engine, LocalEngine)

    def prepare(self) -> dict[int, str]:
        copy = self._plant.copy(self.model)
        source = self.model.source
        if (
            self._elsewhere
            and "cache" in copy.options
            and source is not None
            and len(source.rows) < len(self.pool)
        ):
            read_pool(self._plant.engine, copy, len(self.pool))
        return super().prepare()

    def fit(self, positions: np.ndarray, labels: np.ndarray, seed: int) -> None:
        if self._plant.workers == 1 or not self._elsewhere:
            super().fit(positions, labels, seed)
            return
        from tailor.compute.distributed_training import fit_together

        with tempfile.TemporaryDirectory(dir=self._folder("training")) as folder:
            saved = fit_together(
                self._plant.engine,
                self._plant.copy(self.model),
                self._pool_index[positions],
                labels,
                seed=seed,
                workers=self._plant.workers,
                folder=Path(folder),
            )
            self.model.load(saved)

    def predict_all(self, task: Task) -> tuple[Any, None]:
        """(predictions in shards, no features: those have them too)"""
        made = self._predict_with(self.model, "predictions", "weights")
        return Sharded(made, self._plant.engine, self._tuned(made), self._passes(made)), None

    def finetune(self, run_state: RunState, seed: int) -> Any:
        self._tuning = run_state, seed
        return None  # the shards bring their own

    def dropout(self, run_state: RunState, passes: int, seed: int) -> Any:
        self._dropping = run_state, passes, seed
        return None

    def _predict_with(
        self, model: Model, name: str, weights: str, features: bool = True
    ) -> Predictions:
        """What a model says of the run's examples, in shards; it is saved for the processes that
        compute them, and for telling whose shards are there. One that can't be saved predicts here,
        and all of it every time.
        """
        copy = None
        fingerprint = uuid4().hex
        if model.travels:
            saved = self._folder(weights)
            model.save(saved)
            copy = self._copy(saved)
            fingerprint = _digest(saved, self._pool_index)
        return predict(
            self._engine_for(model),
            model,
            self._folder(name),
            at=self._pool_index,
            copy=copy,
            fingerprint=fingerprint,
            dtype=self._plant.dtype,
            shard=self._plant.shard,
            features=features,
        )

    def _engine_for(self, model: Model) -> Engine:
        return self._plant.engine if model.travels else LocalEngine()

    def _copy(self, weights: Path) -> Copy | None:
        return (
            replace(self._plant.copy(self.model), weights=str(weights)) if self._elsewhere else None
        )

    def _tuned(self, made: Predictions) -> Callable[[int], Predictions] | None:
        """The copy is trained here, on targets that are read from the shards; it predicts as the
        model does. A model that does not hand out its copy takes and gives all of the pool at once.
        """
        if not self.model.can_finetune:
            return None

        def tuned(epochs: int) -> Predictions:
            run_state, seed = self._tuning
            targets = self._targets(made, run_state)
            if not self.model.can_finetune_in_parts:
                check_at_once(self.model, "tuned", len(self.pool), arrays=2)
                found = self.model.finetune(targets[:], epochs, seed=seed)
                return self._write(self._like(made, "tuned"), partial(_rows, run_state.task, found))
            copy = self.model.tuned(targets, epochs, seed=seed)
            return self._predict_with(copy, "tuned", "tuned-weights", features=False)

        return tuned

    def _targets(self, made: Predictions, run_state: RunState) -> Targets:
        """The label of what is labelled, of the rest what the model said; by the pool's
        positions.
        """
        label_table = run_state.label_table
        labels = run_state.label_table.labels
        row = np.full(len(self.pool), -1)
        label = np.full(len(self._pool_index), -1)
        row[self._pool_index[self.is_present]] = np.flatnonzero(self.is_present)
        label[label_table.labelled] = np.arange(len(label_table.labelled))

        def read(positions: np.ndarray) -> np.ndarray:
            found = np.full(
                (len(positions), made.classes), uninformed_probability(run_state.task), np.float32
            )
            rows = row[positions]
            listed = rows >= 0
            known = (rows >= 0) & (label[rows] >= 0)
            found[listed] = made.take(PROBS, rows[listed])
            found[known] = labels[label[rows[known]]]
            return found

        return Targets(read, np.arange(len(self.pool)), made.classes)

    def _passes(self, made: Predictions) -> Callable[[], Iterator[Predictions]] | None:
        """As _tuned: a model without dropout_at() gives each pass over the whole pool at once."""
        if not self.model.can_dropout:
            return None

        def passes() -> Iterator[Predictions]:
            run_state, count, seed = self._dropping
            begun = [self._like(made, f"pass-{n}", f" {seed} {count}") for n in range(count)]
            if self.model.can_dropout_in_parts:
                for one in begun:
                    one.begin()
                engine = self._engine_for(self.model)
                copy = self._copy(self._folder("weights"))
                predict_passes(engine, self.model, begun, at=self._pool_index, seed=seed, copy=copy)
                return iter(begun)
            check_at_once(self.model, "dropout_at", len(self.pool), arrays=1)
            found = self.model.dropout(count, seed=seed)
            return (
                self._write(one, partial(_rows, run_state.task, probs))
                for one, probs in zip(begun, found)
            )

        return passes

    def _write(self, begun: Predictions, rows: Callable[[np.ndarray], np.ndarray]) -> Predictions:
        """Every shard anew, by this process. rows: the pool's positions (n,), -1 for what is not
        there -> (n, K)
        """
        begun.begin()
        for number, shard in enumerate(begun):
            begun.write(number, rows(self._pool_index[shard.start : shard.stop]))
        return begun

    def _like(self, made: Predictions, name: str, more: str = "") -> Predictions:
        return replace(
            made, folder=str(self._folder(name)), features=0, fingerprint=made.fingerprint + more
        )

    def _folder(self, name: str) -> Path:
        folder = self._plant.folder.absolute() / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _digest(weights: Path, at: np.ndarray) -> str:
    """Of a saved model and the pool's positions: a round that is gone through again finds its
    shards.
    """
    found = hashlib.blake2b(at.tobytes(), digest_size=16)
    for path in sorted(weights.iterdir()):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def _rows(task: Task, probs: np.ndarray, at: np.ndarray) -> np.ndarray:
    """probs (pool, K) -> those of the pool's positions (n,), -1 for what is not there."""
    found = np.full((len(at), task.size), uninformed_probability(task), np.float32)
    found[at >= 0] = probs[at[at >= 0]]
    return found
