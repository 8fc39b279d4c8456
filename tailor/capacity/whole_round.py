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
        temporary = Path(name)
        stages = list[Stage]()
        _warm_up(size, temporary / "warm", device)
        with _engine(size, temporary, device, workers, stages) as engine:
            # A worker takes whole shards: small ones, so that the work can be shared out evenly.
            if workers:
                shard = PART
            else:
                shard = CHUNK
            pool = write_pool(size, temporary / "pool", shard)
            model = None
            if size.features:
                model = train(stages, pool, device, steps)
            runs = list[list[Stage]]()
            started = time.perf_counter()
            while not runs or time.perf_counter() - started < enough:
                run = list[Stage]()
                if model is not None:
                    predict(
                        run,
                        pool,
                        model,
                        engine,
                        temporary / "predictions",
                        device,
                    )
                round_stages, _ = measure_round(pool, engine, device=device)
                runs.append(run + round_stages)
    by_stage = zip(*runs)
    medians = [median(same_stage) for same_stage in by_stage]
    return stages + medians


def median(runs: Sequence[Stage]) -> Stage:
    """Of one stage's runs, with the memory of the first: later ones find some that was not given
    back.
    """
    by_time = sorted(runs, key=lambda stage: stage.cpu_seconds)
    middle = (len(runs) - 1) // 2
    first_run = runs[0]
    return replace(by_time[middle], peak_mib=first_run.peak_mib)


def in_own_process(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """What the function gives, called in a new process: memory that other work left behind in this
    one would count. Raises TailorError where the process was killed.
    """
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as process:
        try:
            future = process.submit(function, *arguments, **options)
            return future.result()
        except BrokenProcessPool:
            raise TailorError(
                "the process that ran the round was killed, most likely for want of memory"
            ) from None


def _warm_up(
    size: PoolSize,
    folder: Path,
    device: str,
    engine: Engine | None = None,
) -> None:
    """Every stage once, on a small pool of several shards: libraries are loaded and loops
    compiled.
    """
    engine = engine or LocalEngine()
    ignored = list[Stage]()
    small = replace(
        size,
        pool=2048,
        classes=min(size.classes, 8),
        batch=100,
    )
    rows = small.pool // (4 * engine.workers)
    pool = write_pool(small, folder / "pool", rows)
    if size.features:
        model = train(ignored, pool, device)
        predict(
            ignored,
            pool,
            model,
            engine,
            folder / "predictions",
            device,
        )
    measure_round(pool, engine, device=device)


@contextmanager
def _engine(
    size: PoolSize,
    folder: Path,
    device: str,
    workers: int,
    stages: list[Stage],
) -> Iterator[Engine]:
    """This process, or Ray with every worker warmed up, which is a stage of its own."""
    if not workers:
        yield LocalEngine()
        return
    from tailor.compute.ray_engine import RayEngine

    with measured(stages, START, device):
        engine = RayEngine(tasks=workers)
        ready = folder / "workers"
        ready.mkdir()
        numbers = [(number,) for number in range(workers)]
        shared = (size, ready, device, workers)
        engine.map(_warm_worker, numbers, shared=shared)
        # Arrays that Ray sends are read-only: numba compiles for those again.
        _warm_up(size, folder / "together", device, engine)
    with engine:
        yield engine


def _warm_worker(shared: tuple[PoolSize, Path, str, int], number: int) -> None:
    """In a worker, which stays here until all others are there too: no worker can take two of
    these.
    """
    size, folder, device, workers = shared
    _warm_up(size, folder / str(number), device)
    ready_file = folder / f"{number}.ready"
    ready_file.write_text(str(os.getpid()))
    deadline = time.monotonic() + PATIENCE
    while len(list(folder.glob("*.ready"))) < workers:
        if time.monotonic() > deadline:
            raise TailorError(
                f"not all of {workers} workers were ready within {PATIENCE} seconds: measure fewer"
            )
        time.sleep(0.05)
