"""The trials of an experiment from the command line: bars, trackers, a cluster."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from tailor.compute.ray_engine import RayEngine
    from tailor.models.base import ProgressCallback
    from tailor_experiments.comparison.experiment import Experiment
    from tailor_experiments.comparison.rows import Row
    from tailor_experiments.comparison.trackers import Tracker

#: the bar above those of the contenders
ALL = "all trials"


def run_trials(
    experiment: Experiment,
    out: Path | None,
    *,
    cache: Path | None,
    only: Sequence[str],
    workers: int,
    track: Sequence[str],
    cluster: dict[str, Any] | None,
) -> None:
    """Run all trials that are not through, with a bar for each contender.

    out      the results folder; by default results/NAME
    cache    a folder for features; by default in the results folder
    only     labels of the contenders that run; none: all of them
    track    names of trackers that hear of every row
    cluster  what RayEngine is made with; None: the trials run here
    """
    from tailor.cli.terminal import interruptible, progress_bars
    from tailor_experiments.comparison.run import prepare, rows_done
    from tailor_experiments.comparison.trackers import make_tracker

    folder = out or Path("results") / experiment.name
    # What goes on where this stopped, told to whoever interrupts it.
    command = f"tailor {shlex.join(sys.argv[1:])}"
    with interruptible(command), contextlib.ExitStack() as stack:
        trackers = []
        for name in track:
            tracker = make_tracker(name, folder, lambda text: typer.echo(text, err=True))
            trackers.append(stack.enter_context(contextlib.closing(tracker)))
        # A cluster that can't be reached is told of before anything that takes long.
        engine = None
        if cluster is not None:
            engine = stack.enter_context(_make_engine(cluster))
        with progress_bars() as step:
            full = prepare(
                experiment,
                folder,
                step,
                only=only,
                cache=cache,
            )
        done = rows_done(full, folder)
        rows = _start(
            full,
            folder,
            cache,
            workers,
            engine,
        )
        # Closed when interrupted too, which ends the workers.
        stack.enter_context(contextlib.closing(rows))
        rows_a_contender = full.trials * (full.rounds + 1)
        with progress_bars() as step:
            _follow(
                rows,
                done,
                rows_a_contender,
                trackers,
                step,
            )
    total = sum(done.values())
    typer.echo(f"{total} rows in {folder}. Look at them with: tailor bench report {folder}")


def _make_engine(options: dict[str, Any]) -> RayEngine:
    from tailor.compute.ray_engine import RayEngine

    return RayEngine(**options)


def _start(
    experiment: Experiment,
    folder: Path,
    cache: Path | None,
    workers: int,
    engine: RayEngine | None,
) -> Generator[Row, None, None]:
    """The new rows, as they come."""
    if engine is None:
        from tailor_experiments.comparison.run import run

        return run(
            experiment,
            folder,
            workers,
            cache=cache,
        )
    from tailor_experiments.comparison import ray_runner

    return ray_runner.run(
        engine,
        experiment,
        folder,
        cache=cache,
    )


def _follow(
    rows: Generator[Row, None, None],
    done: dict[str, int],
    total: int,
    trackers: Sequence[Tracker],
    step: ProgressCallback,
) -> None:
    """Count rows as they come, contender by contender.

    done   label -> rows that are there; counted on
    total  rows that a contender will have
    """
    total_of_all = total * len(done)
    done_of_all = sum(done.values())
    clock = _Clock(done_of_all)
    step(done_of_all, total_of_all, ALL)
    for row in rows:
        contender = row["contender"]
        done[contender] += 1
        done_of_all += 1
        step(done_of_all, total_of_all, ALL)
        clock.tell(done_of_all, total_of_all)
        step(done[contender], total, contender)
        for tracker in trackers:
            tracker.row(row)


def cluster_options(ray: str | None, cpus: int | None, gpus: float | None) -> dict[str, Any] | None:
    """What RayEngine is made with; None without a cluster."""
    from tailor.errors import InputError

    if ray is None and (cpus, gpus) != (None, None):
        raise InputError(
            "--cpus and --gpus are what a trial gets on a cluster: give the cluster's address "
            "with --ray"
        )
    if ray is None:
        return None
    return {
        "address": ray,
        "cpus": cpus or 1,
        "gpus": gpus or 0,
    }


class _Clock:
    """Where there is no terminal for bars: a line now and then that says how far it is, for a
    log.

    done_before  rows that were there when it began
    pace         seconds between two lines
    """

    def __init__(self, done_before: int, pace: float = 60.0) -> None:
        self._done_before = done_before
        self._pace = pace
        self._began = time.monotonic()
        self._last_told = self._began

    def tell(self, done: int, total: int) -> None:
        now = time.monotonic()
        # A terminal has bars.
        if sys.stderr.isatty() or now - self._last_told < self._pace:
            return
        self._last_told = now
        elapsed = now - self._began
        seconds_a_row = elapsed / (done - self._done_before)
        minutes_left = seconds_a_row * (total - done) / 60
        typer.echo(f"{done} of {total} rows, about {minutes_left:.0f} min left", err=True)
