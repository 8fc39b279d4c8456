"""The columns of a row: what is measured after a round of a trial."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tailor.run.state import RunState
from tailor.task import Task
from tailor_experiments import metrics
from tailor_experiments.comparison.experiment import Contender, Experiment
from tailor_experiments.comparison.provenance import model_text
from tailor_experiments.comparison.rows import Row
from tailor_experiments.comparison.stopwatch import MODEL_STAGES, Stopwatch
from tailor_experiments.datasets.base import Dataset


def setup(experiment: Experiment, contender: Contender, data: Dataset) -> Row:
    """What all rows of a contender have in common."""
    task = data.task
    if task.kind == "multi-label":
        metric = "mAP"
    else:
        metric = "balanced accuracy"
    return {
        "experiment": experiment.name,
        "data": data.name,
        # The experiment's own, so that contenders with options in its place are compared.
        "model": model_text(experiment.model),
        "task": task.kind,
        "classes": task.size,
        "metric": metric,
        "contender": contender.label,
        "selector": contender.selector,
        "families": list(contender.families),
        "reward": contender.reward or experiment.reward,
        "start": contender.start,
        "cover": contender.cover,
        "model_options": contender.model,
        "batch": experiment.batch,
    }


def pool_scores(
    kind: str,
    labels: np.ndarray,
    probs: np.ndarray,
    rarest: int,
) -> dict[str, float]:
    """How well probabilities (N, K) fit the labels (N, K) of the pool.

    kind    of the task
    rarest  the class that also has a score of its own
    """
    if kind == "multi-class":
        # What is of no class can't be predicted right.
        has_class = labels.any(1)
        labels = labels[has_class]
        probs = probs[has_class]
    return {
        "score": metrics.score(kind, labels, probs),
        "rarest_accuracy": metrics.rarest_score(
            kind,
            labels,
            probs,
            rarest,
        ),
    }


def test_scores(
    kind: str,
    labels: np.ndarray,
    probs: np.ndarray,
    rarest: int,
) -> dict[str, float]:
    """As pool_scores(), of the test set."""
    scores = {"test_score": metrics.score(kind, labels, probs)}
    # A small test set may lack the class, which has no accuracy then.
    if labels[:, rarest].any():
        scores["test_rarest_accuracy"] = metrics.rarest_score(
            kind,
            labels,
            probs,
            rarest,
        )
    return scores


def label_counts(task: Task, counts: np.ndarray, rarest: int) -> Row:
    """What the collected labels are like.

    counts  (K,) labels of each class
    rarest  the class that is rarest in the whole pool
    """
    return {
        "rarest": int(counts.min()),
        "rarest_class": task.classes[rarest],
        "rarest_class_labels": int(counts[rarest]),
        "imbalance": metrics.imbalance_ratio(counts),
        "positives": int(counts.sum()),
    }


def arm_pulls(run_state: RunState, number: int) -> Row:
    """Which arms chose the examples of a round."""
    picks = run_state.label_table.picks
    arms_of_round = picks.arm[picks.round == number]
    # Examples that were chosen at random have the arm -1.
    counts = Counter(arms_of_round[arms_of_round >= 0].tolist())
    pulls = {}
    for arm, count in sorted(counts.items()):
        name = run_state.learner.arms[arm].name
        pulls[name] = count
    return {
        "pulls": pulls,
        "top_pulls": max(pulls.values(), default=0),
        "off_uniform": off_uniform(run_state.rounds[number].chances),
    }


def seconds(watch: Stopwatch) -> dict[str, float]:
    """Seconds by stage since the row before; the stopwatch is cleared.

    `select` is all of opening and taking a round but the model's part.
    """
    spent = watch.seconds
    stages: dict[str, float] = {stage: spent[stage] for stage in MODEL_STAGES}
    model_seconds = sum(stages.values())
    stages["select"] = max(0.0, spent["all"] - model_seconds)
    stages["test"] = spent["test"]
    spent.clear()
    return {stage: round(value, 4) for stage, value in stages.items()}


def rarest_class(labels: np.ndarray) -> int:
    """labels (N, K) -> the class that occurs least, of those that do."""
    totals = labels.sum(0, dtype=np.int64)
    # A class that does not occur could never be found: it counts as the most frequent one.
    above_all = totals.max() + 1
    totals[totals == 0] = above_all
    return int(totals.argmin())


def off_uniform(chances: np.ndarray | None) -> float:
    """How far the chance (M,) of an arm for a slot lies from 1/M at most; 0 where no arm was
    drawn.
    """
    if chances is None:
        return 0.0
    uniform = 1 / len(chances)
    distances = np.abs(chances - uniform)
    return float(distances.max())
