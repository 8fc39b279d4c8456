"""Rows as tables of numbers: contender by trial by round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tailor_experiments.comparison import stats
from tailor_experiments.comparison.rows import Row
from tailor_experiments.comparison.stats import Difference
from tailor_experiments.figures import Curves

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


@dataclass(frozen=True)
class Results:
    """One experiment's whole trials. Those that are not through yet are counted, and left out."""

    name: str
    rows: dict[str, dict[int, list[Row]]]  # contender -> seed -> rows by round
    unfinished: int
    model: str | None = None  # None: rows of before it was a column

    @property
    def contenders(self) -> list[str]:
        return list(self.rows)

    @property
    def first(self) -> Row:
        return next(iter(next(iter(self.rows.values())).values()))[0]

    def label(self, metric: str) -> str:
        own = {
            "score": f"{self.first['metric']} (pool)",
            "test_score": f"{self.first['metric']} (test)",
            "area": "area under curve",
        }
        return own.get(metric) or METRICS[metric]

    def trials(self, contenders: Sequence[str]) -> str:
        """How many there are of each: "4" or "4 to 16"."""
        counts = {len(self.rows[c]) for c in contenders}
        return f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(*counts)

    @property
    def total(self) -> int:
        """Labels after the last round."""
        return int(max(self.labels(c)[-1] for c in self.rows))

    @property
    def setup(self) -> str:
        """What was run, in a sentence, so that a table can stand alone."""
        first = self.first
        rewards = dict.fromkeys(self.sample(c)["reward"] for c in self.rows)
        model = f"model {self.model}" if self.model else "model not in the rows"
        seeds = sorted({seed for trials in self.rows.values() for seed in trials})
        return (
            f"Data {first['data']}, {first['task']}; {model}; {first['labels']} random labels, "
            "then "
            f"{first['rounds']} rounds of {first['labels']}; reward {', '.join(rewards)}; "
            f"{len(self.rows)} contenders, "
            f"{self.trials(self.contenders)} trials each (seeds {seeds[0]} to {seeds[-1]})"
        )

    @cached_property
    def metrics(self) -> list[str]:
        """Those that every row has. In multi-class total positives are the labels, and say
        nothing.
        """
        every = [row for trials in self.rows.values() for rows in trials.values() for row in rows]
        telling = [m for m in METRICS if m != "positives" or self.first["task"] == "multi-label"]
        return [m for m in telling if all(m in row for row in every)]

    @property
    def main(self) -> str:
        """On the test set where there is one."""
        return "test_score" if "test_score" in self.metrics else "score"

    @cached_property
    def aim(self) -> str:
        """What contenders are judged by: the main score; total positives where TAILOR searches; and
        where every contender has the same scores, since predictions are simulated, labels in the
        rarest class.
        """
        rewards = [self.sample(c)["reward"] for c in self.tailors() or self.rows]
        if "positives" in self.metrics and all(reward.startswith("search") for reward in rewards):
            return "positives"
        ends: dict[int, set[float]] = {}
        for trials in self.rows.values():
            for seed, rows in trials.items():
                ends.setdefault(seed, set()).add(rows[-1][self.main])
        same = len(self.rows) > 1 and all(len(scores) == 1 for scores in ends.values())
        return "rarest" if same and "rarest" in self.metrics else self.main

    def seeds(self, *contenders: str) -> list[int]:
        """Those that all of these have."""
        return sorted(set.intersection(*(set(self.rows[c]) for c in contenders)))

    def fair_means(self, contenders: Sequence[str], metric: str | None = None) -> dict[str, float]:
        """By default what each is judged by. Over the seeds that all of them have: seeds differ
        more than contenders.

        Where they have none in common, over each one's own.
        """
        common = (self.seeds(*contenders) if contenders else []) or None
        return {c: float(self.last(c, metric or self.aim, common).mean()) for c in contenders}

    def values(self, contender: str, metric: str, seeds: Sequence[int] | None = None) -> np.ndarray:
        """(trials, rounds) float64."""
        chosen = self.rows[contender]
        wanted = sorted(chosen) if seeds is None else seeds
        return np.array([[row[metric] for row in chosen[seed]] for seed in wanted], float)

    def labels(self, contender: str) -> np.ndarray:
        """(rounds,) labels after each round."""
        return self.values(contender, "labels").mean(0)

    def last(self, contender: str, metric: str, seeds: Sequence[int] | None = None) -> np.ndarray:
        return self.values(contender, metric, seeds)[:, -1]

    @cached_property
    def measured_at(self) -> set[int]:
        """Numbers of labels at which every trial has a row."""
        trials = [rows for trials in self.rows.values() for rows in trials.values()]
        return set.intersection(*({row["labels"] for row in rows} for rows in trials))

    def at(self, labels: int, contender: str, metric: str, seeds: Sequence[int]) -> np.ndarray:
        """(trials,) of a metric when there were so many labels."""
        rows = [
            row for seed in seeds for row in self.rows[contender][seed] if row["labels"] == labels
        ]
        return np.array([row[metric] for row in rows], float)

    def areas(self, contender: str, metric: str, seeds: Sequence[int] | None = None) -> np.ndarray:
        labels = self.labels(contender)
        return np.array([stats.area(labels, row) for row in self.values(contender, metric, seeds)])

    def labels_to(self, contender: str, metric: str, target: float) -> np.ndarray:
        """(trials,) infinite where the target was not reached."""
        labels = self.labels(contender)
        return np.array(
            [stats.labels_to(labels, row, target) for row in self.values(contender, metric)]
        )

    def curves(
        self,
        metric: str,
        window: int = 3,
        only: Sequence[str] | None = None,
        minus: str | None = None,
    ) -> Curves:
        """Of every contender or `only` some; `minus` another one, seed by seed, of those that share
        its seeds.
        """
        found = {}
        for contender in only if only is not None else self.contenders:
            if minus is None:
                values = self.values(contender, metric)
            else:
                seeds = self.seeds(contender, minus)
                if contender == minus or not seeds:
                    continue
                values = self.values(contender, metric, seeds) - self.values(minus, metric, seeds)
            begin = int(metric == "top_pulls")  # the random start has no pulls
            found[contender] = (
                self.labels(contender)[begin:],
                *_band(stats.smooth(values[:, begin:], window)),
            )
        return found

    def learners(self) -> list[str]:
        """Contenders that choose among several arms."""
        return [
            c
            for c, trials in self.rows.items()
            if any(len(r["pulls"]) > 1 for rows in trials.values() for r in rows)
        ]

    def pulls(self, contender: str, top: int = 10, window: int = 3) -> Curves:
        """The arms pulled most, each with its pulls by round; the random start has none."""
        trials = list(self.rows[contender].values())
        total: Counter[str] = Counter()
        for rows in trials:
            for row in rows:
                total.update(row["pulls"])
        found = {}
        for arm, _ in total.most_common(top):
            values = np.array(
                [[row["pulls"].get(arm, 0) for row in rows[1:]] for rows in trials], float
            )
            found[arm] = (np.arange(1, values.shape[1] + 1), *_band(stats.smooth(values, window)))
        return found

    def ablations(self) -> list[list[str]]:
        """TAILORs that differ in nothing but their candidates, a list for each selector and
        reward.
        """
        sets: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
        for contender in self.tailors():
            row = self.sample(contender)
            sets.setdefault((row["selector"], row["reward"]), {})[contender] = tuple(
                row["families"]
            )
        return [list(members) for members in sets.values() if len(set(members.values())) > 1]

    def sample(self, contender: str) -> Row:
        """A row, for what all of a contender's rows have in common."""
        return next(iter(self.rows[contender].values()))[0]

    def tailors(self) -> list[str]:
        return [
            c for c in self.rows if self.sample(c)["selector"].partition("(")[0].strip() == "tailor"
        ]

    def singles(self) -> list[str]:
        """Families alone, random left out: nothing is learned about their arms."""

        def alone(row: Row) -> bool:
            return (
                row["selector"] == "random-meta"
                and len(row["families"]) == 1
                and row["families"] != ["random"]
            )

        return [c for c in self.rows if alone(self.sample(c))]

    def own_singles(self, contender: str) -> list[str]:
        """Families alone that are among a contender's candidates; all of them where none is."""
        own = {family.partition("(")[0] for family in self.sample(contender)["families"]}
        others = [c for c in self.singles() if c != contender]
        return [
            c for c in others if self.sample(c)["families"][0].partition("(")[0] in own
        ] or others

    def difference(self, ours: str, other: str, metric: str) -> Difference | None:
        """After the last round ("area": under the main curve), paired by seed; None where no seed
        is in common.
        """
        seeds = self.seeds(ours, other)
        if not seeds:
            return None
        if metric == "area":
            return stats.paired(
                self.areas(ours, self.main, seeds), self.areas(other, self.main, seeds)
            )
        return stats.paired(self.last(ours, metric, seeds), self.last(other, metric, seeds))


def _band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """values (trials, n) -> mean (n,) and standard error (n,), 0 with one trial."""
    if len(values) < 2:
        return values.mean(0), np.zeros(values.shape[1])
    return values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))
