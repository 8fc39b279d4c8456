"""Which algorithm would have spent 120 labels best on this data?

Digits 0, 1 and 2 are kept apart, all others are one class: three classes are rare. Each contender
starts from the same 20 labels and asks for five batches of 20.

    python examples/compare_algorithms.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from tailor import Learner, MultiClass

CONTENDERS = {
    "random": {"strategies": ["random"], "selector": "random-meta"},
    "confidence alone": {"strategies": ["confidence"], "selector": "random-meta"},
    "galaxy alone": {"strategies": ["galaxy"], "selector": "random-meta"},
    "random meta": {"selector": "random-meta"},
    "TAILOR": {"selector": "tailor"},
}


def main() -> None:
    pixels, digits = load_digits(return_X_y=True)
    vectors = pixels / 16
    classes = digits.clip(max=3)
    is_test = np.arange(len(vectors)) % 4 == 0
    pool = vectors[~is_test]
    truth = classes[~is_test]
    print(f"{'contender':<18} {'labels by class':<20} balanced accuracy")
    for name, options in CONTENDERS.items():
        learner = Learner(MultiClass(["0", "1", "2", "other"]), len(pool), batch=20, **options)
        learner.tell(range(20), truth[:20])
        for _ in range(5):
            batch = learner.ask(fit(learner, pool).predict_proba(pool), features=pool)
            learner.tell(batch.indices, truth[batch.indices])
        predicted = fit(learner, pool).predict(vectors[is_test])
        score = balanced_accuracy_score(classes[is_test], predicted)
        print(f"{name:<18} {learner.counts.tolist()!s:<20} {score:.3f}")


def fit(learner: Learner, pool: np.ndarray) -> LogisticRegression:
    return LogisticRegression(max_iter=1000).fit(pool[learner.labelled], learner.labels)


if __name__ == "__main__":
    main()
