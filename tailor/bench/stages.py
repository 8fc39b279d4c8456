"""One round over shards, stage by stage: seconds, peak memory, and the time that the machine itself would need."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tailor.bandit.base import Selector
from tailor.bandit.reward import Diversity
from tailor.bench.device import now
from tailor.bench.machine import Machine
from tailor.bench.memory import peak_mib, reset_peak
from tailor.bench.pools import CHUNK, Size, draw_pool
from tailor.bench.selection import experienced
from tailor.engine import Engine, Predictions, Sharded
from tailor.engine.shards import FEATURES, PROBS, Shard
from tailor.models.probe import Probe
from tailor.pools import open_pool
from tailor.round import Round
from tailor.strategies import make_arms
from tailor.task import Task
from tailor.view import CHUNK as VIEW_CHUNK
from tailor.view import Opening, make_view


@dataclass(frozen=True)
class Stage:
    """What a stage took, and what it had to do: read bytes, multiply, sort."""

    name: str
    seconds: float
    cpu_seconds: float  # of all threads of this process: what is left of a measurement on a busy machine
    peak_mib: float
    bytes: float = 0
    flops: float = 0
    sorted: float = 0  # numbers

    def limit(self, machine: Machine) -> float:
        """The seconds that reading, multiplying and sorting alone would take on this machine."""
        return self.bytes / machine.read + self.flops / machine.multiply + self.sorted / machine.sort


@dataclass(frozen=True)
class ShardedPool:
    """A synthetic pool on disk. Of the labels only what the round needs is kept."""

    size: Size
    predictions: Predictions
    labelled: np.ndarray  # (B,) int64
    labels: np.ndarray  # (B, K) uint8, of the labelled
    found: np.ndarray  # (B, K) uint8, of random examples: what the arms found in an earlier round


def write_pool(size: Size, folder: Path) -> ShardedPool:
    """The pool of make_pool(size), its predictions as float16 shards in a folder; only one shard is in memory."""
    labelled, chunks = draw_pool(size)
    earlier = np.random.default_rng(size.seed + 1).choice(size.pool, size.batch, replace=False)
    kept = {"labelled": np.empty((size.batch, size.classes), np.uint8)}
    kept["earlier"] = kept["labelled"].copy()
    made = Predictions(str(folder), size.pool, size.classes, size.features, shard=CHUNK).begin()
    for number, (rows, probs, labels, features) in enumerate(chunks):
        made.write(number, probs, features)
        for name, wanted in (("labelled", labelled), ("earlier", earlier)):
            here = (wanted >= rows.start) & (wanted < rows.stop)
            kept[name][here] = labels[wanted[here] - rows.start]
    return ShardedPool(size, made, labelled, kept["labelled"], kept["earlier"])


@contextmanager
def _measured(stages: list[Stage], name: str, device: str, **work: float) -> Iterator[None]:
    reset_peak()
    started, busy = now(device), time.process_time()
    yield
    stages.append(Stage(name, now(device) - started, time.process_time() - busy, peak_mib(), **work))


def measure_model(
    pool: ShardedPool, engine: Engine, folder: Path, device: str = "cpu", steps: int | None = None
) -> list[Stage]:
    """Training a linear head on what is labelled, and predicting from the features' shards into shards in a folder.

    Nothing where the pool has no features. steps: of the solver, by default what the probe takes.
    """
    size, stages = pool.size, list[Stage]()
    if not size.features:
        return []
    known = pool.predictions.take(FEATURES, pool.labelled).astype(np.float32)
    model = Probe(size.task, open_pool(known), backbone="given", device=device, steps=steps)
    model.prepare()
    with _measured(stages, "train", device):
        model.fit(np.arange(len(known)), pool.labels, seed=0)
    made = Predictions(str(folder), size.pool, size.classes, shard=pool.predictions.shard).begin()
    work = {"bytes": 2.0 * size.pool * size.features, "flops": 2.0 * size.pool * size.features * size.classes}
    with _measured(stages, "predict", device, **work):
        calls = [(number, shard) for number, shard in enumerate(pool.predictions)]
        engine.map(_predict, calls, shared=(made, model.net, size.task, device))
    return stages


def _predict(shared: tuple[Predictions, Any, Task, str], number: int, shard: Shard) -> None:
    import torch

    from tailor.models.heads import activate

    made, net, task, device = shared
    probs = np.empty((len(shard), task.size), made.dtype)
    with torch.no_grad():
        for start in range(0, len(shard), VIEW_CHUNK):
            rows = slice(start, min(start + VIEW_CHUNK, len(shard)))
            logits, _ = net(torch.from_numpy(shard.read(FEATURES, rows)).to(device))
            probs[rows] = activate(task, logits).half().cpu().numpy()
    made.write(number, probs)


def measure_round(
    pool: ShardedPool, engine: Engine, *, seed: int = 0, device: str = "cpu"
) -> tuple[list[Stage], Round]:
    """One round of TAILOR, walked to its end -> its stages, and the round.

    On a CPU over the shards; a GPU has the room to hold the predictions, and reads them in first.
    """
    size, stages, work = pool.size, list[Stage](), work_of(pool.size)
    arms = make_arms(size.families, size.task)
    weights = Diversity().weights(size.task, 1, pool.labels.sum(0, dtype=np.float64), len(pool.labels))
    selector: Selector = experienced(size, pool.found, arms, weights, device)
    probs: Any = Sharded(pool.predictions, engine)
    features: Any = None
    if device != "cpu":
        with _measured(stages, "load", device, **work["check"]):
            probs, features = (_on(device, pool.predictions, name) for name in (PROBS, FEATURES))
    with _measured(stages, "check", device, **work["check"]):
        view = make_view(
            size.task, probs, features, labelled=pool.labelled, labels=pool.labels, seed=seed, device=device
        )
    with _measured(stages, "plan", device):
        plan = selector.plan(size.batch, weights, np.random.default_rng(seed))
    open_families = view.open

    def timed(families: Sequence[Opening]) -> list[list[Any]]:
        found = []
        for one in families:
            name = one[0].name
            with _measured(stages, f"open {name}", device, **work.get(name, {})):
                found += open_families([one])
        return found

    view.open = timed  # type: ignore[method-assign]
    walk = Round(view, arms, plan, seed)
    with _measured(stages, "take", device):
        batch = walk.batch()
    if len(np.unique(batch.indices)) != size.batch:
        raise AssertionError("the batch holds an example twice")
    return stages, walk


def _on(device: str, predictions: Predictions, name: str) -> Any:
    import torch

    width = predictions.classes if name == PROBS else predictions.features
    if not width:
        return None
    held = torch.empty((predictions.rows, width), dtype=torch.float16, device=device)
    for shard in predictions:
        held[shard.start : shard.stop] = torch.from_numpy(shard.read(name, slice(None))).to(device)
    return held


def work_of(size: Size) -> dict[str, dict[str, float]]:
    """What each stage can't do without, by its name: float16 is read, and galaxy sorts the labelled for each class."""
    rows, probs, both = size.pool, 2 * size.pool * size.classes, 2 * size.pool * (size.classes + size.features)
    queries = min(5 * size.classes, size.batch)
    return {
        "check": {"bytes": both},
        "galaxy": {"bytes": probs, "sorted": size.batch * size.classes},
        "galaxy-all": {"bytes": probs, "sorted": size.batch * size.classes},
        "confidence": {"bytes": 4 * rows},
        "margin": {"bytes": probs},
        "entropy": {"bytes": probs},
        "emal": {"bytes": probs},
        "uncertainty": {"bytes": probs},
        "most-likely-positive": {"bytes": probs},
        "badge": {"bytes": both},
        "coreset": {"bytes": 2 * rows * size.features},
        "submodular": {"bytes": both, "flops": 2.0 * rows * queries * (size.classes + size.features)},
    }
