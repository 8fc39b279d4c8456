"""The linear head is logistic regression at its optimum: scikit-learn's, with the prior that its
docs state.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tailor.models import make_model
from tailor.pools.arrays import Arrays
from tailor.task import MultiClass, MultiLabel


def examples(n: int = 120, d: int = 7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    values = (rng.normal(size=(n, d)) * rng.uniform(0.1, 5, d) + rng.normal(size=d)).astype(
        np.float32
    )
    return values, rng


def standardised(values: np.ndarray) -> np.ndarray:
    return (values - values.mean(0)) / values.std(0)


@pytest.mark.parametrize("classes", [2, 4])
def test_multi_class_equals_scikit_learn(classes: int) -> None:
    values, rng = examples()
    target = (standardised(values)[:, :classes] + rng.normal(size=(len(values), classes))).argmax(1)
    model = make_model(
        "probe", MultiClass(classes), Arrays(values), logit_variance=20.0, steps=500, device="cpu"
    )
    model.fit(np.arange(len(values)), np.eye(classes)[target], seed=0)
    # two equal and opposite weights hold back half as much as one of twice their size
    strength = 20.0 / values.shape[1] * (2 if classes == 2 else 1)
    peer = LogisticRegression(C=strength, max_iter=5000, tol=1e-8).fit(standardised(values), target)
    probs = model.predict(np.arange(len(values))).probs
    np.testing.assert_allclose(probs, peer.predict_proba(standardised(values)), atol=2e-3)


def test_multi_label_equals_scikit_learn_class_by_class() -> None:
    values, rng = examples()
    labels = (standardised(values)[:, :3] + rng.normal(size=(len(values), 3)) > 0.8).astype(
        np.float32
    )
    model = make_model(
        "probe", MultiLabel(3), Arrays(values), logit_variance=5.0, steps=500, device="cpu"
    )
    model.fit(np.arange(len(values)), labels, seed=0)
    probs = model.predict(np.arange(len(values))).probs
    for k in range(3):
        peer = LogisticRegression(C=5.0 / values.shape[1], max_iter=5000, tol=1e-8)
        peer.fit(standardised(values), labels[:, k])
        np.testing.assert_allclose(
            probs[:, k], peer.predict_proba(standardised(values))[:, 1], atol=2e-3
        )


def test_no_seed_plays_a_part() -> None:
    values, _ = examples()
    labels = np.eye(2)[(values[:, 0] > values[:, 0].mean()).astype(int)]
    model = make_model("probe", MultiClass(2), Arrays(values), device="cpu")
    probs_by_seed = []
    for seed in (1, 2):
        model.fit(np.arange(40), labels[:40], seed=seed)
        probs_by_seed.append(model.predict(np.arange(len(values))).probs)
    np.testing.assert_array_equal(*probs_by_seed)
