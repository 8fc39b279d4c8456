"""One round over shards, stage by stage: seconds, memory, disk, and the time that the machine
itself would need.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from tailor.bandits.base import Selector
from tailor.capacity.device import device_peak_mib, now, reset_device_peak
from tailor.capacity.experienced_selector import experienced_selector
from tailor.capacity.machine import Machine
from tailor.capacity.peak_memory import peak_mib, reset_peak
from tailor.capacity.sharded_pool import ShardedPool, experience
from tailor.capacity.synthetic_pool import PoolSize
from tailor.compute import Engine, Predictions, Sharded
from tailor.compute.prediction_shards import FEATURES, PROBS, Shard
from tailor.models.probe import Probe
from tailor.pools import open_pool
from tailor.selection.pool_view import CHUNK, Opening, make_view
from tailor.selection.round import Round
from tailor.strategies import make_arms
from tailor.strategies.galaxy.family import GalaxyCursor
from tailor.task import Task

#: picks that are answered at a time, in rounds whose arms use labels as they come
ANSWERS = 50


@dataclass(frozen=True)
class Stage:
    """What a stage took, and what it had to do: read bytes, multiply."""

    name: str
    seconds: float
    cpu_seconds: (
        float  # of all threads of this process: what is left of a measurement on a busy machine
    )
    peak_mib: float  # of this process
    device_mib: float = 0  # at its height on a GPU
    disk: float = 0  # bytes that it wrote
    bytes: float = 0
    flops: float = 0
    on_lines: float = (
        0  # examples on galaxy's lines, over all classes, when it is done; for each in the pool
    )

    def limit(self, machine: Machine) -> float:
        """The seconds that reading and multiplying alone would take on this machine."""
        return self.bytes / machine.read + self.flops / machine.multiply


@contextmanager
def measured(stages: list[Stage], name: str, device: str, **work: float) -> Iterator[None]:
    reset_peak()
    reset_device_peak(device)
    started = now(device)
    busy = time.process_time()
    yield
    seconds = now(device) - started
    cpu_seconds = time.process_time() - busy
    stages.append(Stage(name, seconds, cpu_seconds, peak_mib(), device_peak_mib(device), **work))


def train(
    stages: list[Stage], pool: ShardedPool, device: str = "cpu", steps: int | None = None
) -> Probe:
    """A linear head on what is labelled. steps: of the solver, by default what the probe takes."""
    size = pool.size
    known = pool.predictions.take(FEATURES, pool.labelled).astype(np.float32)
    model = Probe(size.task, open_pool(known), backbone="given", device=device, steps=steps)
    model.prepare()
    with measured(stages, "train", device):
        model.fit(np.arange(len(known)), pool.labels, seed=0)
    return model


def predict(
    stages: list[Stage],
    pool: ShardedPool,
    model: Probe,
    engine: Engine,
    folder: Path,
    device: str = "cpu",
) -> None:
    """From the features' shards into shards in a folder."""
    size = pool.size
    given = pool.predictions
    made = Predictions(
        str(folder), size.pool, size.classes, size.features, shard=given.shard
    ).begin()
    work = {
        "bytes": 2.0 * size.pool * size.features,
        "flops": 2.0 * size.pool * size.features * size.classes,
    }
    with measured(stages, "predict", device, **work):
        calls = [(number, shard) for number, shard in enumerate(given)]
        engine.map(_predict, calls, shared=(made, model.net, size.task, device))
    written = sum(file.stat().st_size for file in folder.iterdir())
    stages[-1] = replace(stages[-1], disk=written)


def _predict(shared: tuple[Predictions, Any, Task, str], number: int, shard: Shard) -> None:
    import torch

    from tailor.models.losses import activate

    made, net, task, device = shared
    probs = np.empty((len(shard), task.size), made.dtype)
    features = np.empty((len(shard), made.features), made.dtype)
    with torch.no_grad():
        for start in range(0, len(shard), CHUNK):
            rows = slice(start, min(start + CHUNK, len(shard)))
            features[rows] = shard.read(FEATURES, rows)
            logits, _ = net(torch.from_numpy(features[rows]).to(device))
            probs[rows] = activate(task, logits).half().cpu().numpy()
    made.write(number, probs, features)


def measure_round(
    pool: ShardedPool, engine: Engine, *, seed: int = 0, device: str = "cpu"
) -> tuple[list[Stage], Round]:
    """One round of TAILOR, walked to its end -> its stages, and the round.

    On a CPU over the shards; a GPU has the room to hold the predictions, and reads them in first.
    """
    size = pool.size
    stages = list[Stage]()
    work = work_of(pool.size)
    arms = make_arms(size.families, size.task)
    weights, found = experience(size)
    selector: Selector = experienced_selector(size, found, arms, weights, device)
    probs: Any = Sharded(pool.predictions, engine)
    features: Any = None
    if device != "cpu":
        with measured(stages, "load", device, **work["check"]):
            probs, features = (_on(device, pool.predictions, name) for name in (PROBS, FEATURES))
    with measured(stages, "check", device, **work["check"]):
        view = make_view(
            size.task,
            probs,
            features,
            labelled=pool.labelled,
            labels=pool.labels,
            seed=seed,
            device=device,
        )
    with measured(stages, "plan", device):
        plan = selector.plan(size.batch, weights, np.random.default_rng(seed))
    open_families = view.open

    def timed(families: Sequence[Opening]) -> list[list[Any]]:
        found = []
        for one in families:
            name = one[0].name
            with measured(stages, f"open {name}", device, **work.get(name, {})):
                found += open_families([one])
            stages[-1] = replace(stages[-1], on_lines=_on_lines(chain(*found)) / size.pool)
        return found

    view.open = timed  # type: ignore[method-assign]
    walk = Round(view, arms, plan, seed)
    with measured(stages, "take", device):
        taken = _take_all(walk, pool)
    stages[-1] = replace(stages[-1], on_lines=_on_lines(walk._cursors.values()) / size.pool)
    if len(np.unique(taken)) != size.batch:
        raise AssertionError("the batch holds an example twice")
    return stages, walk


def _take_all(walk: Round, pool: ShardedPool) -> list[int]:
    """The picks. Where arms use labels as they come, somebody answers ANSWERS of them at a time."""
    if pool.answers is None:
        return walk.batch().indices.tolist()
    taken: list[int] = []
    while not walk.over:
        some = [pick.index for pick in islice(walk, ANSWERS)]
        for index, label in zip(some, pool.answer(some), strict=True):
            walk.reveal(index, label)
        taken += some
    return taken


def _on_lines(cursors: Iterable[Any]) -> int:
    return sum(
        len(graph.line.ids) for c in cursors if isinstance(c, GalaxyCursor) for graph in c._graphs
    )


def _on(device: str, predictions: Predictions, name: str) -> Any:
    import torch

    width = predictions.classes if name == PROBS else predictions.features
    if not width:
        return None
    held = torch.empty((predictions.rows, width), dtype=torch.float16, device=device)
    for shard in predictions:
        held[shard.start : shard.stop] = torch.from_numpy(shard.read(name, slice(None))).to(device)
    return held


def work_of(size: PoolSize) -> dict[str, dict[str, float]]:
    """What each stage can't do without, by its name: float16 is read. The few labels that galaxy
    sorts don't count.
    """
    rows = size.pool
    probs = 2 * size.pool * size.classes
    both = 2 * size.pool * (size.classes + size.features)
    queries = min(5 * size.classes, size.batch)
    return {
        "check": {"bytes": both},
        "galaxy": {"bytes": probs},
        "galaxy-all": {"bytes": probs},
        "confidence": {"bytes": 4 * rows},
        "margin": {"bytes": probs},
        "entropy": {"bytes": probs},
        "emal": {"bytes": probs},
        "uncertainty": {"bytes": probs},
        "most-likely-positive": {"bytes": probs},
        "badge": {"bytes": both},
        "coreset": {"bytes": 2 * rows * size.features},
        "submodular": {
            "bytes": both,
            "flops": 2.0 * rows * queries * (size.classes + size.features),
        },
    }
