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
from tailor_experiments.comparison.material import dataset, material
from tailor_experiments.comparison.parallel import report, run_all
from tailor_experiments.comparison.rows import ROWS, Row, collect, read_rows
from tailor_experiments.comparison.trial import (
    CACHE,
    Trial,
    check_config,
    trial_folder,
    trial_settings,
)


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
    for contender in full.contenders:
        try:
            RunState(trial_settings(full, contender, full.seed, data))
        except InputError as error:
            raise InputError(f"contender {contender.label!r}: {error}") from error
    needed = (full.rounds + 1) * full.batch
    if needed > len(data.pool):
        raise InputError(
            f"{full.rounds} rounds of {full.batch} after {full.batch} random ones are {needed} "
            "labels, more than the "
            f"pool's {len(data.pool)}: ask for fewer rounds or a smaller batch"
        )
    for contender, seed in trials(full):
        check_config(trial_folder(out, contender, seed), full.trial_config(contender, seed))
    out.mkdir(parents=True, exist_ok=True)
    if not unfinished(full, out):
        return full
    shared = material(full, cache or out / CACHE, full.seed)
    shared.model.prepare(progress)
    if shared.test_model is not None:
        shared.test_model.prepare(progress)
    (out / "experiment.json").write_text(json.dumps(asdict(full), indent=1), encoding="utf-8")
    return full


def trials(experiment: Experiment) -> list[tuple[Contender, int]]:
    """Every contender with every seed, all contenders of a seed before the next seed."""
    seeds = range(experiment.seed, experiment.seed + experiment.trials)
    return [(contender, seed) for seed in seeds for contender in experiment.contenders]


def unfinished(experiment: Experiment, out: Path) -> list[tuple[Contender, int]]:
    """Trials that lack rows."""

    def rows(contender: Contender, seed: int) -> int:
        return len(read_rows(trial_folder(out, contender, seed) / ROWS))

    return [(c, seed) for c, seed in trials(experiment) if rows(c, seed) <= experiment.rounds]


def rows_done(experiment: Experiment, out: Path) -> dict[str, int]:
    """label -> rows that are there already."""
    found = dict.fromkeys((c.label for c in experiment.contenders), 0)
    for contender, seed in trials(experiment):
        found[contender.label] += len(read_rows(trial_folder(out, contender, seed) / ROWS))
    return found


def one_trial(
    experiment: Experiment, contender: Contender, seed: int, out: Path, cache: Path | None
) -> None:
    """In a worker."""
    Trial(experiment, contender, seed, out, cache=cache).run(report)


def run(
    experiment: Experiment, out: Path, workers: int = 1, *, cache: Path | None = None
) -> Generator[Row, None, None]:
    """The new rows of every trial, as they come. The experiment must come from prepare()."""
    jobs = [(experiment, c, seed, out, cache) for c, seed in unfinished(experiment, out)]
    if jobs:
        yield from run_all(one_trial, jobs, min(workers, len(jobs)))
    collect(out)
