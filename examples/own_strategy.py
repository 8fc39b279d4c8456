"""An active-learning algorithm of your own, as one more candidate for TAILOR.

`Gini` asks for the example of largest Gini impurity. It is checked against the contract that every
built-in family keeps, and then competes with two of them.

    python examples/own_strategy.py
"""

from __future__ import annotations

from collections import Counter

import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from tailor import Learner, MultiClass, PoolView, ScoreStrategy
from tailor.testing import check_strategy


class Gini(ScoreStrategy):
    """Largest Gini impurity 1 - Σ p² first."""

    name = "gini"
    tasks = frozenset({"multi-class"})

    def score(self, view: PoolView) -> torch.Tensor:
        """(N,): the smallest is taken first. Chunks keep memory small, and work over shards too."""
        return torch.cat([view.rows(chunk).square().sum(1) for chunk in view.chunks()])


def main() -> None:
    check_strategy(Gini(), MultiClass(4))
    pixels, digits = load_digits(return_X_y=True)
    vectors = pixels / 16
    truth = digits.clip(max=3)  # 0, 1, 2, and all others as one class
    learner = Learner(
        MultiClass(["0", "1", "2", "other"]),
        pool=len(vectors),
        strategies=[Gini(), "galaxy", "badge"],
        batch=20,
    )
    learner.tell(range(20), truth[:20])
    pulls: Counter[str] = Counter()
    for _ in range(5):
        model = LogisticRegression(max_iter=1000).fit(vectors[learner.labelled], learner.labels)
        batch = learner.ask(model.predict_proba(vectors), features=vectors)
        pulls.update(batch.arm_names)
        learner.tell(batch.indices, truth[batch.indices])
    print("pulls:", dict(pulls.most_common()))
    print("labels by class:", learner.counts.tolist())


if __name__ == "__main__":
    main()
