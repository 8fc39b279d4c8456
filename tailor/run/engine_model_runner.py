"""A session's way to its model over an engine: features, training and predictions where the engine
runs them.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from tailor.pools.base import Pool
from tailor.run.model_runner import NOT_IN_POOL, ModelRunner, uninformed_rows
from tailor.run.state import RunState
from tailor.task import Task

ENGINES = ("memory", "local", "ray")


@dataclass(frozen=True)
class EngineSetup:
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
        self,
        pool: Pool,
        model: Model,
        progress: ProgressCallback,
    ) -> EngineModelRunner:
        return EngineModelRunner(pool, model, progress, self)


def make_engine_setup(
    options: Mapping[str, Any], folder: Path, copy: Callable[[Model], Copy]
) -> EngineSetup | None:
    """From the [engine] section of a run's settings; None: predictions are held in memory, without
    an engine.
    """
    engine_options = dict(options)
    name = engine_options.pop("name", "memory")
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    if name == "memory":
        return None
    shard = _at_least_one(engine_options, "shard", SHARD)
    workers = _at_least_one(engine_options, "workers", 1)
    dtype = check_dtype(engine_options.pop("dtype", "float16"))
    if name == "local":
        # One process trains, however many workers a cluster would have.
        return EngineSetup(
            LocalEngine(),
            folder,
            copy,
            shard,
            dtype=dtype,
        )
    from tailor.compute.ray_engine import RayEngine

    return EngineSetup(
        RayEngine(**engine_options),
        folder,
        copy,
        shard,
        workers,
        dtype,
    )


def _at_least_one(options: dict[str, Any], key: str, default: int) -> int:
    """Take a count out of the options. Raises InputError where it is below 1."""
    count = int(options.pop(key, default))
    if count < 1:
        raise InputError(f"{key} is {count}: at least 1 is needed")
    return count


class EngineModelRunner(ModelRunner):
    """As ModelRunner, with predictions of the whole pool in shards; the picks are those of the same
    numbers in memory.
    """

    def __init__(
        self,
        pool: Pool,
        model: Model,
        progress: ProgressCallback,
        engine_setup: EngineSetup,
    ) -> None:
        super().__init__(pool, model, progress)
        self._engine_setup = engine_setup
        self._elsewhere = not isinstance(engine_setup.engine, LocalEngine)

    def prepare(self) -> dict[int, str]:
        self._read_together()
        return super().prepare()

    def _read_together(self) -> None:
        """Let the workers read the pool, where they can share what they have read."""
        copy = self._engine_setup.copy(self.model)
        source = self.model.source
        if source is None or not self._elsewhere:
            return
        # Without a cache on disk nobody else could have what a worker read.
        if "cache" not in copy.options:
            return
        size = len(self.pool)
        if len(source.rows) < size:
            read_pool(self._engine_setup.engine, copy, size)

    def fit(
        self,
        positions: np.ndarray,
        labels: np.ndarray,
        seed: int,
    ) -> None:
        if self._engine_setup.workers == 1 or not self._elsewhere:
            super().fit(positions, labels, seed)
            return
        from tailor.compute.distributed_training import fit_together

        with tempfile.TemporaryDirectory(dir=self._folder("training")) as folder:
            saved = fit_together(
                self._engine_setup.engine,
                self._engine_setup.copy(self.model),
                self._pool_index[positions],
                labels,
                seed=seed,
                workers=self._engine_setup.workers,
                folder=Path(folder),
            )
            self.model.load(saved)

    def predict_all(self, task: Task) -> tuple[Any, None]:
        """(predictions in shards, no features: those have them too)"""
        predictions = self._predict_with(self.model, "predictions", "weights")
        sharded = Sharded(
            predictions,
            self._engine_setup.engine,
            finetune=self._tuned(predictions),
            dropout=self._passes(predictions),
            head=self.linear_head(),
            boundary_distances=self.boundary_distances(),
        )
        return sharded, None

    def finetune(self, run_state: RunState, seed: int) -> Any:
        # The shards bring their own.
        self._tuning = run_state, seed
        return None

    def dropout(
        self,
        run_state: RunState,
        passes: int,
        seed: int,
    ) -> Any:
        self._dropping = run_state, passes, seed
        return None

    def _predict_with(
        self,
        model: Model,
        name: str,
        weights: str,
        features: bool = True,
    ) -> Predictions:
        """What a model says of the run's examples, in shards; it is saved for the processes that
        compute them, and for telling whose shards are there. One that can't be saved predicts here,
        and all of it every time.
        """
        copy = None
        # Never the same again, so that no shard of an earlier model is taken for one of this.
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
            pool_index=self._pool_index,
            copy=copy,
            fingerprint=fingerprint,
            dtype=self._engine_setup.dtype,
            shard=self._engine_setup.shard,
            features=features,
        )

    def _engine_for(self, model: Model) -> Engine:
        if model.travels:
            return self._engine_setup.engine
        return LocalEngine()

    def _copy(self, weights: Path) -> Copy | None:
        """How other processes get at the model with these weights; None where there are none."""
        if not self._elsewhere:
            return None
        untrained = self._engine_setup.copy(self.model)
        return replace(untrained, weights=str(weights))

    # ------------------------------------------------------------------ fine-tuning

    def _tuned(self, predictions: Predictions) -> Callable[[int], Predictions] | None:
        """The copy is trained here, on targets that are read from the shards; it predicts as the
        model does. A model that does not hand out its copy takes and gives all of the pool at once.
        """
        if not self.model.can_finetune:
            return None

        def tuned(epochs: int) -> Predictions:
            run_state, seed = self._tuning
            targets = self._targets(predictions, run_state)
            if not self.model.can_finetune_in_parts:
                probs = self._finetune_at_once(targets, epochs, seed)
                begun = self._like(predictions, "tuned")
                return self._write(begun, run_state.task, probs)
            copy = self.model.tuned(targets, epochs, seed=seed)
            return self._predict_with(
                copy,
                "tuned",
                "tuned-weights",
                features=False,
            )

        return tuned

    def _finetune_at_once(self, targets: Targets, epochs: int, seed: int) -> np.ndarray:
        """(pool, K): the probabilities of a model that takes and gives all of the pool at once."""
        check_at_once(
            self.model,
            "tuned",
            len(self.pool),
            arrays=2,
        )
        return self.model.finetune(targets[:], epochs, seed=seed)

    def _targets(self, predictions: Predictions, run_state: RunState) -> Targets:
        """The label of what is labelled, of the rest what the model said; by the pool's
        positions.
        """
        table = run_state.label_table
        labels = table.labels
        labelled = table.labelled
        # -1 in both: an entry of the pool that is not in the run, an example without a label.
        row_of = np.full(len(self.pool), -1)
        row_of[self._present_indices] = np.flatnonzero(self.is_present)
        label_of = np.full(len(self._pool_index), -1)
        label_of[labelled] = np.arange(len(labelled))

        def read(positions: np.ndarray) -> np.ndarray:
            targets = uninformed_rows(run_state.task, len(positions))
            rows = row_of[positions]
            in_run = rows >= 0
            targets[in_run] = predictions.take(PROBS, rows[in_run])
            has_label = label_of[rows] >= 0
            # Not without in_run: a row of -1 reads the label of the last example.
            is_labelled = in_run & has_label
            labelled_rows = rows[is_labelled]
            label_rows = label_of[labelled_rows]
            targets[is_labelled] = labels[label_rows]
            return targets

        all_positions = np.arange(len(self.pool))
        return Targets(read, all_positions, predictions.classes)

    # ------------------------------------------------------------------ dropout

    def _passes(self, predictions: Predictions) -> Callable[[], Iterator[Predictions]] | None:
        """As _tuned: a model without dropout_at() gives each pass over the whole pool at once."""
        if not self.model.can_dropout:
            return None

        def passes() -> Iterator[Predictions]:
            run_state, count, seed = self._dropping
            # Part of the fingerprint: passes of another seed are others.
            suffix = f" {seed} {count}"
            begun = []
            for number in range(count):
                pass_to_draw = self._like(predictions, f"pass-{number}", suffix)
                begun.append(pass_to_draw)
            if self.model.can_dropout_in_parts:
                self._predict_passes(begun, seed)
                return iter(begun)
            check_at_once(
                self.model,
                "dropout_at",
                len(self.pool),
                arrays=1,
            )
            drawn = self.model.dropout(count, seed=seed)
            return self._written(begun, run_state.task, drawn)

        return passes

    def _predict_passes(self, begun: Sequence[Predictions], seed: int) -> None:
        """All passes, a shard of each at a time, where the engine runs."""
        for predictions in begun:
            predictions.begin()
        weights = self._folder("weights")
        predict_passes(
            self._engine_for(self.model),
            self.model,
            begun,
            pool_index=self._pool_index,
            seed=seed,
            copy=self._copy(weights),
        )

    def _written(
        self,
        begun: Sequence[Predictions],
        task: Task,
        drawn: Iterable[np.ndarray],
    ) -> Iterator[Predictions]:
        """Each pass when it is asked for: no two of them are in memory together."""
        for predictions, probs in zip(begun, drawn):
            yield self._write(predictions, task, probs)

    # ------------------------------------------------------------------ shards

    def _write(
        self,
        begun: Predictions,
        task: Task,
        probs: np.ndarray,
    ) -> Predictions:
        """Every shard anew, by this process. probs (pool, K): by the pool's positions."""
        begun.begin()
        for number, shard in enumerate(begun):
            indices = self._pool_index[shard.start : shard.stop]
            in_pool = indices != NOT_IN_POOL
            rows = uninformed_rows(task, len(indices))
            rows[in_pool] = probs[indices[in_pool]]
            begun.write(number, rows)
        return begun

    def _like(
        self,
        predictions: Predictions,
        name: str,
        suffix: str = "",
    ) -> Predictions:
        """Probabilities of the same examples in another folder, not yet begun."""
        folder = self._folder(name)
        return replace(
            predictions,
            folder=str(folder),
            features=0,
            fingerprint=predictions.fingerprint + suffix,
        )

    def _folder(self, name: str) -> Path:
        folder = self._engine_setup.folder.absolute() / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _digest(weights: Path, pool_index: np.ndarray) -> str:
    """Of a saved model and the pool's positions: a round that is gone through again finds its
    shards.
    """
    digest = hashlib.blake2b(pool_index.tobytes(), digest_size=16)
    for path in sorted(weights.iterdir()):
        name = path.name.encode()
        digest.update(name + path.read_bytes())
    return digest.hexdigest()
