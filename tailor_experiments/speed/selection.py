"""How long one round's choosing takes, predictions given."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import replace
from typing import Any

import numpy as np

from tailor.bandits.rewards import Diversity, LabelSummary
from tailor.capacity.device import device_name, now
from tailor.capacity.experienced_selector import experienced_selector
from tailor.capacity.peak_memory import peak_mib, reset_peak
from tailor.capacity.synthetic_pool import PoolSize, SyntheticPool, make_pool
from tailor.selection.array_view import ArrayView
from tailor.selection.round import Round
from tailor.strategies import Arm, make_arms


def measure(size: PoolSize, device: str = "cpu", repeats: int = 1) -> dict[str, Any]:
    """One round of TAILOR at a size: the median of `repeats`, with seconds for each stage.

    Checking the input, planning, opening the arms and taking all count. The posterior has learned
    from one earlier round of answers, so that no sampling is done from a flat prior. Compiling is
    done before, on a small pool.
    """
    compile_seconds = _warm_up(size, device)
    pool = make_pool(size)
    probs = _on_device(device, pool.probs)
    features = _on_device(device, pool.features)
    arms = make_arms(size.families, size.task)
    reset_peak()
    measured_rounds = [
        _measure_round(
            size,
            pool,
            probs,
            features,
            arms,
            device,
            seed,
        )
        for seed in range(repeats)
    ]
    measured_rounds.sort(key=lambda measured: measured["seconds"])
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
        "arms": len(arms),
        "batch": size.batch,
        "features": size.features,
        "cores": os.cpu_count(),
        "repeats": repeats,
        "python": platform.python_version(),
    }


def _measure_round(
    size: PoolSize,
    pool: SyntheticPool,
    probs: Any,
    features: Any,
    arms: list[Arm],
    device: str,
    seed: int,
) -> dict[str, Any]:
    """One round, timed. probs (N, K) and features (N, d) are on the device."""
    labels = pool.labels[pool.labelled]
    counts = labels.sum(0, dtype=np.float64)
    weights = Diversity().weights(LabelSummary(size.task, 1, counts, len(labels)))
    # The round before: which examples the arms found does not matter, only that they are random.
    earlier_rng = np.random.default_rng(size.seed + 1)
    earlier_picks = earlier_rng.choice(size.pool, size.batch, replace=False)
    selector = experienced_selector(
        size,
        pool.labels[earlier_picks],
        arms,
        weights,
        device,
    )
    rng = np.random.default_rng(seed)
    clock = [now(device)]
    view = ArrayView(
        size.task,
        probs,
        features,
        labelled=pool.labelled,
        labels=labels,
        seed=seed,
        device=device,
    )
    clock.append(now(device))
    plan = selector.plan(size.batch, weights, rng)
    clock.append(now(device))
    selection_round = Round(view, arms, plan, seed)
    clock.append(now(device))
    batch = selection_round.batch()
    clock.append(now(device))
    if len(np.unique(batch.indices)) != size.batch:
        raise AssertionError("the batch holds an example twice")
    check_seconds, plan_seconds, open_seconds, take_seconds = np.diff(clock).tolist()
    return {
        "seconds": clock[-1] - clock[0],
        "check_seconds": check_seconds,
        "plan_seconds": plan_seconds,
        "open_seconds": open_seconds,
        "take_seconds": take_seconds,
        "draws_per_second": size.batch * len(arms) / plan_seconds,
        "arms_opened": len(selection_round.opened),
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
    pool = make_pool(small)
    arms = make_arms(small.families, small.task)
    probs = _on_device(device, pool.probs)
    features = _on_device(device, pool.features)
    _measure_round(
        small,
        pool,
        probs,
        features,
        arms,
        device,
        seed=0,
    )
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
