"""Posteriors against numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tailor.bandits.posteriors import BetaPosterior, DirichletPosterior
from tailor.errors import InputError


def test_beta_shrink_and_prior_by_hand(contest) -> None:
    game = contest("multi-label", arms=2, classes=2)
    shrink = BetaPosterior(game, forget=0.5)
    prior = BetaPosterior(game, forget=0.5, forgetting="prior")
    for made in (shrink, prior):
        made.learn(np.array([0, 0, 0]), np.array([[1, 0], [1, 1], [0, 0]]))
        made.learn(np.array([0, 1]), np.array([[1, 0], [0, 1]]))
    # round 1: a0 = .5*1 + (2, 1), b0 = .5*1 + (1, 2); round 2: halved, plus (1, 0) and (0, 1)
    a, b = shrink.parameters()
    np.testing.assert_allclose(a[0], [2.25, 0.75])
    np.testing.assert_allclose(b[0], [0.75, 2.25])
    np.testing.assert_allclose(a[1], [0.25, 1.25])
    np.testing.assert_allclose(b[1], [1.25, 0.25])
    np.testing.assert_allclose(shrink.mean()[0], [0.75, 0.25])
    # towards the prior: a0 = 1 + (2, 1), then 1 + .5*(2, 1) + (1, 0)
    a, b = prior.parameters()
    np.testing.assert_allclose(a[0], [3.0, 1.5])
    np.testing.assert_allclose(b[0], [1.5, 3.0])
    np.testing.assert_allclose(a[1], [1, 2])


def test_an_arm_never_pulled(contest) -> None:
    """Shrinking makes it U-shaped, as in the paper; forgetting towards the prior leaves it
    alone.
    """
    game = contest("multi-label", arms=1, classes=1)
    empty = np.zeros(0, int), np.zeros((0, 1))
    high = {}
    for forgetting in ("shrink", "prior"):
        made = BetaPosterior(game, forgetting=forgetting)
        for _ in range(19):
            made.learn(*empty)
        high[forgetting] = (made.scores(40_000, np.ones(1), np.random.default_rng(0)) > 0.95).mean()
    assert abs(high["shrink"] - 0.34) < 0.01
    assert abs(high["prior"] - 0.05) < 0.01


def test_dirichlet_with_rest_by_hand(contest) -> None:
    made = DirichletPosterior(contest(arms=2, classes=2), forget=0.5)
    made.learn(np.array([1, 1]), np.array([[0.5, 0.25], [1.0, 0.0]]))
    np.testing.assert_allclose(made.parameters(), [[0.5, 0.5, 0], [2.0, 0.75, 0.25]])
    np.testing.assert_allclose(made.mean(), [[0.5, 0.5], [2 / 3, 0.25]])
    made.learn(np.array([0]), np.array([[0.0, 0.0]]))
    np.testing.assert_allclose(made.parameters(), [[0.25, 0.25, 1], [1.0, 0.375, 0.125]])


def test_float32_rounding_is_no_rest(contest) -> None:
    made = DirichletPosterior(contest(arms=1, classes=3))
    made.learn(np.zeros(1, int), np.full((1, 3), 1 / 3, np.float32))
    assert made.parameters()[0, -1] == 0


def test_priors_by_class_arm_pair_and_round(contest) -> None:
    game = contest("multi-label", arms=2, classes=3)
    by_class = BetaPosterior(game, prior=np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(by_class.parameters()[1], [[1, 2, 3], [1, 2, 3]])
    table = np.arange(1.0, 7).reshape(2, 3)
    pair = BetaPosterior(game, prior=(table, 2.0))
    np.testing.assert_allclose(pair.mean(), table / (table + 2))

    def later(round: int, contest, evidence: np.ndarray) -> tuple[np.ndarray, float]:
        return np.full((2, 3), 1.0 + round) + evidence[:, :, 0].mean(axis=0), 1.0

    moving = BetaPosterior(game, prior=later, forget=1.0)
    assert (moving.parameters()[0] == 1).all()
    moving.learn(np.array([0]), np.array([[1, 0, 0]]))
    # prior 2 plus the family's mean (.5, 0, 0), then arm 0's own evidence
    np.testing.assert_allclose(moving.parameters()[0], [[3.5, 2, 2], [2.5, 2, 2]])


@pytest.mark.parametrize("kind", [BetaPosterior, DirichletPosterior])
@pytest.mark.parametrize(
    ("arms", "vectors"),
    [
        ([0, 7], [[1, 0], [0, 1]]),
        ([-1], [[1, 0]]),
        ([0.5], [[1, 0]]),
        ([0], [[1, 0, 0]]),
        ([0], [[1.5, 0]]),
        ([0], [[np.nan, 0]]),
        ([0, 1], [[1, 0]]),
    ],
)
def test_errors_change_nothing(contest, kind: type, arms: list, vectors: list) -> None:
    made = kind(contest(arms=3, classes=2))
    made.learn(np.array([1]), np.array([[1.0, 0.0]]))
    before = made.state()
    with pytest.raises(InputError):
        made.learn(np.array(arms), np.array(vectors))
    for name, value in made.state().items():
        np.testing.assert_array_equal(value, before[name])


def test_dirichlet_takes_at_most_one(contest) -> None:
    made = DirichletPosterior(contest(arms=1, classes=2))
    with pytest.raises(InputError, match=r"sums to 1\.5"):
        made.learn(np.array([0]), np.array([[1.0, 0.5]]))
    assert made.round == 0
    with pytest.raises(InputError, match="pair"):
        DirichletPosterior(contest(arms=1, classes=2), prior=(1.0, 1.0))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"forget": 0.0}, "forget"),
        ({"forget": 1.1}, "forget"),
        ({"forgetting": "never"}, "forgetting"),
        ({"prior": 0.0}, "above 0"),
        ({"prior": np.ones(5)}, "shape"),
        ({"prior": lambda *_: -1.0}, "above 0"),
    ],
)
def test_wrong_options(contest, options: dict, match: str) -> None:
    with pytest.raises(InputError, match=match):
        BetaPosterior(contest("multi-label", classes=4), **options)


def test_thousands_of_rounds_stay_finite(contest) -> None:
    made = BetaPosterior(contest("multi-label", arms=2, classes=1))
    made.round = 10_000
    assert np.isfinite(made.scores(100, np.ones(1), np.random.default_rng(0))).all()
