"""What a round over shards does as the pool grows, counted on the real code, and what that means
for 10^8 and 10^9.

    python benchmarks/scale_simulation.py [OUT.jsonl]

First part: for every family the bytes that shards send to the driver, the rows that the driver
fetches and the passes over the pool, at growing N, with the exponents of growth. Second part: what
is lost when the greedy families see a random part of the pool. Third part: both put together with
this machine's seconds a row into a plan for a cluster.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from math import log
from pathlib import Path
from statistics import linear_regression
from typing import Any

import numpy as np

from tailor.capacity.synthetic_pool import SIZES, PoolSize, make_pool
from tailor.compute import LocalEngine, Predictions, Sharded
from tailor.selection.array_view import ArrayView
from tailor.selection.round import Round
from tailor.strategies import make_arms

BASE = replace(
    SIZES["kuzushiji"],
    name="simulated",
    classes=20,
    features=32,
    batch=1000,
)
POOLS = (20_480, 81_920, 327_680)
FAMILIES = ("confidence", "most-likely-positive", "galaxy", "badge", "coreset", "submodular")
#: a node of a cluster: cores, bytes a second of its network, bytes a second from object storage,
#: dollars an hour
CORES, NETWORK, STORAGE, PRICE = 16, 1.25e9, 1.0e9, 0.80


class Counting(LocalEngine):
    """Counts passes over the pool and what the shards send back."""

    passes, sent = 0, 0

    def map(self, function: Any, calls: Any, shared: Any = None) -> list[Any]:
        answers = super().map(function, calls, shared)
        self.passes += 1
        self.sent += sum(len(pickle.dumps(answer, protocol=5)) for answer in answers)
        return answers


@dataclass(frozen=True)
class CountedPredictions(Predictions):
    """Counts rows that are fetched one by one."""

    fetched: list[int] = field(default_factory=list, compare=False)

    def take(self, name: str, positions: Any) -> np.ndarray:
        self.fetched.append(len(positions))
        return super().take(name, positions)


def count(size: PoolSize, family: str, folder: Path) -> dict[str, Any]:
    """One round of a single family."""
    pool = make_pool(size)
    made = CountedPredictions(
        str(folder),
        size.pool,
        size.classes,
        size.features,
        shard=16384,
    )
    made.write_all(pool.probs, pool.features)
    engine = Counting()
    arms = make_arms([family], size.task)
    labels = pool.labels[pool.labelled]
    view = Sharded(made, engine).round_view(size.task, labelled=pool.labelled, labels=labels)
    engine.passes = 0
    engine.sent = 0
    made.fetched.clear()
    plan = np.random.default_rng(0).integers(0, len(arms), size.batch)
    started = time.perf_counter()
    walk = Round(view, arms, plan, 0)
    opened = time.perf_counter() - started
    walk.batch()
    return {
        "family": family,
        "pool": size.pool,
        "passes": engine.passes,
        "sent": engine.sent,
        "fetched": sum(made.fetched),
        "open_seconds": opened,
        "take_seconds": time.perf_counter() - started - opened,
    }


def slope(rows: list[dict[str, Any]], name: str) -> float:
    points = [(log(r["pool"]), log(max(1e-3 if "seconds" in name else 1, r[name]))) for r in rows]
    return float(linear_regression(*zip(*points)).slope)


def quality(size: PoolSize, family: str, share: float) -> float:
    """What a family's batch is worth when it sees a random part of the pool, relative to seeing all
    of it.

    badge: the mean squared distance, in gradient space, of the pool to its nearest pick (smaller is
    better: the ratio is exact over sampled). coreset: the largest distance in features, likewise.
    submodular: the value of f.
    """
    import torch

    from tailor.strategies.gradient_embeddings import (
        Centres,
        cosines,
        parts,
        squared_norms,
        unit_parts,
    )
    from tailor.strategies.submodular import Submodular

    pool = make_pool(size)
    view = ArrayView(
        size.task,
        pool.probs,
        pool.features,
        labelled=pool.labelled,
        labels=pool.labels[pool.labelled],
    )
    worth = []
    for part in (1.0, share):
        free = view.free & (np.random.default_rng(5).random(size.pool) < part)
        own = ArrayView(
            size.task,
            pool.probs,
            pool.features,
            labelled=pool.labelled,
            labels=view.labels,
            free=free,
        )
        picks = torch.from_numpy(
            Round(
                own,
                make_arms([family], size.task),
                np.zeros(size.batch, np.int64),
                0,
            )
            .batch()
            .indices
        )
        if family == "submodular":
            query_set = Submodular().query_set(view, np.random.default_rng((0, 0)))
            queries = unit_parts(parts(view, torch.from_numpy(query_set)))
            own_cosines = cosines(unit_parts(parts(view, picks)), queries)
            worth.append(float(own_cosines.clamp(min=0).amax(0).sum() + own_cosines.amax(1).sum()))
            continue
        nearest = []
        if family == "badge":
            norms = squared_norms(parts(view, slice(None)))
            centres = Centres(view)
            centres.add(picks)
            for chunk in view.chunks():
                products = centres.products(parts(view, chunk), 0)
                nearest.append(
                    (norms[chunk, None] + norms[picks] - 2 * products).clamp(min=0).amin(1)
                )
            worth.append(1 / float(torch.cat(nearest).mean()))
        else:
            known = torch.cat([picks, torch.from_numpy(pool.labelled)])
            for chunk in view.chunks():
                nearest.append(
                    torch.cdist(view.feature_rows(chunk), view.feature_rows(known)).amin(1)
                )
            worth.append(1 / float(torch.cat(nearest).max()))
    return worth[1] / worth[0]


def cluster_plan(
    examples: float, nodes: int, rates: dict[str, float], classes: int = 1000, features: int = 512
) -> str:
    """A row of the table: one round on a cluster, stages that pass over the pool split over all
    cores.

    rates  seconds a row and core of predicting and of a pass (check, open galaxy, open badge) at K
           = 1,000, d = 512
    """
    size = 2 * examples * (classes + features)
    reading = size / (nodes * STORAGE)
    computing = examples * (rates["predict"] + rates["passes"]) / (nodes * CORES)
    vectors = 113 * examples  # on the driver: who is free, ties, norms, clocks, bounds
    hours = (reading + computing) / 3600
    return (
        f"{examples:.0e}  {size / 1e12:6.2f} TB  {examples / 65536:9,.0f} shards  {nodes:4d} "
        "nodes  "
        f"read {reading:6.0f} s  compute {computing:6.0f} s  driver {vectors / 2**30:6.1f} GiB  "
        f"${nodes * PRICE * hours:6.2f} a round"
    )


def main() -> None:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    rows: list[dict[str, Any]] = []
    for family in FAMILIES:
        mine = []
        for n in POOLS:
            with tempfile.TemporaryDirectory(prefix="tailor-simulation-") as folder:
                mine.append(count(replace(BASE, pool=n), family, Path(folder)))
        rows += mine
        last = mine[-1]
        print(
            f"{family:22s} passes {last['passes']}, "
            f"sent {last['sent'] / 2**20:8.2f} MiB ~ N^{slope(mine, 'sent'):.2f}, "
            f"fetched {last['fetched']:9,} rows ~ N^{slope(mine, 'fetched'):.2f}, "
            f"take {last['take_seconds']:.2f} s ~ N^{slope(mine, 'take_seconds'):.2f}",
            flush=True,
        )
    for family in ("badge", "coreset", "submodular"):
        for share in (0.5, 0.1, 0.02):
            worth = quality(replace(BASE, pool=81_920, batch=500), family, share)
            rows.append({"family": family, "share": share, "relative_worth": worth})
            print(
                f"{family} on {share:.0%} of the pool: {worth:.3f} of what the whole pool gives",
                flush=True,
            )
    if out is not None:
        out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    measured = Path(__file__).with_name("results") / "scale_cpu.jsonl"
    if measured.exists():
        print_plans([json.loads(line) for line in measured.read_text().splitlines()])


def print_plans(rows: list[dict[str, Any]]) -> None:
    """From `tailor bench scale`'s rows at K = 1,000."""
    largest = max(r["pool"] for r in rows if r["axis"] == "N")
    seconds = {r["stage"]: r["seconds"] for r in rows if r["axis"] == "N" and r["pool"] == largest}
    cores = 2
    rates = {
        "predict": cores * seconds["predict"] / largest,
        "passes": cores
        * sum(seconds[s] for s in ("check", "open galaxy", "open confidence", "open badge"))
        / largest,
    }
    print(
        f"rates from N = {largest:,}: "
        f"{', '.join(f'{k} {v * 1e6:.1f} us a row and core' for k, v in rates.items())}"
    )
    for examples, nodes in ((1e8, 8), (1e8, 32), (1e9, 32), (1e9, 128)):
        print(cluster_plan(examples, nodes, rates))


if __name__ == "__main__":
    main()
