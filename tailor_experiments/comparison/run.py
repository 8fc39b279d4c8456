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
    _check_begun(full, out)
    out.mkdir(parents=True, exist_ok=True)
    if not unfinished(full, out):
        return full
    _prepare_models(full, cache or out / CACHE, progress)
    text = json.dumps(asdict(full), indent=1)
    (out / "experiment.json").write_text(text, encoding="utf-8")
    return full


def _prepare_models(experiment: Experiment, cache: Path, progress: ProgressCallback) -> None:
    """Compute features once, before several processes would each do it."""
    for contender in _one_for_each_model(experiment):
        shared = material(
            experiment,
            contender,
            cache,
            experiment.seed,
        )
        shared.model.prepare(progress)
        if shared.test_model is not None:
            shared.test_model.prepare(progress)


def _check_begun(experiment: Experiment, out: Path) -> None:
    """Trials that were begun before must have had the same configuration."""
    for contender, seed in trials(experiment):
        folder = trial_folder(out, contender, seed)
        config = experiment.trial_config(contender, seed)
        check_config(folder, config)


def _one_for_each_model(experiment: Experiment) -> list[Contender]:
    """Contenders whose models differ; of those with the same model, the first."""
    by_model: dict[str, Contender] = {}
    for contender in experiment.contenders:
        model = json.dumps(experiment.model_of(contender))
        # Features depend on the model alone, and not on who chooses.
        by_model.setdefault(model, contender)
    return list(by_model.values())


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
            # Made and dropped: unknown families and options show here, not hours later.
            RunState(settings)
        except InputError as error:
            raise InputError(f"contender {contender.label!r}: {error}") from error


def _check_labels(experiment: Experiment, data: Dataset) -> None:
    batch = experiment.batch
    rounds = experiment.rounds
    size = len(data.pool)
    needed = (rounds + 1) * batch
    if needed > size:
        raise InputError(
            f"{rounds} rounds of {batch} after {batch} random ones are {needed} labels, more than "
            f"the pool's {size}: ask for fewer rounds or a smaller batch"
        )


def trials(experiment: Experiment) -> list[tuple[Contender, int]]:
    """Every contender with every seed, all contenders of a seed before the next seed."""
    end = experiment.seed + experiment.trials
    pairs = []
    # So that all contenders can be compared after the first seed.
    for seed in range(experiment.seed, end):
        for contender in experiment.contenders:
            pairs.append((contender, seed))
    return pairs


def unfinished(experiment: Experiment, out: Path) -> list[tuple[Contender, int]]:
    """Trials that lack rows."""
    # One for the random batch, too.
    rows_of_a_trial = experiment.rounds + 1
    return [pair for pair in trials(experiment) if _rows_done(out, *pair) < rows_of_a_trial]


def rows_done(experiment: Experiment, out: Path) -> dict[str, int]:
    """label -> rows that are there already."""
    counts = {contender.label: 0 for contender in experiment.contenders}
    for contender, seed in trials(experiment):
        counts[contender.label] += _rows_done(out, contender, seed)
    return counts


def _rows_done(out: Path, contender: Contender, seed: int) -> int:
    path = trial_folder(out, contender, seed) / ROWS
    return len(read_rows(path))


def one_trial(
    experiment: Experiment,
    contender: Contender,
    seed: int,
    out: Path,
    cache: Path | None,
) -> None:
    """In a worker: run a trial, and report its rows."""
    trial = Trial(
        experiment,
        contender,
        seed,
        out,
        cache=cache,
    )
    trial.run(report)


def run(
    experiment: Experiment,
    out: Path,
    workers: int = 1,
    *,
    cache: Path | None = None,
) -> Generator[Row, None, None]:
    """The new rows of every trial, as they come. The experiment must come from prepare()."""
    pairs = unfinished(experiment, out)
    jobs = [(experiment, *pair, out, cache) for pair in pairs]
    if jobs:
        yield from run_all(one_trial, jobs, min(workers, len(jobs)))
    # In one file for whoever reads them; trials write to files of their own.
    collect(out)
