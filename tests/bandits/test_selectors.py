"""What holds for every selector, and what is special to TAILOR, fixed and linear Thompson
sampling.
"""

from __future__ import annotations

import numpy as np
import pytest

from tailor.bandits import FixedArm, LinearThompsonSampling, ThompsonSampling, registry
from tailor.bandits.base import Contest, Fit, Outcomes, Selector
from tailor.errors import InputError, UnknownName

OPTIONS = {"fixed": {"arm": "even"}}
ALL = [(name, kind) for name in registry.builtin for kind in ("multi-class", "multi-label")]


def make(name: str, contest: Contest) -> Selector:
    return registry.make(name, **OPTIONS.get(name, {})).begin(contest)


def outcome(contest: Contest, round: int, rng: np.random.Generator, n: int = 20) -> Outcomes:
    k = contest.task.size
    labels = np.eye(k)[rng.integers(k, size=n)]
    fit = Fit(rng.random(n), np.full(n, 0.3), np.full(k, 1 / k), 1000)
    return Outcomes(
        round, rng.uniform(-1 / k, 1 / k, k), rng.integers(contest.size, size=n), labels, fit=fit
    )


@pytest.mark.parametrize(("name", "kind"), ALL)
def test_state_round_trip_is_exact(contest, name: str, kind: str) -> None:
    game = contest(kind)
    first = make(name, game)
    second = make(name, game)
    rng = np.random.default_rng(0)
    for t in range(3):
        first.learn(outcome(game, t, rng))
    saved = {key: value.copy() for key, value in first.state().items()}
    second.restore(saved)
    more = outcome(game, 3, rng)
    for made in (first, second):
        made.learn(more)
    v = np.array([0.1, -0.2, 0.25, 0.1])
    plans = [made.plan(300, v, np.random.default_rng(7)) for made in (first, second)]
    np.testing.assert_array_equal(*plans)
    assert plans[0].dtype == np.int64
    assert plans[0].shape == (300,)
    assert set(plans[0]) <= set(range(game.size))
    for key, value in first.state().items():
        np.testing.assert_array_equal(value, second.state()[key])


@pytest.mark.parametrize(("name", "kind"), ALL)
def test_planning_changes_nothing_and_zero_slots_are_fine(contest, name: str, kind: str) -> None:
    game = contest(kind)
    made = make(name, game)
    made.learn(outcome(game, 0, np.random.default_rng(0)))
    before = made.state()
    assert made.plan(0, np.zeros(4), np.random.default_rng(0)).shape == (0,)
    made.plan(5, np.zeros(4), np.random.default_rng(0))
    assert made.chances(np.array([0, 0, 1])).sum() == pytest.approx(1)
    for key, value in made.state().items():
        np.testing.assert_array_equal(value, before[key])


@pytest.mark.parametrize(("name", "kind"), ALL)
@pytest.mark.parametrize("wrong", ["arms", "labels", "weights"])
def test_errors_change_nothing(contest, name: str, kind: str, wrong: str) -> None:
    game = contest(kind)
    made = make(name, game)
    good = outcome(game, 0, np.random.default_rng(0), n=2)
    bad = {"arms": np.array([0, 9]), "labels": np.full((2, 4), 2.0), "weights": np.full(4, np.nan)}
    before = made.state()
    with pytest.raises(InputError):
        made.learn(Outcomes(**{**good.__dict__, wrong: bad[wrong]}))
    with pytest.raises(InputError):
        made.plan(5, np.zeros(3), np.random.default_rng(0))
    with pytest.raises(InputError):
        made.plan(-1, np.zeros(4), np.random.default_rng(0))
    for key, value in made.state().items():
        np.testing.assert_array_equal(value, before[key])


@pytest.mark.parametrize("name", ["tailor", "albl", "deal", "linear-thompson"])
def test_another_contests_state_is_refused(contest, name: str) -> None:
    saved = make(name, contest(arms=3)).state()
    with pytest.raises(InputError, match="shape"):
        make(name, contest(arms=4)).restore(saved)
    with pytest.raises(InputError, match="another selector"):
        make(name, contest()).restore({})


def test_tailor_learns_from_what_it_is_told_to(contest) -> None:
    game = contest("multi-class", arms=2, classes=2)
    seen = ThompsonSampling(forget=1.0, evidence=lambda o: o.labels * (1 - o.predicted)).begin(game)
    probs = np.array([[0.75, 0.25]])
    given = Outcomes(0, np.zeros(2), np.array([1]), np.array([[1.0, 0.0]]), predicted=probs)
    seen.learn(given)
    np.testing.assert_allclose(seen.posterior.parameters(), [[1, 1, 0], [1.25, 1, 0.75]])
    wrong = ThompsonSampling(evidence=lambda o: o.labels * 2).begin(game)
    with pytest.raises(InputError):
        wrong.learn(given)
    assert wrong.posterior.round == 0


def test_fixed_by_arm_and_family(contest) -> None:
    game = contest(arms=4)
    rng = np.random.default_rng(0)
    assert set(FixedArm(arm="arm3").begin(game).plan(50, np.zeros(4), rng)) == {3}
    family = FixedArm(arm="even").begin(game)
    assert set(family.plan(50, np.zeros(4), rng)) == {0, 2}
    np.testing.assert_allclose(family.chances(np.zeros(1, int)), [0.5, 0, 0.5, 0])
    with pytest.raises(UnknownName, match="even"):
        FixedArm(arm="evn").begin(game)


@pytest.mark.parametrize("kind", ["multi-class", "multi-label"])
def test_linear_is_the_explicit_gaussian(contest, kind: str) -> None:
    """Against the K x K posterior of Bayesian linear regression, arm by arm; one vector comes
    twice.
    """
    game = contest(kind, arms=3, classes=6)
    made = LinearThompsonSampling().begin(game)
    rng = np.random.default_rng(3)
    k = 6
    precision = np.stack([np.eye(k)] * 3)
    shift = np.zeros((3, k))
    vectors = rng.uniform(-1 / k, 1 / k, (3, k))
    for t, v in enumerate(vectors[[0, 1, 0, 2]]):
        arms = rng.integers(2, size=9)
        labels = (rng.random((9, k)) < 0.4).astype(float)
        made.learn(Outcomes(t, v, arms, labels))
        for i, y in zip(arms, labels):
            precision[i] += k * k * np.outer(v, v)
            shift[i] += k * v * (k * v @ y)
    assert made.vectors.shape == (3, k)
    for v in (vectors[1], rng.uniform(-1 / k, 1 / k, k)):
        mean, variance = made.gaussian(v)
        for i in range(3):
            covariance = np.linalg.inv(precision[i])
            assert mean[i] == pytest.approx(k * v @ covariance @ shift[i])
            assert variance[i] == pytest.approx(k * k * v @ covariance @ v)


def test_linear_plan_follows_the_gaussians(contest) -> None:
    from scipy.stats import norm

    game = contest("multi-label", arms=2, classes=1)
    made = LinearThompsonSampling().begin(game)
    made.learn(Outcomes(0, np.ones(1), np.array([0, 0, 1]), np.array([[1.0], [1.0], [0.0]])))
    mean, variance = made.gaussian(np.ones(1))
    np.testing.assert_allclose([*mean, *variance], [2 / 3, 0, 1 / 3, 1 / 2])
    share = (made.plan(20_000, np.ones(1), np.random.default_rng(0)) == 0).mean()
    expected = norm.cdf((mean[0] - mean[1]) / np.sqrt(variance.sum()))
    assert abs(share - expected) < 4 * np.sqrt(0.25 / 20_000)


def test_linear_ties_are_random(contest) -> None:
    plan = (
        LinearThompsonSampling()
        .begin(contest(arms=4))
        .plan(4_000, np.zeros(4), np.random.default_rng(0))
    )
    assert np.abs(np.bincount(plan, minlength=4) / 4_000 - 0.25).max() < 4 * np.sqrt(0.1875 / 4_000)
