"""A whole round in a process of its own, warmed up first: what a forecast's probes and a
benchmark's points share.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ParamSpec, TypeVar

from tailor.capacity.sharded_pool import write_pool
from tailor.capacity.stages import Stage, measure_round, measured, predict, train
from tailor.capacity.synthetic_pool import CHUNK, PoolSize
from tailor.compute import Engine, LocalEngine
from tailor.errors import TailorError
from tailor.selection.pool_view import CHUNK as PART

#: all stages together
WHOLE = "whole round"
#: getting Ray's workers going: no part of a round
START = "start workers"
#: seconds that all workers together have for it
PATIENCE = 180

P = ParamSpec("P")
T = TypeVar("T")


def whole_round(
    size: PoolSize,
    folder: Path | None = None,
    *,
    device: str = "cpu",
    workers: int = 0,
    steps: int | None = None,
    enough: float = 0,
) -> list[Stage]:
    """The stages of training, predicting and choosing once. Compiling is done before, on a small
    pool.

    folder   for the shards, by default temporary
    workers  of Ray; 0: this process does it
    steps    of training, by default all
    enough   seconds: what takes less is repeated until then, and of each stage the median counts
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix="tailor-bench-") as name:
        where = Path(name)
        stages = list[Stage]()
        _warm_up(size, where / "warm", device)
        with _engine(size, where, device, workers, stages) as engine:
            # A worker takes whole shards: small ones, so that the work can be shared out evenly.
            pool = write_pool(size, where / "pool", PART if workers else CHUNK)
            model = train(stages, pool, device, steps) if size.features else None
            runs = list[list[Stage]]()
            started = time.perf_counter()
            while not runs or time.perf_counter() - started < enough:
                runs.append([])
                if model is not None:
                    predict(runs[-1], pool, model, engine, where / "predictions", device)
                runs[-1] += measure_round(pool, engine, device=device)[0]
    return stages + [median(same) for same in zip(*runs)]


def median(same: Sequence[Stage]) -> Stage:
    """Of one stage's runs, with the memory of the first: later ones find some that was not given
    back.
    """
    return replace(
        sorted(same, key=lambda stage: stage.cpu_seconds)[(len(same) - 1) // 2],
        peak_mib=same[0].peak_mib,
    )


def in_own_process(function: Callable[P, T], *given: P.args, **options: P.kwargs) -> T:
    """Memory that other work left behind in this process would count."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as process:
        try:
            return process.submit(function, *given, **options).result()
        except BrokenProcessPool:
            raise TailorError(
                "the process that ran the round was killed, most likely for want of memory"
            ) from None


def _warm_up(size: PoolSize, folder: Path, device: str, engine: Engine | None = None) -> None:
    """Every stage once, on a small pool of several shards: libraries are loaded and loops
    compiled.
    """
    engine = engine or LocalEngine()
    ignored = list[Stage]()
    small = replace(size, pool=2048, classes=min(size.classes, 8), batch=100)
    pool = write_pool(small, folder / "pool", small.pool // (4 * engine.workers))
    if size.features:
        predict(ignored, pool, train(ignored, pool, device), engine, folder / "predictions", device)
    measure_round(pool, engine, device=device)


@contextmanager
def _engine(
    size: PoolSize, where: Path, device: str, workers: int, stages: list[Stage]
) -> Iterator[Engine]:
    """This process, or Ray with every worker warmed up, which is a stage of its own."""
    if not workers:
        yield LocalEngine()
        return
    from tailor.compute.ray_engine import RayEngine

    with measured(stages, START, device):
        engine = RayEngine(tasks=workers)
        (where / "workers").mkdir()
        engine.map(
            _warm_worker,
            [(n,) for n in range(workers)],
            shared=(size, where / "workers", device, workers),
        )
        _warm_up(
            size, where / "together", device, engine
        )  # arrays that Ray sends are read-only: compiled for again
    with engine:
        yield engine


def _warm_worker(shared: tuple[PoolSize, Path, str, int], number: int) -> None:
    """In a worker, which stays here until all others are there too: no worker can take two of
    these.
    """
    size, folder, device, workers = shared
    mine = folder / str(number)
    _warm_up(size, mine, device)
    (folder / f"{number}.ready").write_text(str(os.getpid()))
    until = time.monotonic() + PATIENCE
    while len(list(folder.glob("*.ready"))) < workers:
        if time.monotonic() > until:
            raise TailorError(
                f"not all of {workers} workers were ready within {PATIENCE} seconds: measure fewer"
            )
        time.sleep(0.05)
