"""The model's heavy work over an engine: reading the pool into the feature cache, predicting into
shards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tailor.compute.base import Engine, LocalEngine
from tailor.compute.prediction_shards import SHARD, Predictions
from tailor.errors import InputError
from tailor.models import make_model
from tailor.models.base import Model
from tailor.models.source import CHUNK
from tailor.models.uninformed import uninformed_probability
from tailor.pools import open_pool
from tailor.task import Task

#: entries of the pool that a worker reads into the feature cache at a time
READ = 4096


@dataclass(frozen=True)
class Copy:
    """How to make a copy of a model in another process: plain values, and its weights in a folder.

    pool     what Pool.describe gave; its path must lead there from every node
    options  as make_model takes them; a cache folder among them is shared by all workers
    weights  where the model was saved, or None where it is not trained yet
    """

    task: Task
    pool: Mapping[str, Any]
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    weights: str | None = None

    def make(self) -> Model:
        """The copy, with its weights."""
        pool = open_pool(dict(self.pool))
        model = make_model(
            self.model,
            self.task,
            pool,
            **self.options,
        )
        if self.weights is not None:
            model.load(Path(self.weights))
        return model


def read_pool(engine: Engine, copy: Copy, size: int) -> None:
    """Fill the feature cache that the copies share, so that Model.prepare finds everything
    there.
    """
    if "cache" not in copy.options:
        raise InputError(
            "the workers of an engine share features through a folder: give the model a cache="
        )
    ranges = []
    for start in range(0, size, READ):
        stop = min(start + READ, size)
        ranges.append((start, stop))
    engine.map_with(copy.make, _read, ranges)


def _read(model: Model, start: int, stop: int) -> None:
    """In a worker: some entries of the pool."""
    source = model.source
    if source is None:  # nothing to prepare
        return
    # In chunks, so that a worker never holds the raw data of more than one.
    for first in range(start, stop, CHUNK):
        last = min(first + CHUNK, stop)
        source.compute(range(first, last))


def predict(
    engine: Engine,
    model: Model,
    folder: Path,
    *,
    pool_index: np.ndarray | None = None,
    copy: Copy | None = None,
    fingerprint: str = "",
    dtype: str = "float16",
    shard: int = SHARD,
    features: bool = True,
) -> Predictions:
    """What the model says of the whole pool, in shards in a folder; probabilities alone where no
    features are wanted.

    pool_index   (N,) int64 the pool's position of each row, -1 where there is none today; by
                 default all, in order
    copy         how other processes get at the model; needed by every engine but the local one
    fingerprint  says what the predictions come from: shards that an earlier call with the same one
                 wrote are kept
    """
    make_worker_model = _model_maker(engine, model, copy)
    if pool_index is None:
        positions = np.arange(len(model.pool))
    else:
        positions = pool_index
    width = 0
    if features:
        # Only a prediction tells how many features the model gives.
        _, first_features = predict_rows(model, positions[:1])
        width = first_features.shape[1]
    predictions = Predictions(
        str(folder),
        len(positions),
        model.task.size,
        width,
        dtype,
        shard,
        fingerprint,
    ).begin()
    calls = []
    for number in predictions.missing():
        span = predictions[number].span
        shard_positions = positions[span]
        calls.append((predictions, number, shard_positions))
    engine.map_with(make_worker_model, _predict, calls)
    return predictions


def _model_maker(engine: Engine, model: Model, copy: Copy | None) -> Callable[[], Model]:
    """What gives a worker its model: itself in this process, a copy elsewhere."""
    if isinstance(engine, LocalEngine):
        return lambda: model
    if copy is None:
        raise InputError(
            f"the {engine.name} engine predicts in other processes: say how they get at the "
            "model (copy=)"
        )
    return copy.make


def _predict(
    model: Model,
    predictions: Predictions,
    number: int,
    positions: np.ndarray,
) -> None:
    """In a worker: one shard."""
    probs, features = predict_rows(model, positions)
    # Features that are not wanted have no file, and write() leaves them aside.
    predictions.write(number, probs, features)


def predict_passes(
    engine: Engine,
    model: Model,
    passes: Sequence[Predictions],
    *,
    pool_index: np.ndarray,
    seed: int,
    copy: Copy | None = None,
) -> None:
    """What a model that has dropout_at() says in each of several passes with dropout, in shards
    that were begun.

    The random numbers of a shard come from the seed and its number, wherever it is computed.
    """
    make_worker_model = _model_maker(engine, model, copy)
    missing = set[int]()
    for predictions in passes:
        missing.update(predictions.missing())
    # All passes are cut alike: the first tells where a shard begins and ends.
    first_pass = passes[0]
    calls = []
    for number in sorted(missing):
        span = first_pass[number].span
        shard_positions = pool_index[span]
        calls.append((passes, number, shard_positions, seed))
    engine.map_with(make_worker_model, _predict_passes, calls)


def _predict_passes(
    model: Model,
    passes: Sequence[Predictions],
    number: int,
    positions: np.ndarray,
    seed: int,
) -> None:
    """In a worker: one shard of every pass."""
    in_pool = positions >= 0
    # Hashed together: neighbouring shards, and neighbouring seeds, draw unrelated numbers.
    sequence = np.random.SeedSequence((seed, number))
    (shard_seed,) = sequence.generate_state(1, np.uint32)
    predicted = model.dropout_at(positions[in_pool], len(passes), seed=int(shard_seed))
    rows = len(positions)
    for predictions, pass_probs in zip(passes, predicted, strict=True):
        probs = _uninformed(model.task, rows)
        probs[in_pool] = pass_probs
        predictions.write(number, probs)


def predict_rows(model: Model, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(probabilities (n, K), features (n, d)) at the pool's positions (n,); where one is -1, what
    says nothing.
    """
    # Rows stay where they are when an example is gone for a while: its row says nothing.
    in_pool = positions >= 0
    prediction = model.predict(positions[in_pool])
    rows = len(positions)
    probs = _uninformed(model.task, rows)
    probs[in_pool] = prediction.probs
    width = prediction.features.shape[1]
    features = np.zeros((rows, width), np.float32)
    features[in_pool] = prediction.features
    return probs, features


def _uninformed(task: Task, rows: int) -> np.ndarray:
    """(rows, K) float32 probabilities that say nothing."""
    shape = (rows, task.size)
    probability = uninformed_probability(task)
    return np.full(shape, probability, np.float32)
