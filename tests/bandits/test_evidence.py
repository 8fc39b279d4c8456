"""What the posterior learns from, and what an arm inherits from its family."""

from __future__ import annotations

import numpy as np
import pytest

from tailor.bandits import ThompsonSampling
from tailor.bandits.base import Contest, Outcomes
from tailor.bandits.posteriors import BetaPosterior, DirichletPosterior
from tailor.bandits.posteriors.evidence import find_evidence
from tailor.bandits.posteriors.family_prior import FamilyPrior
from tailor.bandits.rewards import Diversity, LabelSummary
from tailor.bandits.rewards.difficulty import FADES, class_difficulty
from tailor.errors import InputError
from tailor.task import MultiClass, MultiLabel

FAMILIES = ("galaxy", "galaxy", "galaxy", "badge")
CLASSES = (0, 1, 2, -1)


def contest(kind: str) -> Contest:
    task = MultiClass(3) if kind == "multi-class" else MultiLabel(3)
    return Contest(task, ("g0", "g1", "g2", "b"), FAMILIES, CLASSES, rounds=5, slots=10)


def outcomes(
    labels: list[list[float]], predicted: list[list[float]] | None, weights: list[float]
) -> Outcomes:
    said = None if predicted is None else np.array(predicted)
    return Outcomes(0, np.array(weights), np.zeros(len(labels), int), np.array(labels), said)


def test_surprise_is_what_the_model_did_not_know() -> None:
    seen = outcomes([[0, 1, 0], [1, 0, 0]], [[0.2, 0.7, 0.1], [0.0, 0.0, 1.0]], [0.1, 0.1, -0.1])
    found = find_evidence("surprise")(seen, MultiClass(3))
    np.testing.assert_allclose(found, [[0, 0.3, 0], [1, 0, 0]])


def test_surprise_of_a_common_class_is_in_its_zeros() -> None:
    seen = outcomes([[0, 1], [1, 0]], [[0.2, 0.7], [0.5, 0.9]], [0.5, -0.5])
    found = find_evidence("surprise")(seen, MultiLabel(2))
    np.testing.assert_allclose(found, [[0, 1], [0.5, 1 - 0.9]])
    worth = (
        found @ seen.weights
    )  # the second example's 0 in class 1 came as a surprise: it is worth more
    assert worth[1] > worth[0]


def test_surprise_needs_predictions() -> None:
    with pytest.raises(InputError, match="surprise needs"):
        find_evidence("surprise")(outcomes([[0, 1]], None, [0.5, 0.5]), MultiClass(2))


def test_unknown_names_are_told() -> None:
    with pytest.raises(InputError, match="surprize"):
        ThompsonSampling(evidence="surprize").begin(contest("multi-class"))
    with pytest.raises(InputError, match="famly"):
        ThompsonSampling(prior="famly").begin(contest("multi-class"))
    with pytest.raises(InputError, match="worth is 0"):
        ThompsonSampling(prior="family", worth=0).begin(contest("multi-class"))
    with pytest.raises(InputError, match="power is -1"):
        Diversity(power=-1)


def test_surprise_leaves_its_rest_to_the_last_part() -> None:
    made = ThompsonSampling(evidence="surprise", forget=1.0).begin(contest("multi-class"))
    made.learn(outcomes([[0, 1, 0]], [[0.2, 0.7, 0.1]], [0.1, 0.1, 0.1]))
    np.testing.assert_allclose(made.posterior.parameters()[0], [1, 1.3, 1, 0.7])


def test_family_prior_is_uniform_before_anything_is_known() -> None:
    for kind, posterior in (("multi-class", DirichletPosterior), ("multi-label", BetaPosterior)):
        game = contest(kind)
        inherits = posterior(game, prior=FamilyPrior())
        plain = posterior(game)
        np.testing.assert_allclose(inherits.parameters(), plain.parameters())


def test_family_prior_of_a_dirichlet_by_hand() -> None:
    # galaxy[0] took 30 examples: 20 of class 0, 10 of class 1. galaxy[1] took 10: 7 of class 1, 3
    # of class 2.
    evidence = np.zeros((4, 4, 1))
    evidence[0, :2, 0], evidence[1, 1:3, 0] = (20, 10), (7, 3)
    prior = FamilyPrior(worth=20)(1, contest("multi-class"), evidence)
    share = 40 / (40 + 20)
    own = 27 / 40
    other = np.array(
        [0, 10 / 30, 3 / 40]
    )  # by class, over the arms that are for another class: 10, 30 and 40 picks
    expected = (1 - own) * np.array([0, 10 / 30, 3 / 40]) / (10 / 30 + 3 / 40)
    np.testing.assert_allclose(prior[0, 0], (1 - share) + share * 20 * own, rtol=1e-6)
    np.testing.assert_allclose(prior[0, 1:3], (1 - share) + share * 20 * expected[1:], rtol=1e-6)
    # the arm that was never pulled inherits what its family does on an own class
    np.testing.assert_allclose(prior[2, 2], (1 - share) + share * 20 * own, rtol=1e-6)
    left = (1 - own) * other[1] / other[:2].sum()
    np.testing.assert_allclose(prior[2, 1], (1 - share) + share * 20 * left, rtol=1e-6)
    np.testing.assert_allclose(prior.sum(1), [(1 - share) * 3 + share * 20] * 3 + [3], rtol=1e-6)


def test_family_prior_of_a_beta_by_hand() -> None:
    evidence = np.zeros((4, 3, 2))
    evidence[0] = [[8, 2], [1, 9], [5, 5]]
    evidence[1] = [[0, 10], [6, 4], [5, 5]]
    a, b = FamilyPrior(worth=10)(1, contest("multi-label"), evidence)
    share = 20 / 30
    own = 14 / 20
    zero = 0 / 10
    one = 1 / 10
    two = 10 / 20
    expected = np.array([[own, one, two], [zero, own, two], [zero, one, own]])
    np.testing.assert_allclose(a[:3], (1 - share) + share * 10 * expected, atol=1e-6)
    np.testing.assert_allclose(b[:3], (1 - share) + share * 10 * (1 - expected), atol=1e-6)
    np.testing.assert_allclose([a[3], b[3]], 1)  # badge was never pulled


def test_family_prior_points_a_new_arm_to_its_class() -> None:
    """Three arms of a family found their own class; the untried fourth is believed to find its own
    too.
    """
    size = 40
    game = Contest(
        MultiClass(size),
        tuple(f"g{k}" for k in range(size)),
        ("galaxy",) * size,
        tuple(range(size)),
        5,
        10,
    )
    made = ThompsonSampling(prior="family", forgetting="prior").begin(game)
    arms = np.repeat([0, 1, 2], 30)
    made.learn(Outcomes(0, np.full(size, 1 / size), arms, np.eye(size)[arms]))
    share = 90 / 110
    expected = ((1 - share) + share * 20) / ((1 - share) * size + share * 20)
    assert made.beliefs()[7, 7] == pytest.approx(expected)  # 0.7
    assert ThompsonSampling().begin(game).beliefs()[7, 7] == pytest.approx(1 / size)


def test_power_of_the_diversity_reward() -> None:
    v = Diversity(power=0.5).weights(LabelSummary(MultiClass(2), 0, np.array([4.0, 9.0]), 13))
    np.testing.assert_allclose(v, [1 / 4, 1 / 6])


def test_difficulty_by_hand() -> None:
    """Two rounds: the older one counts FADES; a class that was never found is hard by half."""
    old = outcomes([[1, 0, 0], [1, 0, 0]], [[0.2, 0.8, 0], [0.4, 0.6, 0]], [1 / 3] * 3)
    new = outcomes([[1, 0, 0], [0, 1, 0]], [[0.9, 0.1, 0], [0.5, 0.5, 0]], [1 / 3] * 3)
    first = (1 + FADES * (0.8 + 0.6) + 0.1) / (2 + FADES * 2 + 1)
    np.testing.assert_allclose(class_difficulty([old, new], 3), [first, (1 + 0.5) / 3, 0.5])
    np.testing.assert_allclose(class_difficulty([], 3), 0.5)
