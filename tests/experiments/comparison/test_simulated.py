"""Simulated predictions: calibrated, better by round, the same for all contenders, and enough for
every arm.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from digits_experiment import SMALL
from sklearn.metrics import roc_auc_score

from tailor.errors import InputError
from tailor.pools.arrays import Arrays
from tailor.strategies import make_strategy, registry
from tailor.task import MultiClass, MultiLabel
from tailor_experiments.comparison.experiment import Contender
from tailor_experiments.comparison.run import prepare, trials
from tailor_experiments.comparison.simulated import Simulated
from tailor_experiments.comparison.trial import Trial

RATES = np.array([0.3, 0.05])


def simulated(task, truth, **options):
    pool = Arrays(np.zeros((len(truth), 1)))
    return Simulated(task, pool, truth, span=(100, 1100), **options)


def labels(size=100_000):
    return (np.random.default_rng(0).random((size, 2)) < RATES).astype(np.uint8)


def fit(model, count):
    model.fit(np.arange(count), np.zeros((count, 2)), seed=0)
    return model.predict(np.arange(len(model.pool))).probs


def test_the_quality_grows_with_the_labels():
    """At quality a both classes' logits are normal with means 4a^2 apart and deviation 2a: AUC =
    Phi(a sqrt 2).
    """
    model = simulated(MultiLabel(["a", "b"]), labels(), hard=0.0, start=0.5, end=1.5)
    truth = labels()
    for count, expected in ((100, 0.7602), (600, 0.9214), (1100, 0.9831)):
        probs = fit(model, count)
        assert roc_auc_score(truth[:, 0], probs[:, 0]) == pytest.approx(expected, abs=0.005)


def test_probabilities_are_calibrated():
    truth = labels()
    probs = fit(simulated(MultiLabel(["a", "b"]), truth, hard=0.5), 600)
    for k in (0, 1):
        order = np.argsort(probs[:, k])
        for part in np.array_split(order, 20):
            rate = truth[part, k].mean()
            assert rate == pytest.approx(probs[part, k].mean(), abs=5 * (0.25 / len(part)) ** 0.5)


def test_one_class_an_example_is_calibrated_too():
    truth = np.eye(2, dtype=np.uint8)[(np.random.default_rng(1).random(100_000) < 0.1).astype(int)]
    probs = fit(simulated(MultiClass(["a", "b"]), truth, hard=0.0, shared=0.0), 600)
    assert probs.sum(1) == pytest.approx(1, abs=1e-5)
    for part in np.array_split(np.argsort(probs[:, 1]), 20):
        assert truth[part, 1].mean() == pytest.approx(
            probs[part, 1].mean(), abs=5 * (0.25 / len(part)) ** 0.5
        )


def test_a_hard_class_is_harder():
    truth = np.repeat(labels(20_000)[:, :1], 2, axis=1)
    probs = fit(simulated(MultiLabel(["a", "b"]), truth, hard=0.8), 1100)
    one, two = (roc_auc_score(truth[:, k], probs[:, k]) for k in (0, 1))
    assert abs(one - two) > 0.2


ARMS = [n for n in registry if n != "weak-supervision" and "multi-label" in make_strategy(n).tasks]


def test_every_contender_gets_the_same_predictions(tmp_path):
    """All arms that a model without weights can serve, over a whole experiment."""
    full = prepare(
        replace(
            SMALL,
            data={"name": "digits-multilabel", "options": {}},
            model={"name": "simulated(end=2.0)"},
            contenders=(
                Contender("all", "tailor", tuple(ARMS)),
                Contender("random", "random-meta", ("random",)),
            ),
        ),
        tmp_path,
    )
    rows = [
        row
        for contender, seed in trials(full)
        for row in Trial(full, contender, seed, tmp_path).run()
    ]
    scores = {(r["contender"], r["seed"], r["round"]): (r["score"], r["test_score"]) for r in rows}
    for seed in (0, 1):
        of_all = [scores["all", seed, n] for n in range(4)]
        assert of_all == [scores["random", seed, n] for n in range(4)]
        assert of_all == sorted(of_all)
    assert scores["all", 0, 0] != scores["all", 1, 0]
    assert {r["positives"] for r in rows if r["contender"] == "all"} != {
        r["positives"] for r in rows if r["contender"] == "random"
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("simulated(start=-1)", "a quality is at least 0"),
        ("simulated(hard=2)", "hard is 2"),
        ("simulated(features=0)", "features is 0"),
        ("simulated(noise=1)", "unknown option of simulated model"),
    ],
)
def test_wrong_options_are_refused(name, message, tmp_path):
    with pytest.raises(InputError, match=message):
        prepare(replace(SMALL, model={"name": name}), tmp_path)
