"""How long one round's choosing takes, predictions given."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tailor.bandits.base import Selector
from tailor.bandits.rewards import Diversity, LabelSummary
from tailor.capacity.device import device_name, now
from tailor.capacity.experienced_selector import experienced_selector
from tailor.capacity.peak_memory import peak_mib, reset_peak
from tailor.capacity.synthetic_pool import PoolSize, SyntheticPool, make_pool
from tailor.errors import InputError
from tailor.selection.array_view import ArrayView
from tailor.selection.pool_view import Need
from tailor.selection.round import Round
from tailor.strategies import make_arms, registry
from tailor.task import Task

#: of pools whose size names none, where families are measured alone
FEATURES = 512
#: what a synthetic pool has
PLAIN_NEEDS = {Need.PROBABILITIES, Need.FEATURES}


def measure(size: PoolSize, device: str = "cpu", repeats: int = 1) -> dict[str, Any]:
    """One round of TAILOR at a size: the median of `repeats`, with seconds for each stage.

    Checking the input, planning, opening the arms and taking all count. The posterior has learned
    from one earlier round of answers, so that no sampling is done from a flat prior. Compiling is
    done before, on a small pool.
    """
    compile_seconds = _warm_up(size, device)
    bench = _RoundBench(size, device, make_pool(size))
    return _row(bench, repeats, compile_seconds)


def measure_alone(
    size: PoolSize,
    families: Sequence[str],
    device: str = "cpu",
    repeats: int = 1,
) -> Iterator[dict[str, Any]]:
    """A row for each family, as measure() gives it, with that family as the only candidate. Where
    a size has no features, they are FEATURES wide.
    """
    size = replace(size, features=size.features or FEATURES)
    # Made once: at ImageNet's size that takes longer than most families do.
    pool = make_pool(size)
    for family in families:
        alone = replace(size, families=(family,))
        compile_seconds = _warm_up(alone, device)
        bench = _RoundBench(alone, device, pool)
        yield {"family": family, **_row(bench, repeats, compile_seconds)}


def families_of(size: PoolSize) -> tuple[list[str], list[str]]:
    """(families that choose from predictions and features alone for the task of a size, others)."""
    measured: list[str] = []
    others: list[str] = []
    for name in registry.names():
        needs = registry.make(name).needs
        fits_task = _fits_task(name, size.task)
        (measured if fits_task and needs <= PLAIN_NEEDS else others).append(name)
    return measured, others


def _fits_task(family: str, task: Task) -> bool:
    try:
        make_arms([family], task)
    except InputError:
        return False
    return True


def _row(
    bench: _RoundBench,
    repeats: int,
    compile_seconds: float,
) -> dict[str, Any]:
    """The median of `repeats` rounds, and what they were measured with."""
    size = bench.size
    device = bench.device
    # From here on: making the pool is no part of a round.
    reset_peak()
    measured_rounds = [bench.measure_round(seed) for seed in range(repeats)]
    measured_rounds.sort(key=lambda measured: measured["seconds"])
    # The median: other work on the machine makes single rounds longer.
    median_round = measured_rounds[repeats // 2]
    return {
        "size": size.name,
        "device": device_name(device),
        **median_round,
        "peak_mib": round(peak_mib()),
        **_device_peak(device),
        "compile_seconds": round(compile_seconds, 3),
        "pool": size.pool,
        "classes": size.classes,
        "arms": len(bench.arms),
        "batch": size.batch,
        "features": size.features,
        "cores": os.cpu_count(),
        "repeats": repeats,
        "python": platform.python_version(),
    }


class _RoundBench:
    """A pool whose predictions are on the device, with the arms that choose from it."""

    def __init__(
        self,
        size: PoolSize,
        device: str,
        pool: SyntheticPool,
    ) -> None:
        self.size = size
        self.device = device
        self.pool = pool
        self.probs = _on_device(device, self.pool.probs)
        self.features = _on_device(device, self.pool.features)
        self.arms = make_arms(size.families, size.task)

    def measure_round(self, seed: int) -> dict[str, Any]:
        """One round, timed stage by stage."""
        size = self.size
        weights = self._weights()
        selector = self._selector(weights)
        rng = np.random.default_rng(seed)
        clock = [now(self.device)]
        view = self._view(seed)
        clock.append(now(self.device))
        plan = selector.plan(size.batch, weights, rng)
        clock.append(now(self.device))
        selection_round = Round(
            view,
            self.arms,
            plan,
            seed,
        )
        clock.append(now(self.device))
        batch = selection_round.batch()
        clock.append(now(self.device))
        if len(np.unique(batch.indices)) != size.batch:
            raise AssertionError("the batch holds an example twice")
        return {
            **_seconds(clock),
            "draws_per_second": size.batch * len(self.arms) / (clock[2] - clock[1]),
            "arms_opened": len(selection_round.opened),
        }

    def _weights(self) -> np.ndarray:
        """(K,) the reward's, after the labels that there are."""
        labels = self.pool.labels[self.pool.labelled]
        counts = labels.sum(0, dtype=np.float64)
        summary = LabelSummary(
            self.size.task,
            1,
            counts,
            len(labels),
        )
        return Diversity().weights(summary)

    def _selector(self, weights: np.ndarray) -> Selector:
        """TAILOR, with a round behind it."""
        size = self.size
        # Which examples the arms found there does not matter, only that they are random.
        rng = np.random.default_rng(size.seed + 1)
        picks = rng.choice(size.pool, size.batch, replace=False)
        return experienced_selector(
            size,
            self.pool.labels[picks],
            self.arms,
            weights,
            self.device,
        )

    def _view(self, seed: int) -> ArrayView:
        labelled = self.pool.labelled
        return ArrayView(
            self.size.task,
            self.probs,
            self.features,
            labelled=labelled,
            labels=self.pool.labels[labelled],
            seed=seed,
            device=self.device,
        )


def _seconds(clock: list[float]) -> dict[str, float]:
    """Columns of a row, from the times at which the four stages began and the last one ended."""
    check_seconds, plan_seconds, open_seconds, take_seconds = np.diff(clock).tolist()
    return {
        "seconds": clock[-1] - clock[0],
        "check_seconds": check_seconds,
        "plan_seconds": plan_seconds,
        "open_seconds": open_seconds,
        "take_seconds": take_seconds,
    }


def _warm_up(size: PoolSize, device: str) -> float:
    """Compile everything on a pool that is small in N -> the seconds that took."""
    small = replace(
        size,
        name="warm-up",
        pool=2000,
        classes=min(size.classes, 20),
        batch=200,
    )
    started = time.perf_counter()
    bench = _RoundBench(small, device, make_pool(small))
    bench.measure_round(seed=0)
    return time.perf_counter() - started


def _on_device(device: str, array: np.ndarray | None) -> Any:
    """The array as a tensor on a GPU; as it is on a CPU, where NumPy's arrays are taken."""
    if array is None or device == "cpu":
        return array
    import torch

    return torch.from_numpy(array).to(device)


def _device_peak(device: str) -> dict[str, int]:
    if device == "cpu":
        return {}
    import torch

    peak_bytes = torch.cuda.max_memory_allocated(device)
    return {"device_peak_mib": round(peak_bytes / 2**20)}
