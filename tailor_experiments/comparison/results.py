"""The rows of one experiment as arrays of numbers: contender by trial by round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from tailor_experiments.comparison import stats
from tailor_experiments.comparison.rows import Row

#: column of a row -> what figures and tables call it
METRICS = {
    "score": "",  # the row's own metric
    "test_score": "",
    "rarest_accuracy": "rarest class's accuracy (pool)",
    "test_rarest_accuracy": "rarest class's accuracy (test)",
    "rarest": "labels in rarest class",
    "imbalance": "imbalance ratio of labels",
    "positives": "total positives",
}
#: not a column, but the area under the curve of the main metric
AREA = "area"


@dataclass(frozen=True)
class Results:
    """The whole trials of one experiment.

    rows        contender -> seed -> rows by round; trials that are not through yet are left out
    unfinished  how many those are
    model       None where the rows are older than that column
    """

    name: str
    rows: dict[str, dict[int, list[Row]]]
    unfinished: int
    model: str | None = None

    @property
    def contenders(self) -> list[str]:
        return list(self.rows)

    def trials(self) -> Iterator[list[Row]]:
        """The rows of each trial, by round."""
        for trials in self.rows.values():
            yield from trials.values()

    @cached_property
    def all_rows(self) -> list[Row]:
        return list(chain.from_iterable(self.trials()))

    @property
    def first_row(self) -> Row:
        """A row, for what all of the experiment's rows have in common."""
        return self.all_rows[0]

    def sample(self, contender: str) -> Row:
        """A row, for what all of a contender's rows have in common."""
        trials = self.rows[contender]
        first_trial = next(iter(trials.values()))
        return first_trial[0]

    # ------------------------------------------------------------------ what was measured

    @cached_property
    def metrics(self) -> list[str]:
        """Those that every row has. In multi-class total positives are the labels, and say
        nothing.
        """
        in_every_row = set(METRICS)
        # Older rows have fewer columns.
        for row in self.all_rows:
            in_every_row.intersection_update(row)
        if self.first_row["task"] != "multi-label":
            in_every_row.discard("positives")
        # In the order of METRICS, which figures and tables have.
        return [metric for metric in METRICS if metric in in_every_row]

    @property
    def main_metric(self) -> str:
        """The score on the test set where there is one, else on the pool."""
        if "test_score" in self.metrics:
            return "test_score"
        return "score"

    def metric_label(self, metric: str) -> str:
        """What figures and tables call a metric."""
        if metric == AREA:
            return "area under curve"
        # These two are of whatever metric the experiment has.
        if metric == "score":
            return f"{self.first_row['metric']} (pool)"
        if metric == "test_score":
            return f"{self.first_row['metric']} (test)"
        return METRICS[metric]

    @property
    def total_labels(self) -> int:
        """Labels after the last round."""
        last_counts = []
        for contender in self.rows:
            counts = self.labels(contender)
            last_counts.append(counts[-1])
        return int(max(last_counts))

    @cached_property
    def measured_at(self) -> set[int]:
        """Numbers of labels at which every trial has a row."""
        counts_of_trials = []
        for trial in self.trials():
            counts = {row["labels"] for row in trial}
            counts_of_trials.append(counts)
        return set.intersection(*counts_of_trials)

    def common_seeds(self, *contenders: str) -> list[int]:
        """The seeds that all of these contenders have, in order."""
        seeds_of_contenders = []
        for contender in contenders:
            seeds = set(self.rows[contender])
            seeds_of_contenders.append(seeds)
        common = set.intersection(*seeds_of_contenders)
        return sorted(common)

    # ------------------------------------------------------------------ numbers of a contender

    def labels(self, contender: str) -> np.ndarray:
        """(rounds,) labels after each round."""
        counts = self.values(contender, "labels")
        return counts.mean(0)

    def values(
        self,
        contender: str,
        metric: str,
        seeds: Sequence[int] | None = None,
    ) -> np.ndarray:
        """(trials, rounds) float64, trials in the order of `seeds`, by default of all of them."""
        trials = self.rows[contender]
        if seeds is None:
            seeds = sorted(trials)
        curves = []
        for seed in seeds:
            curve = [row[metric] for row in trials[seed]]
            curves.append(curve)
        return np.array(curves, float)

    def final_values(
        self,
        contender: str,
        metric: str,
        seeds: Sequence[int] | None = None,
    ) -> np.ndarray:
        """(trials,) of a metric after the last round."""
        curves = self.values(contender, metric, seeds)
        return curves[:, -1]

    def values_at(
        self,
        labels: int,
        contender: str,
        metric: str,
        seeds: Sequence[int],
    ) -> np.ndarray:
        """(trials,) of a metric when there were so many labels."""
        trials = self.rows[contender]
        values = []
        for seed in seeds:
            for row in trials[seed]:
                if row["labels"] == labels:
                    values.append(row[metric])
        return np.array(values, float)

    def areas(
        self,
        contender: str,
        metric: str,
        seeds: Sequence[int] | None = None,
    ) -> np.ndarray:
        """(trials,) the area under a metric's curve over its width: the mean over labels."""
        labels = self.labels(contender)
        curves = self.values(contender, metric, seeds)
        areas = [stats.area(labels, curve) for curve in curves]
        return np.array(areas)

    def labels_to(self, contender: str, metric: str, target: float) -> np.ndarray:
        """(trials,) the labels at which a metric first reached the target; infinite where it
        never did.
        """
        labels = self.labels(contender)
        curves = self.values(contender, metric)
        needed = [stats.labels_to(labels, curve, target) for curve in curves]
        return np.array(needed)
