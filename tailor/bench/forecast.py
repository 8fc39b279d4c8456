"""What a round will cost, before it is run: the real code on two small pools, and a line through what it took."""

from __future__ import annotations

import multiprocessing
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tailor.bench.pools import Size
from tailor.bench.stages import Stage, measure_model, measure_round, write_pool
from tailor.engine import LocalEngine
from tailor.round import Round
from tailor.strategies.galaxy import GalaxyCursor
from tailor.view import CHUNK

#: bytes that this process keeps for every example: who is free, its tie-breaker, its largest probability
KEPT = 32
#: and what families keep besides: norms, clocks, bounds
KEPT_BY = {"badge": 72, "coreset": 48, "submodular": 40, "galaxy": 9, "galaxy-all": 9, "random": 8}
#: each probe is run so often, and the quickest counts
REPEATS = 2
#: iterations of the solver in a probe, of those that training takes at most
STEPS, ALL_STEPS = 4, 100
#: bytes of an example on one class's line
ON_A_LINE = 70


@dataclass(frozen=True)
class Estimate:
    """A stage: seconds, and the process's memory and the bytes on disk at its height."""

    stage: str
    seconds: float
    cpu_seconds: float  # of all threads
    memory: float
    disk: float = 0


def forecast(size: Size, folder: Path | None = None) -> list[Estimate]:
    """The stages of one round at this size on this machine, over shards in this process.

    Both probes have the round's own K, d, labels and batch, so only N is extrapolated; a pool that is not larger than
    the larger probe is simply run. folder: whose disk is used, by default that of temporary files.
    """
    small = _parts(max(2 * CHUNK, 2.2 * size.batch))
    pools = [replace(size, pool=min(size.pool, n)) for n in (small, 4 * small)]
    fresh = multiprocessing.get_context("spawn")  # memory that an earlier probe left behind would count
    with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as processes:
        runs = [processes.submit(_probe, pool, folder).result() for pool in pools]
    found = []
    for less, more in zip(*(stages for stages, _ in runs)):
        seconds, busy = (
            extrapolate(more.name, (pools[0].pool, a), (pools[1].pool, b), size.pool)
            for a, b in ((less.seconds, more.seconds), (less.cpu_seconds, more.cpu_seconds))
        )
        kept = _kept(more.name, size, runs[1][1])
        memory = more.peak_mib * 2**20 + kept * (size.pool - pools[1].pool)
        disk = 2 * size.pool * (size.classes + size.features) if more.name == "predict" else 0
        found.append(Estimate(more.name, seconds, busy, memory, disk))
    return found


def _parts(rows: float) -> int:
    return -(-int(rows) // CHUNK) * CHUNK


def _probe(size: Size, folder: Path | None) -> tuple[list[Stage], float]:
    """The stages of a small pool, and the examples on galaxy's lines for each in the pool."""
    warm = replace(size, pool=2000, classes=min(size.classes, 8), batch=100)
    with tempfile.TemporaryDirectory(dir=folder, prefix="tailor-plan-") as where:
        measure_round(write_pool(warm, Path(where) / "warm"), LocalEngine())  # compiles
        pool = write_pool(size, Path(where) / "pool")
        runs = []
        for _ in range(REPEATS):
            model = measure_model(pool, LocalEngine(), Path(where) / "again", steps=STEPS)
            stages, walk = measure_round(pool, LocalEngine())
            runs.append([*model, *stages])
    best = [
        replace(min(same, key=lambda stage: stage.cpu_seconds), peak_mib=same[0].peak_mib) for same in zip(*runs)
    ]
    return best, lines_of(walk) / size.pool


def lines_of(walk: Round) -> int:
    """How many examples stand on galaxy's lines, over all classes."""
    cursors = [c for c in walk._cursors.values() if isinstance(c, GalaxyCursor)]
    return sum(len(graph.line.ids) for cursor in cursors for graph in cursor._graphs)


def extrapolate(stage: str, less: tuple[float, float], more: tuple[float, float], pool: float) -> float:
    """Seconds of a stage at `pool` examples, from (examples, seconds) of two smaller pools."""
    (x0, y0), (x1, y1) = less, more
    if stage in ("train", "plan"):
        return min(y0, y1) * (ALL_STEPS / STEPS if stage == "train" else 1)
    if stage in ("take", "open galaxy", "open galaxy-all") and x1 > x0:  # much of it depends on the batch alone
        return y1 + max(0.0, (y1 - y0) / (x1 - x0)) * (pool - x1)
    return (y0 + y1) / (x0 + x1) * pool


def _kept(stage: str, size: Size, on_lines: float) -> float:
    """Bytes that are kept for every example once this stage is done."""
    opened = list(size.families) if stage == "take" else _up_to(size.families, stage.removeprefix("open "))
    lines = ON_A_LINE * on_lines if any(f.startswith("galaxy") for f in opened) else 0
    return KEPT + lines + sum(KEPT_BY.get(family, 0) for family in opened)


def _up_to(families: tuple[str, ...], stage: str) -> list[str]:
    return list(families[: families.index(stage) + 1]) if stage in families else []
