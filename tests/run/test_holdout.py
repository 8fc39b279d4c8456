"""The hold-out: who is in it, what it estimates; and the rules that look at it."""

from __future__ import annotations

import numpy as np
import pytest
from small import Centroids, Points, answer, settings

from tailor.errors import InputError
from tailor.run.holdout import estimate, sample_by_id
from tailor.run.session import Session
from tailor.run.stopping import Budget, ClassCounts, Plateau, RunProgress, TargetAccuracy, why_stop
from tailor.storage import SqliteStore
from tailor.task import MultiClass, MultiLabel

TWO = MultiClass(["a", "b"])


# ---------------------------------------------------------------------- membership


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_the_share_is_right(share, seed):
    """Within 5 standard deviations of a binomial."""
    size = 50_000
    found = sample_by_id([f"folder/{i}.png" for i in range(size)], share, seed)
    assert found.dtype == bool
    assert abs(found.sum() - share * size) <= 5 * np.sqrt(size * share * (1 - share))


def test_membership_depends_on_the_id_alone():
    ids = [f"ü{i}" for i in range(3000)]
    whole = dict(zip(ids, sample_by_id(ids, 0.2, 7).tolist()))
    chance = np.random.default_rng(0)
    some = chance.permutation(ids)[:500].tolist()
    assert sample_by_id(some, 0.2, 7).tolist() == [whole[one] for one in some]
    larger = sample_by_id(["new first", *ids], 0.2, 7)
    assert larger[1:].tolist() == list(whole.values())
    assert sample_by_id(ids, 0.2, 8).tolist() != list(whole.values())
    more = sample_by_id(ids, 0.3, 7)  # a larger share keeps those that were in it
    assert (more | ~np.array(list(whole.values()))).all()


# ---------------------------------------------------------------------- the interval


def rows(right: int, n: int):
    """(labels, probs) with so many of n right."""
    probs = np.where(np.arange(n)[:, None] < right, [[0.9, 0.1]], [[0.2, 0.8]])
    return np.tile([[1.0, 0.0]], (n, 1)), probs


@pytest.mark.parametrize(
    ("right", "n"), [(0, 1), (1, 1), (0, 30), (30, 30), (7, 10), (81, 263), (499, 1000)]
)
def test_the_interval_is_wilson_s(right, n):
    """Its ends are the shares p at which (right/n - p)^2 = z^2 p (1 - p) / n: the roots of a
    quadratic.
    """
    found = estimate(TWO, *rows(right, n))
    z = 1.959963984540054
    share = right / n
    low, high = np.sort(np.roots([1 + z * z / n, -(2 * share + z * z / n), share * share]).real)
    assert (found.examples, found.accuracy) == (n, share)
    assert found.lower == pytest.approx(low, abs=1e-6)
    assert found.upper == pytest.approx(high, abs=1e-6)
    assert 0 <= found.lower <= found.accuracy <= found.upper <= 1


def test_a_known_interval():
    """81 of 263, as in Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 0.2553 to
    0.3662.
    """
    found = estimate(TWO, *rows(81, 263))
    assert (round(found.lower, 4), round(found.upper, 4)) == (0.2553, 0.3662)


@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("true", [0.5, 0.8, 0.95])
def test_coverage(n, true):
    """The exact coverage of a 95% interval, summed over the binomial; Wilson's stays within 0.92
    and 0.98 here.
    """
    from scipy.stats import binom

    ends = [estimate(TWO, *rows(k, n)) for k in range(n + 1)]
    inside = np.array([e.lower <= true <= e.upper for e in ends])
    coverage = binom.pmf(np.arange(n + 1), n, true) @ inside
    assert 0.92 < coverage < 0.98
    drawn = np.random.default_rng(1).binomial(
        n, true, 4000
    )  # and by simulation, to 4 standard deviations
    assert abs(inside[drawn].mean() - coverage) < 4 * np.sqrt(coverage * (1 - coverage) / 4000)


def test_several_labels_are_counted_by_class_decision():
    task = MultiLabel(["a", "b", "c", "d"])
    labels = np.array([[1, 0, 0, 1], [0, 0, 0, 0]], float)
    probs = np.array([[0.9, 0.2, 0.7, 0.1], [0.1, 0.1, 0.1, 0.1]])
    found = estimate(task, labels, probs)
    assert (found.examples, found.accuracy) == (2, 0.75)
    assert found.lower < 0.3  # two examples, not eight decisions
    assert found.upper > 0.95


def test_no_example_no_estimate():
    assert estimate(TWO, np.empty((0, 2)), np.empty((0, 2))) is None


# ---------------------------------------------------------------------- without bias


def test_accuracy_on_the_holdout_has_no_bias_though_the_arms_choose(tmp_path):
    """30 runs whose arms ask for what the model is unsure of. The model never saw the hold-out, so
    its accuracy there must equal, in the mean, that on 400 fresh examples: within 4 standard errors
    of the mean difference. Accuracy on what the arms asked for is lower by more than that, which
    shows that the test could see a bias.
    """
    on_holdout = []
    on_picks = []
    for seed in range(30):
        pool = Points(150, seed=seed)
        chosen = settings(
            strategies=("confidence",), selector="random-meta", holdout=0.4, batch=25, seed=seed
        )
        with SqliteStore(tmp_path / f"{seed}.db") as store:
            session = Session(store, pool, Centroids(chosen.task, pool), chosen)
            for _ in range(3):
                asked = session.ask()
                session.tell({i: answer(pool, "multi-class", i) for i in asked.ids})
            model = session.model
            found = session.final_fit()
            picks = session.run_state.label_table.picks
            chosen_by_arms = [
                s
                for s in map(session.run_state.pick_record, picks.positions.tolist())
                if s.arm == "confidence"
            ]
        fresh = [f"p{i:05d}" for i in range(10_000, 10_400)]
        model.vectors = np.stack([pool.vector(one) for one in fresh])
        guess = model.predict(np.arange(400)).probs.argmax(1)
        true = np.mean(guess == [pool.truth(one) for one in fresh])
        on_holdout.append(found.accuracy - true)
        on_picks.append(
            np.mean([s.predicted.argmax() == pool.truth(s.id) for s in chosen_by_arms]) - true
        )
    error = np.std(on_holdout, ddof=1) / np.sqrt(30)
    assert error < 0.025
    assert abs(np.mean(on_holdout)) < 4 * error
    assert np.mean(on_picks) < -0.1


# ---------------------------------------------------------------------- stopping rules


def progress(labels=10, counts=(5, 5), accuracy=(), lower=()):
    return RunProgress(labels, np.array(counts), ("a", "b"), tuple(accuracy), tuple(lower))


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        (Budget(10), progress(9), progress(10)),
        (
            TargetAccuracy(0.9),
            progress(accuracy=[0.99], lower=[0.89]),
            progress(accuracy=[0.95], lower=[0.9]),
        ),
        (TargetAccuracy(0.9), progress(), progress(accuracy=[0.5, 1], lower=[0.1, 0.95])),
        (ClassCounts(5), progress(counts=(100, 4)), progress(counts=(5, 5))),
        (Plateau(2, 0.01), progress(accuracy=[0.8, 0.8]), progress(accuracy=[0.8, 0.8, 0.805])),
        (Plateau(2, 0.01), progress(accuracy=[0.8, 0.7, 0.82]), progress(accuracy=[0.8, 0.7, 0.6])),
        (Plateau(1, 0.0), progress(accuracy=[0.8, 0.8]), progress(accuracy=[0.8, 0.79])),
    ],
)
def test_rules_are_met_when_they_say(rule, before, after):
    assert rule.met(before) is None
    assert rule.met(after)


def test_the_first_rule_that_is_met_gives_the_reason():
    rules = [Budget(100), ClassCounts(5), Budget(10)]
    assert why_stop(rules, progress()) == "every class has 5 labels"
    assert why_stop([], progress()) is None
    assert why_stop([Budget(100)], progress()) is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Budget(0), "budget is 0"),
        (lambda: TargetAccuracy(0), "target accuracy is 0"),
        (lambda: TargetAccuracy(float("nan")), "target accuracy is nan"),
        (lambda: Plateau(0), "plateau of 0 rounds"),
        (lambda: Plateau(2, -1), "gain >= 0"),
        (lambda: ClassCounts(0), "class count is 0"),
    ],
)
def test_rules_that_could_never_be_met_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_balanced_accuracy_counts_every_class_alike():
    """Nine of class 0, all right; one of class 1, wrong; none of class 2."""
    task = MultiClass(3)
    labels = np.eye(3)[[0] * 9 + [1]]
    probs = np.tile([0.8, 0.1, 0.1], (10, 1))
    measured = estimate(task, labels, probs)
    assert measured.accuracy == 0.9
    assert measured.balanced_accuracy == 0.5
    assert estimate(MultiLabel(3), labels, probs).balanced_accuracy is None
