"""How long one round's choosing takes, predictions given."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import replace
from typing import Any

import numpy as np

from tailor import bandits
from tailor.bandits.base import Contest, Outcomes, Selector
from tailor.bandits.rewards import Diversity
from tailor.capacity.device import device_name, now
from tailor.capacity.peak_memory import peak_mib, reset_peak
from tailor.capacity.synthetic_pool import PoolSize, SyntheticPool, make_pool
from tailor.selection.pool_view import PoolView
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
    probs = _on(device, pool.probs)
    features = _on(device, pool.features)
    arms = make_arms(size.families, size.task)
    reset_peak()
    runs = [_one_round(size, pool, probs, features, arms, device, seed) for seed in range(repeats)]
    run = sorted(runs, key=lambda r: r["seconds"])[len(runs) // 2]
    return {
        "size": size.name,
        "device": device_name(device),
        **run,
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


def _one_round(
    size: PoolSize,
    pool: SyntheticPool,
    probs: Any,
    features: Any,
    arms: list[Arm],
    device: str,
    seed: int,
) -> dict[str, Any]:
    labels = pool.labels[pool.labelled]
    weights = Diversity().weights(size.task, 1, labels.sum(0, dtype=np.float64), len(labels))
    found = np.random.default_rng(size.seed + 1).choice(size.pool, size.batch, replace=False)
    selector = experienced(size, pool.labels[found], arms, weights, device)
    rng = np.random.default_rng(seed)
    clock = [now(device)]
    view = PoolView(
        size.task, probs, features, labelled=pool.labelled, labels=labels, seed=seed, device=device
    )
    clock.append(now(device))
    plan = selector.plan(size.batch, weights, rng)
    clock.append(now(device))
    walk = Round(view, arms, plan, seed)
    clock.append(now(device))
    batch = walk.batch()
    clock.append(now(device))
    if len(np.unique(batch.indices)) != size.batch:
        raise AssertionError("the batch holds an example twice")
    check, plan_time, opening, taking = np.diff(clock).tolist()
    return {
        "seconds": clock[-1] - clock[0],
        "check_seconds": check,
        "plan_seconds": plan_time,
        "open_seconds": opening,
        "take_seconds": taking,
        "draws_per_second": size.batch * len(arms) / plan_time,
        "arms_opened": len(walk.opened),
    }


def experienced(
    size: PoolSize, found: np.ndarray, arms: list[Arm], weights: np.ndarray, device: str
) -> Selector:
    """TAILOR after one round in which the arms took turns and found examples with these labels (B,
    K).
    """
    names = tuple(a.name for a in arms)
    contest = Contest(
        size.task, names, tuple(a.family for a in arms), (-1,) * len(arms), 10, size.batch
    )
    selector = bandits.registry.make("tailor", contest, device=device)
    turns = np.arange(size.batch) % len(arms)
    selector.learn(Outcomes(0, weights, turns, found.astype(np.float32)))
    return selector


def _warm_up(size: PoolSize, device: str) -> float:
    """Compile everything on a pool that is small in N."""
    small = replace(size, name="warm-up", pool=2000, classes=min(size.classes, 20), batch=200)
    started = time.perf_counter()
    pool = make_pool(small)
    arms = make_arms(small.families, small.task)
    _one_round(small, pool, _on(device, pool.probs), _on(device, pool.features), arms, device, 0)
    return time.perf_counter() - started


def _on(device: str, array: np.ndarray | None) -> Any:
    import torch

    return array if array is None or device == "cpu" else torch.from_numpy(array).to(device)


def _device_peak(device: str) -> dict[str, int]:
    if device == "cpu":
        return {}
    import torch

    return {"device_peak_mib": round(torch.cuda.max_memory_allocated(device) / 2**20)}
