"""Curves over the labels or rounds of an experiment, with their spread over trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np

from tailor_experiments.comparison import stats
from tailor_experiments.comparison.results import Results
from tailor_experiments.comparison.rows import Row
from tailor_experiments.figures import Curves


def metric_curves(
    results: Results,
    metric: str,
    window: int = 3,
    only: Sequence[str] | None = None,
    minus: str | None = None,
) -> Curves:
    """contender -> labels (rounds,), mean (rounds,), standard error (rounds,).

    window  rounds over which curves are smoothed
    only    these contenders; by default all
    minus   a contender that is subtracted from each, seed by seed; those that share no seed with
            it are left out
    """
    # The random batch at the start has no pulls.
    first_round = 1 if metric == "top_pulls" else 0
    contenders = results.contenders if only is None else only
    curves = {}
    for contender in contenders:
        if minus is None:
            values = results.values(contender, metric)
        else:
            seeds = results.common_seeds(contender, minus)
            if contender == minus or not seeds:
                continue
            subtracted = results.values(minus, metric, seeds)
            values = results.values(contender, metric, seeds) - subtracted
        labels = results.labels(contender)[first_round:]
        shown_values = values[:, first_round:]
        mean, error = _mean_and_error(shown_values, window)
        curves[contender] = (labels, mean, error)
    return curves


def arm_curves(results: Results, contender: str, top: int = 10, window: int = 3) -> Curves:
    """arm -> rounds, mean and standard error of its pulls; of the `top` arms pulled most."""
    trials = list(results.rows[contender].values())
    total_pulls: Counter[str] = Counter()
    for row in chain.from_iterable(trials):
        total_pulls.update(row["pulls"])
    curves = {}
    for arm, _ in total_pulls.most_common(top):
        pulls = np.array([_pulls_of(arm, trial) for trial in trials], float)
        mean, error = _mean_and_error(pulls, window)
        rounds = np.arange(1, len(mean) + 1)
        curves[arm] = (rounds, mean, error)
    return curves


def _pulls_of(arm: str, trial: list[Row]) -> list[int]:
    """By round, without the random batch at the start, in which no arm is pulled."""
    return [row["pulls"].get(arm, 0) for row in trial[1:]]


def _mean_and_error(values: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """values (trials, n), smoothed -> mean (n,) and standard error (n,), 0 with one trial."""
    smoothed = stats.smooth(values, window)
    mean = smoothed.mean(0)
    trials = len(smoothed)
    if trials < 2:
        return mean, np.zeros_like(mean)
    error = smoothed.std(0, ddof=1) / np.sqrt(trials)
    return mean, error
