"""Trials as tasks of a Ray cluster, each with the resources it asks for. Beside `parallel`, with
the same reports.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from tailor.compute.ray_engine import PATIENCE, RayEngine, clear_errors, use_threads
from tailor.errors import InputError
from tailor_experiments.comparison.experiment import Experiment
from tailor_experiments.comparison.parallel import PACE, report_to
from tailor_experiments.comparison.rows import Row, collect
from tailor_experiments.comparison.run import one_trial, unfinished


def run(
    engine: RayEngine,
    experiment: Experiment,
    out: Path,
    *,
    cache: Path | None = None,
) -> Generator[Row, None, None]:
    """The new rows of every trial, as they come. The experiment must come from prepare()."""
    jobs = [
        (experiment, contender, seed, out, cache) for contender, seed in unfinished(experiment, out)
    ]
    if jobs:
        yield from run_all(engine, one_trial, jobs)
    collect(out)


def run_all(
    engine: RayEngine, job: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]
) -> Iterator[Any]:
    """Call job(*args) for each on the cluster -> what they report(), as it comes.

    Each takes the engine's cpus and gpus. A trial whose worker or node is lost starts again and
    goes on where it stood, so this process's folder, where paths begin that are relative, must be
    seen by every node. The first error ends all.
    """
    ray = engine.ray
    from ray.util.queue import Queue

    with_resources = ray.remote(
        num_cpus=engine.cpus, num_gpus=engine.gpus or None, max_retries=engine.retries
    )
    task = with_resources(_run_job)
    # The queue's actor only waits: it must not take a core from a trial.
    reports = Queue(actor_options={"num_cpus": 0})
    # Relative paths of a job begin here, wherever it runs.
    home = os.getcwd()
    pending = [
        task.remote(
            reports,
            engine.cpus,
            home,
            job,
            args,
        )
        for args in jobs
    ]
    next_look = time.monotonic() + PATIENCE
    try:
        with clear_errors(ray):
            while pending:
                done, pending = ray.wait(pending, timeout=PACE)
                if time.monotonic() > next_look:
                    # The one node that had room for a trial may be lost.
                    engine.check_room(engine.gpus)
                    next_look = time.monotonic() + PATIENCE
                yield from _reported(reports)
                for reference in done:
                    ray.get(reference)
            yield from _reported(reports)
    finally:
        for reference in pending:
            # Rows that are written stay: a trial goes on where it stood.
            ray.cancel(reference, force=True)
        reports.shutdown(force=True)


def _reported(reports: Any) -> list[Any]:
    count = reports.qsize()
    return reports.get_nowait_batch(count) if count else []


def _run_job(
    reports: Any,
    threads: int,
    home: str,
    job: Callable[..., Any],
    args: tuple[Any, ...],
) -> None:
    """In a worker, which Ray starts in a folder of its own."""
    use_threads(threads)
    report_to(reports)
    try:
        os.chdir(home)
    except OSError as problem:
        raise InputError(
            f"a node of the cluster does not see the folder {home}: {problem.strerror}"
        ) from problem
    job(*args)
