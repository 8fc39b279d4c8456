"""How long families take alone: those that cover the pool with the coverage start, or any.

    python benchmarks/cover.py SIZE [--device cuda] [--pool N] [--classes K] [--family NAME ...]

SIZE is one of `tailor bench selection`'s; coco and celeba, which have no features there, get 512.
The slots go round the arms of a family. The start is measured along with those that cover.
Prints a JSON object a family, with wall and processor seconds: on a machine that others use too,
the latter say more.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace

import numpy as np

from tailor.capacity.device import device_name, now
from tailor.capacity.synthetic_pool import PoolSize, SyntheticPool, find_size, make_pool
from tailor.selection.array_view import ArrayView
from tailor.selection.coverage_start import coverage_start
from tailor.selection.round import Round
from tailor.strategies import make_arms

FAMILIES = ("herding", "typiclust", "probcover")
#: examples of a coverage start
START = 1000


def measure_family(family: str, size: PoolSize, pool: SyntheticPool, device: str) -> dict:
    """One batch of a family alone, opened and taken."""
    view = ArrayView(
        size.task,
        pool.probs,
        pool.features,
        labelled=pool.labelled,
        labels=pool.labels[pool.labelled],
        device=device,
    )
    arms = make_arms([family], size.task)
    plan = np.arange(size.batch) % len(arms)
    started = now(device)
    processor_started = time.process_time()
    picks = Round(view, arms, plan, seed=0).batch().indices
    return {
        "family": family,
        "seconds": round(now(device) - started, 2),
        "processor_seconds": round(time.process_time() - processor_started, 2),
        "picks": len(picks),
    }


def measure_start(pool: SyntheticPool, device: str) -> dict:
    """A first batch of START examples."""
    features = pool.features
    assert features is not None
    started = now(device)
    processor_started = time.process_time()
    chosen = coverage_start(
        features.__getitem__,
        np.arange(len(features)),
        START,
        around=np.empty(0, np.int64),
        seed=0,
        device=device,
    )
    return {
        "family": "coverage start",
        "seconds": round(now(device) - started, 2),
        "processor_seconds": round(time.process_time() - processor_started, 2),
        "picks": len(chosen),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--pool", type=int)
    parser.add_argument("--classes", type=int)
    parser.add_argument("--family", action="append")
    options = parser.parse_args()
    size = find_size(options.size)
    size = replace(size, features=512)
    if options.pool:
        size = replace(size, pool=options.pool)
    if options.classes:
        size = replace(size, classes=options.classes)
    pool = make_pool(size)
    # Compiled loops are compiled, and the device is awake.
    small = replace(size, pool=300, batch=20)
    small_pool = make_pool(small)
    families = options.family or FAMILIES
    for family in families:
        measure_family(family, small, small_pool, options.device)
    rows = [measure_family(family, size, pool, options.device) for family in families]
    if set(families) & set(FAMILIES):
        rows.append(measure_start(pool, options.device))
    for row in rows:
        shape = {"pool": size.pool, "classes": size.classes, "batch": size.batch}
        print(json.dumps({**row, **shape, "device": device_name(options.device)}))


if __name__ == "__main__":
    main()
