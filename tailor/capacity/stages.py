"""One round over shards, stage by stage: seconds, memory, disk, and the time that the machine
itself would need.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

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
from tailor.selection.array_view import make_view
from tailor.selection.pool_view import CHUNK, PoolView
from tailor.selection.round import Round
from tailor.selection.slot_filling import SlotFiller
from tailor.strategies import Arm, Cursor, make_arms
from tailor.task import Task

#: picks that are answered at a time, in rounds whose arms use labels as they come
ANSWERS = 50
#: the name of a family's opening begins with this
OPEN = "open "
#: the stage in which proposals are made and their cover is measured
COVER = "cover"


@dataclass(frozen=True)
class Stage:
    """What a stage took, and what it had to do: read bytes, multiply."""

    name: str
    seconds: float
    cpu_seconds: float  # of all threads: what is left of a measurement on a busy machine
    peak_mib: float  # of this process
    device_mib: float = 0  # at its height on a GPU
    disk: float = 0  # bytes that it wrote
    bytes: float = 0  # that it can't do without reading
    flops: float = 0  # that it can't do without
    held_per_example: float = 0  # bytes that cursors hold when it is done, for each in the pool

    def limit(self, machine: Machine) -> float:
        """The seconds that reading and multiplying alone would take on this machine."""
        reading = self.bytes / machine.read
        multiplying = self.flops / machine.multiply
        return reading + multiplying


@contextmanager
def measured(
    stages: list[Stage],
    name: str,
    device: str,
    bytes: float = 0,
    flops: float = 0,
) -> Iterator[None]:
    """Append a stage with what the block took."""
    reset_peak()
    reset_device_peak(device)
    started = now(device)
    cpu_started = time.process_time()
    yield
    stages.append(
        Stage(
            name,
            seconds=now(device) - started,
            cpu_seconds=time.process_time() - cpu_started,
            peak_mib=peak_mib(),
            device_mib=device_peak_mib(device),
            bytes=bytes,
            flops=flops,
        )
    )


def train(
    stages: list[Stage],
    pool: ShardedPool,
    device: str = "cpu",
    steps: int | None = None,
) -> Probe:
    """A linear head on what is labelled. steps: of the solver, by default what the probe takes."""
    stored_features = pool.predictions.take(FEATURES, pool.labelled)
    features = stored_features.astype(np.float32)
    model = Probe(
        pool.size.task,
        open_pool(features),
        backbone="given",
        device=device,
        steps=steps,
    )
    model.prepare()
    positions = np.arange(len(features))
    with measured(stages, "train", device):
        model.fit(positions, pool.labels, seed=0)
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
    source = pool.predictions
    target = Predictions(
        str(folder),
        size.pool,
        size.classes,
        size.features,
        shard=source.shard,
    ).begin()
    work = {
        "bytes": size.shape.feature_bytes,
        "flops": 2.0 * size.pool * size.features * size.classes,
    }
    with measured(stages, "predict", device, **work):
        calls = list(enumerate(source))
        shared = (target, model.net, size.task, device)
        engine.map(_predict, calls, shared=shared)
    file_sizes = [file.stat().st_size for file in folder.iterdir()]
    measured_stage = stages[-1]
    stages[-1] = replace(measured_stage, disk=sum(file_sizes))


def _predict(shared: tuple[Predictions, Any, Task, str], number: int, shard: Shard) -> None:
    """In a worker: one shard."""
    import torch

    from tailor.models.losses import activate

    target, net, task, device = shared
    count = len(shard)
    probs = np.empty((count, task.size), target.dtype)
    features = np.empty((count, target.features), target.dtype)
    with torch.no_grad():
        for start in range(0, count, CHUNK):
            stop = min(start + CHUNK, count)
            rows = slice(start, stop)
            features[rows] = shard.read(FEATURES, rows)
            inputs = torch.from_numpy(features[rows])
            logits, _ = net(inputs.to(device))
            outputs = activate(task, logits).half()
            probs[rows] = outputs.cpu().numpy()
    target.write(number, probs, features)


class MeasuredRound(Round):
    """A round that measures the opening of each family as a stage of its own."""

    def __init__(
        self,
        view: PoolView,
        arms: Sequence[Arm],
        plan: np.ndarray,
        seed: int,
        *,
        stages: list[Stage],
        size: PoolSize,
        device: str,
    ) -> None:
        self._stages = stages
        self._size = size
        self._device = device
        self._held = 0
        super().__init__(
            view,
            arms,
            plan,
            seed,
            cover=size.cover,
        )

    def _make_slot_filler(self, cover: bool) -> SlotFiller:
        """With a cover, what proposing and covering take is a stage after the openings."""
        if not cover:
            return super()._make_slot_filler(cover)
        before = len(self._stages)
        with measured(self._stages, COVER, self._device):
            slot_filler = super()._make_slot_filler(cover)
        whole = self._stages.pop()
        openings = self._stages[before:]
        seconds = whole.seconds - sum(stage.seconds for stage in openings)
        cpu_seconds = whole.cpu_seconds - sum(stage.cpu_seconds for stage in openings)
        # Each opening has begun the peak of memory anew: that of the end is of covering alone.
        self._stages.append(replace(whole, seconds=seconds, cpu_seconds=cpu_seconds))
        return slot_filler

    def _open_family(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        strategy = arms[0].strategy
        work = strategy.opening_work(self._size.shape)
        with measured(
            self._stages,
            OPEN + strategy.name,
            self._device,
            bytes=work.bytes_read,
            flops=work.flops,
        ):
            cursors = super()._open_family(arms, view, pulls, rngs)
        self._held += sum(cursor.bytes_held() for cursor in cursors)
        self._note_held(self._held)
        return cursors

    def take_all(self, pool: ShardedPool) -> list[int]:
        """The picks. Where arms use labels as they come, somebody answers ANSWERS of them at a
        time.
        """
        with measured(self._stages, "take", self._device):
            taken = list[int]()
            if pool.answers is None:
                taken = self.batch().indices.tolist()
            while not self.over:
                picks = islice(self, ANSWERS)
                picked = [pick.index for pick in picks]
                labels = pool.answer(picked)
                for index, label in zip(picked, labels, strict=True):
                    self.reveal(index, label)
                taken += picked
        held = sum(cursor.bytes_held() for cursor in self._slot_filler.cursors.values())
        self._note_held(held)
        return taken

    def _note_held(self, held: int) -> None:
        """Bytes that cursors hold at the end of the last stage."""
        per_example = held / self._size.pool
        last = self._stages[-1]
        self._stages[-1] = replace(last, held_per_example=per_example)


def measure_round(
    pool: ShardedPool,
    engine: Engine,
    *,
    seed: int = 0,
    device: str = "cpu",
) -> tuple[list[Stage], Round]:
    """One round of TAILOR, walked to its end -> its stages, and the round.

    On a CPU over the shards; a GPU has the room to hold the predictions, and reads them in first.
    """
    size = pool.size
    stages = list[Stage]()
    all_bytes = size.shape.probability_bytes + size.shape.feature_bytes
    arms = make_arms(size.families, size.task)
    weights, labels = experience(size)
    selector = experienced_selector(
        size,
        labels,
        arms,
        weights,
        device,
    )
    probs: Any = Sharded(pool.predictions, engine)
    features: Any = None
    if device != "cpu":
        with measured(stages, "load", device, bytes=all_bytes):
            probs = _load(device, pool.predictions, PROBS)
            features = _load(device, pool.predictions, FEATURES)
    with measured(stages, "check", device, bytes=all_bytes):
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
        rng = np.random.default_rng(seed)
        plan = selector.plan(size.batch, weights, rng)
    measured_round = MeasuredRound(
        view,
        arms,
        plan,
        seed,
        stages=stages,
        size=size,
        device=device,
    )
    taken = measured_round.take_all(pool)
    distinct = np.unique(taken)
    if len(distinct) != size.batch:
        raise AssertionError("the batch holds an example twice")
    return stages, measured_round


def _load(device: str, predictions: Predictions, name: str) -> Any:
    """All probabilities or features as a tensor on the device; None where there are none."""
    import torch

    if name == PROBS:
        width = predictions.classes
    else:
        width = predictions.features
    if not width:
        return None
    rows = torch.empty((predictions.rows, width), dtype=torch.float16, device=device)
    # Shard by shard: the whole pool need not fit the memory beside the device.
    for shard in predictions:
        values = shard.read(name, slice(None))
        part = torch.from_numpy(values)
        rows[shard.span] = part.to(device)
    return rows
