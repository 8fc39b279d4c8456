"""How the learned family fares on a pool that its weights never saw, beside the plain rules that it
goes by.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tailor.selection.learner import Learner
from tailor.strategies import Strategy, make_strategy
from tailor.strategies.learned import Learned
from tailor.strategies.score_strategy import ScoreStrategy
from tailor_experiments.policy.pools import LabelledPool
from tailor_experiments.policy.trial_head import TrialHead

#: rounds of a trial, each of as many labels, from the budget's tenth to all of it
ROUNDS = 9
LEARNED = "learned"
#: by kind of task: each goes by one or two of the learned family's inputs
PLAIN_RULES = {
    "multi-class": ("random", "margin", "entropy", "coreset", "typiclust", "herding"),
    "multi-label": ("random", "emal", "uncertainty", "coreset", "typiclust", "herding"),
}


@dataclass(frozen=True)
class PoolJudgement:
    """The mean test scores over the rounds of each trial."""

    pool: str
    kind: str
    scores: dict[str, np.ndarray]  # by family, (trials,)


def judge(
    pool: LabelledPool,
    weights: Path,
    trials: int,
    seed: int,
) -> PoolJudgement:
    """The learned family with these weights and the plain rules on one pool; all begin a trial with
    the same labels.
    """
    families: dict[str, Strategy] = {
        LEARNED: Learned(weights=str(weights), budget=pool.budget),
    }
    for rule in PLAIN_RULES[pool.task.kind]:
        families[rule] = make_strategy(rule)
    scores = {}
    for name, family in families.items():
        curve_means = [mean_score(pool, family, (seed, trial)) for trial in range(trials)]
        scores[name] = np.array(curve_means)
    return PoolJudgement(pool.name, pool.task.kind, scores)


def mean_score(
    pool: LabelledPool,
    family: Strategy | ScoreStrategy,
    seeds: tuple[int, int],
) -> float:
    """The mean over rounds of the test score, of one trial."""
    rng = np.random.default_rng(seeds)
    batch = max(1, pool.budget // (ROUNDS + 1))
    learner = Learner(
        pool.task,
        len(pool.features),
        strategies=[family],
        selector="random-meta",
        batch=batch,
        seed=int(rng.integers(2**31)),
    )
    start = rng.choice(len(pool.features), batch, replace=False)
    learner.tell(start, pool.labels[start])
    labelled = start
    scores = []
    for _ in range(ROUNDS):
        head = TrialHead(pool).fit(labelled)
        asked = learner.ask(head.predict(pool.features), pool.features)
        learner.tell(asked.indices, pool.labels[asked.indices])
        labelled = np.concatenate([labelled, asked.indices])
        scores.append(TrialHead(pool).fit(labelled).test_score())
    return float(np.mean(scores))
