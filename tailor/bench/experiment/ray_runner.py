"""Trials as tasks of a Ray cluster, each with the resources it asks for. Beside `parallel`, with the same reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from tailor.bench.experiment import parallel
from tailor.bench.experiment.config import Experiment
from tailor.bench.experiment.rows import Row, collect
from tailor.bench.experiment.run import one_trial, unfinished
from tailor.engine.ray_engine import PATIENCE, RayEngine, clear_errors, use_threads


def run(
    engine: RayEngine, experiment: Experiment, out: Path, *, cache: Path | None = None
) -> Generator[Row, None, None]:
    """The new rows of every trial, as they come. The experiment must come from prepare(): workers have folders of their
    own, so no path may be relative."""
    out, cache = out.absolute(), None if cache is None else cache.absolute()
    jobs = [(experiment, contender, seed, out, cache) for contender, seed in unfinished(experiment, out)]
    if jobs:
        yield from run_all(engine, one_trial, jobs)
    collect(out)


def run_all(engine: RayEngine, job: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """Call job(*args) for each on the cluster -> what they report(), as it comes.

    Each takes the engine's cpus and gpus. A trial whose worker or node is lost starts again and goes on where it
    stood, so its folder must lie where every node sees it. The first error ends all.
    """
    ray = engine._ray
    from ray.util.queue import Queue

    task = ray.remote(num_cpus=engine.cpus, num_gpus=engine.gpus or None, max_retries=engine.retries)(_trial)
    reports = Queue(actor_options={"num_cpus": 0})
    pending, look = [task.remote(reports, engine.cpus, job, args) for args in jobs], time.monotonic() + PATIENCE
    try:
        with clear_errors(ray):
            while pending:
                done, pending = ray.wait(pending, timeout=parallel.PACE)
                if time.monotonic() > look:  # the one node that had room for a trial may be lost
                    engine.check_room(engine.gpus)
                    look = time.monotonic() + PATIENCE
                yield from _waiting(reports)
                for reference in done:
                    ray.get(reference)
            yield from _waiting(reports)
    finally:
        for reference in pending:
            ray.cancel(reference, force=True)
        reports.shutdown(force=True)


def _waiting(reports: Any) -> list[Any]:
    count = reports.qsize()
    return reports.get_nowait_batch(count) if count else []


def _trial(reports: Any, threads: int, job: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """In a worker."""
    use_threads(threads)
    parallel._reports = reports
    job(*args)
