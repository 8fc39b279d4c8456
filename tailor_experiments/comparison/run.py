"""All trials of an experiment, several at once, each going on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import asdict
from pathlib import Path

from tailor.errors import InputError
from tailor.models.base import ProgressCallback, quiet
from tailor.run.state import RunState
from tailor_experiments.comparison.experiment import Contender, Experiment
from tailor_experiments.comparison.parallel import report, run_all
from tailor_experiments.comparison.rows import ROWS, Row, collect, read_rows
from tailor_experiments.comparison.trial import (
    CACHE,
    Trial,
    check_config,
    trial_folder,
    trial_settings,
)
from tailor_experiments.comparison.trial_data import dataset, material
from tailor_experiments.datasets.base import Dataset


def prepare(
    experiment: Experiment,
    out: Path,
    progress: ProgressCallback = quiet,
    *,
    only: Sequence[str] = (),
    cache: Path | None = None,
) -> Experiment:
    """Check everything and compute what all trials share (features) -> the experiment, complete.

    only   labels of the contenders that run; by default all
    cache  a folder for the features, which several experiments may share; by default OUT/cache
    """
    data = dataset(experiment, fresh=True)
    full = experiment.complete(data.task.kind).changed(only=only)
    _check_contenders(full, data)
    _check_labels(full, data)
    for contender, seed in trials(full):
        check_config(trial_folder(out, contender, seed), full.trial_config(contender, seed))
    out.mkdir(parents=True, exist_ok=True)
    if not unfinished(full, out):
        return full
    shared = material(full, cache or out / CACHE, full.seed)
    shared.model.prepare(progress)
    if shared.test_model is not None:
        shared.test_model.prepare(progress)
    text = json.dumps(asdict(full), indent=1)
    (out / "experiment.json").write_text(text, encoding="utf-8")
    return full


def _check_contenders(experiment: Experiment, data: Dataset) -> None:
    """Each must be able to begin, before any of them does."""
    for contender in experiment.contenders:
        settings = trial_settings(
            experiment,
            contender,
            experiment.seed,
            data,
        )
        try:
            RunState(settings)
        except InputError as error:
            raise InputError(f"contender {contender.label!r}: {error}") from error


def _check_labels(experiment: Experiment, data: Dataset) -> None:
    needed = (experiment.rounds + 1) * experiment.batch
    if needed > len(data.pool):
        raise InputError(
            f"{experiment.rounds} rounds of {experiment.batch} after {experiment.batch} random "
            f"ones are {needed} labels, more than the pool's {len(data.pool)}: ask for fewer "
            "rounds or a smaller batch"
        )


def trials(experiment: Experiment) -> list[tuple[Contender, int]]:
    """Every contender with every seed, all contenders of a seed before the next seed."""
    seeds = range(experiment.seed, experiment.seed + experiment.trials)
    return [(contender, seed) for seed in seeds for contender in experiment.contenders]


def unfinished(experiment: Experiment, out: Path) -> list[tuple[Contender, int]]:
    """Trials that lack rows."""
    rows_of_a_trial = experiment.rounds + 1
    return [
        (contender, seed)
        for contender, seed in trials(experiment)
        if _rows_done(out, contender, seed) < rows_of_a_trial
    ]


def rows_done(experiment: Experiment, out: Path) -> dict[str, int]:
    """label -> rows that are there already."""
    counts = {contender.label: 0 for contender in experiment.contenders}
    for contender, seed in trials(experiment):
        counts[contender.label] += _rows_done(out, contender, seed)
    return counts


def _rows_done(out: Path, contender: Contender, seed: int) -> int:
    return len(read_rows(trial_folder(out, contender, seed) / ROWS))


def one_trial(
    experiment: Experiment,
    contender: Contender,
    seed: int,
    out: Path,
    cache: Path | None,
) -> None:
    """In a worker: run a trial, and report its rows."""
    trial = Trial(experiment, contender, seed, out, cache=cache)
    trial.run(report)


def run(
    experiment: Experiment,
    out: Path,
    workers: int = 1,
    *,
    cache: Path | None = None,
) -> Generator[Row, None, None]:
    """The new rows of every trial, as they come. The experiment must come from prepare()."""
    jobs = [
        (experiment, contender, seed, out, cache) for contender, seed in unfinished(experiment, out)
    ]
    if jobs:
        yield from run_all(one_trial, jobs, min(workers, len(jobs)))
    collect(out)
