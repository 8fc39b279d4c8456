"""How much contenders make of few labels: what is read off whole curves, and ranks by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tailor.errors import InputError
from tailor_experiments.comparison import stats
from tailor_experiments.comparison.judging import RANDOM, common_contenders, judged_by
from tailor_experiments.comparison.results import Results
from tailor_experiments.comparison.roles import focused
from tailor_experiments.comparison.rows import Row
from tailor_experiments.comparison.table_format import (
    INTERVALS,
    NO_NUMBER,
    Table,
    interval,
    label_count,
    number,
)


def _area(scores: np.ndarray) -> np.ndarray:
    return scores.mean(-1)


def _last(scores: np.ndarray) -> np.ndarray:
    return scores[..., -1]


#: column -> how it is read off scores (trials, rounds), as one number a trial
READINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "area": _area,
    "first quarter": stats.first_quarter,
    "last": _last,
}


@dataclass(frozen=True)
class Curves:
    """The curves that an experiment's contenders are judged by.

    results   the trials that have a score in every round
    metric    what contenders are judged by
    left_out  how many trials lack a score in some round
    """

    results: Results
    metric: str
    left_out: int

    def scores(self, contender: str, seeds: Sequence[int] | None = None) -> np.ndarray:
        """(trials, rounds), trials in the order of `seeds`, by default of all of them."""
        return self.results.values(contender, self.metric, seeds)

    @property
    def rounds(self) -> int:
        """Scores of a trial, that of the first batch among them."""
        first_trial = next(self.results.trials())
        return len(first_trial)


def whole_curves(results: Results) -> Curves:
    """An experiment's curves; trials without a score in some round are left out and counted.

    Raises InputError where trials have different numbers of rounds.
    """
    metric = judged_by(results)
    due = len(next(results.trials()))
    whole: dict[str, dict[int, list[Row]]] = {}
    left_out = 0
    for contender, trials in results.rows.items():
        for seed, trial in trials.items():
            if len(trial) != due:
                raise InputError(
                    f"{results.name}: {contender!r} with seed {seed} has {len(trial)} scores where "
                    f"the first trial has {due}: compare trials with the same number of rounds"
                )
            # A score that is null in the file becomes NaN.
            scores = np.array([row[metric] for row in trial], float)
            if np.isfinite(scores).all():
                whole.setdefault(contender, {})[seed] = trial
            else:
                left_out += 1
    return Curves(replace(results, rows=whole), metric, left_out)


# ---------------------------------------------------------------------- one experiment


def efficiency(
    results: Results, focus: str | None = None, reach: str | None = None
) -> Table | None:
    """One row a contender, the largest area first. None where no trial has a whole curve.

    focus  the contender that differences are taken to; by default TAILOR
    reach  the contender whose last score is to be reached; by default the one labelled random.
           Where the experiment has no such one, its columns are left out, and the note says so.
    """
    curves = whole_curves(results)
    scored = curves.results
    if not scored.rows:
        return None
    ours = focused(scored, focus)
    goal = reach or RANDOM
    has_goal = goal in scored.rows
    ranks = mean_ranks_by_area(curves, scored.contenders)
    largest_first = sorted(
        scored.contenders, key=lambda contender: -_area(curves.scores(contender)).mean()
    )
    rows = []
    for contender in largest_first:
        cells = [contender, *_readings(curves, contender, ours)]
        if has_goal:
            cells += _labels_to_reach(curves, contender, goal)
        cells.append(_rank(ranks.get(contender)))
        rows.append(tuple(cells))
    columns = [""]
    for reading in READINGS:
        columns += [reading, f"minus {ours}"]
    columns.append("pairs")
    if has_goal:
        columns += [f"labels to reach {goal}", "never"]
    columns.append("mean rank")
    return Table(
        f"{results.name}: label efficiency, {results.metric_label(curves.metric)}",
        tuple(columns),
        tuple(rows),
        _note(curves, ours, goal),
    )


def _readings(curves: Curves, contender: str, ours: str) -> list[str]:
    """Each of READINGS with its difference to ours, and the number of pairs."""
    own_scores = curves.scores(contender)
    seeds = curves.results.common_seeds(contender, ours)
    has_pairs = contender != ours and len(seeds) > 0
    cells = []
    for read in READINGS.values():
        mean = float(read(own_scores).mean())
        cells.append(number(mean, curves.metric))
        if not has_pairs:
            cells.append("")
            continue
        pair = stats.paired(read(curves.scores(contender, seeds)), read(curves.scores(ours, seeds)))
        cells.append(interval(pair, curves.metric))
    cells.append(str(len(seeds)) if has_pairs else "")
    return cells


def labels_to_reach(curves: Curves, contender: str, goal: str) -> np.ndarray:
    """(pairs,) the labels at which each trial's curve first is at least the last score of the
    goal's trial with the same seed; infinite where it never is.
    """
    seeds = curves.results.common_seeds(contender, goal)
    if not seeds:
        return np.empty(0)
    labels = curves.results.values(contender, "labels", seeds)
    scores = curves.scores(contender, seeds)
    targets = _last(curves.scores(goal, seeds))
    needed = []
    for trial_labels, trial_scores, target in zip(labels, scores, targets):
        needed.append(stats.labels_to_between(trial_labels, trial_scores, float(target)))
    return np.array(needed)


def _labels_to_reach(curves: Curves, contender: str, goal: str) -> list[str]:
    """The median, and how many trials never get there."""
    needed = labels_to_reach(curves, contender, goal)
    if len(needed) == 0:
        return [NO_NUMBER, NO_NUMBER]
    median = label_count(float(np.median(needed)), curves.results.total_labels)
    never = np.isinf(needed).sum()
    return [median, f"{never} of {len(needed)}"]


def mean_ranks_by_area(curves: Curves, contenders: Sequence[str]) -> dict[str, float]:
    """The rank of each contender by area among these, in the mean over the seeds that all of them
    have, the best first; empty where they have none in common. Equal areas share their ranks.
    """
    areas_of_seeds = {}
    for seed in curves.results.common_seeds(*contenders):
        areas = {}
        for contender in contenders:
            scores = curves.scores(contender, [seed])
            # Rounded, lest the order in which scores are added break a tie.
            areas[contender] = round(float(_area(scores)[0]), 12)
        areas_of_seeds[str(seed)] = areas
    return stats.mean_ranks(areas_of_seeds)


def _rank(rank: float | None) -> str:
    if rank is None:
        return NO_NUMBER
    return f"{rank:.2f}"


def _note(curves: Curves, ours: str, goal: str) -> str:
    """A sentence for each column, and what is left out."""
    scored = curves.results
    quarter = stats.quarter_of(curves.rounds)
    ranked = len(scored.common_seeds(*scored.contenders))
    sentences = [
        f"Area: the mean score over all {curves.rounds} rounds, that of the first batch included, "
        "in the mean over a contender's own trials.",
        f"First quarter: the same over the first {quarter} of these rounds.",
        "Last: the same after the last round alone.",
        f"Minus {ours}: the number to its left less that of {ours}, paired by seed, {INTERVALS}.",
        "Pairs: the seeds that both have.",
    ]
    if goal in scored.rows:
        sentences += [
            f"Labels to reach {goal}: the fewest labels at which a trial's curve, drawn straight "
            f"from round to round, is at least what {goal} has after its last round with the same "
            "seed; the median over trials, where one that never gets there needs more labels than "
            "it had.",
            f"Never: how many of the trials that are paired with one of {goal} do not get there.",
        ]
    else:
        sentences.append(
            f"Labels to reach another contender are left out, since none is labelled {goal!r} here."
        )
    sentences.append(
        "Mean rank: the place by area among all contenders, 1 is best and equal areas share their "
        f"places, in the mean over the seeds that all of them have ({ranked} here)."
    )
    if curves.left_out:
        sentences.append(
            f"Trials left out, since a round of theirs has no score: {curves.left_out}."
        )
    return " ".join(sentences)


# ---------------------------------------------------------------------- several experiments


def ranks_by_area(experiments: Sequence[Results]) -> Table | None:
    """The mean rank by area over experiments, of contenders that all of them have; None with one
    experiment, and where nothing can be ranked.
    """
    curves_of_all = [whole_curves(results) for results in experiments]
    scored = [curves for curves in curves_of_all if curves.results.rows]
    if len(scored) < 2:
        return None
    common, left_out = common_contenders([curves.results for curves in scored])
    if not common:
        return None
    ranks_of_experiments: dict[str, dict[str, float]] = {}
    for curves in scored:
        ranks = mean_ranks_by_area(curves, common)
        if ranks:
            ranks_of_experiments[curves.results.name] = ranks
    if not ranks_of_experiments:
        return None
    mean_ranks = {}
    for contender in common:
        ranks_here = [ranks[contender] for ranks in ranks_of_experiments.values()]
        mean_ranks[contender] = float(np.mean(ranks_here))
    rows = []
    for contender in sorted(common, key=mean_ranks.__getitem__):
        cells = [_rank(ranks[contender]) for ranks in ranks_of_experiments.values()]
        rows.append((contender, _rank(mean_ranks[contender]), *cells))
    unranked = len(experiments) - len(ranks_of_experiments)
    return Table(
        f"Mean rank by area over {len(ranks_of_experiments)} experiments",
        ("", "rank", *ranks_of_experiments),
        tuple(rows),
        _note_of_ranks(unranked, left_out),
    )


def _note_of_ranks(unranked: int, left_out: Sequence[str]) -> str:
    """unranked: how many experiments; left_out: contenders that some experiments lack."""
    sentences = [
        "Rank: the mean of the columns to its right; every experiment counts the same.",
        "Each of these: the place by area (the mean score over all rounds) among the contenders of "
        "this table, 1 is best and equal areas share their places, in the mean over the seeds that "
        "all of them have.",
    ]
    if unranked:
        sentences.append(
            f"Experiments left out, since no seed has a whole curve of each contender: {unranked}."
        )
    if left_out:
        names = "; ".join(left_out)
        sentences.append(f"Contenders left out, since not all experiments have them: {names}.")
    return " ".join(sentences)
