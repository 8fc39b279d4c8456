"""ALBL, COMB and DEAL against numbers worked by hand from their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from tailor.bandits import ALBL, COMB, DEAL
from tailor.bandits.base import Fit, Outcomes
from tailor.errors import InputError


def outcomes(arms: list[int], classes: int, round: int = 0, **fit: object) -> Outcomes:
    given: dict = {
        "correct": np.zeros(0),
        "chances": np.zeros(0),
        "rates": np.zeros(classes),
        "pool": 100,
    }
    labels = np.eye(classes)[np.zeros(len(arms), int)]
    return Outcomes(round, np.zeros(classes), np.array(arms), labels, fit=Fit(**{**given, **fit}))


def test_albl_by_hand(contest) -> None:
    # M = 2, T = 2 x 5 = 10: pmin = sqrt(ln 2 / 20) = .186165; bonus = sqrt(ln 20 / 20) = .387023
    albl = ALBL().begin(contest(arms=2, classes=2, rounds=2, slots=5))
    assert albl.floor == pytest.approx(0.186165, abs=1e-6)
    np.testing.assert_allclose(albl.chances(np.zeros(5, int)), [0.5, 0.5])
    # reward (1 + 1 + 0) / .5 / (100 * 10) = .004; a slot adds pmin/2 * (.004 + .387023) / .5
    seen = {"correct": np.array([1.0, 1.0, 0.0]), "chances": np.full(3, 0.5)}
    albl.learn(outcomes([0, 0, 1, 0], 2, **seen))
    np.testing.assert_allclose(albl.log_weights, [0, -2 * 0.0727947], atol=1e-6)
    np.testing.assert_allclose(albl.chances(np.zeros(1, int)), [0.522805, 0.477195], atol=1e-6)
    # the user's own reward, .5, stands in for the accuracy
    albl.learn(outcomes([1, 0, 1], 2, round=1, reward=0.5))
    np.testing.assert_allclose(albl.log_weights, [-0.0425298, 0], atol=1e-6)


def slot_by_slot(selector, arms: list[int], reward: float, rate: float) -> np.ndarray:
    """The logarithms of the weights after a round in the form of EXP4.P's paper and of libact: the
    reward's share for the arm of each slot, the bonus for every arm. rate: what both are multiplied
    by.
    """
    m = selector.contest.size
    total = selector.contest.total
    p = selector.probabilities()
    weights = np.exp(selector.log_weights)
    for arm in arms:
        for other in range(m):
            gain = reward / p[other] if other == arm else 0.0
            gain += np.sqrt(np.log(m / selector.delta) / m / total) / p[other]
            weights[other] *= np.exp(rate * gain)
    return np.log(weights / weights.max())


@pytest.mark.parametrize(
    ("kind", "rate"),
    [(ALBL, lambda made: made.floor / 2), (DEAL, lambda made: made.floor)],
    ids=["albl", "deal"],
)
def test_a_bonus_for_every_arm_is_that_of_a_plain_loop_over_slots(contest, kind, rate) -> None:
    rng = np.random.default_rng(3)
    made = kind(bonus="every", delta=0.05).begin(contest(arms=4, classes=2, rounds=30, slots=12))
    made.log_weights = np.log([1.0, 0.2, 0.5, 0.05])
    for t in range(3):
        arms = rng.integers(0, 4, 12).tolist()
        reward = float(rng.random())
        expected = slot_by_slot(made, arms, reward, rate(made))
        made.learn(outcomes(arms, 2, round=t, reward=reward))
        np.testing.assert_allclose(made.log_weights, expected, rtol=1e-12, atol=1e-12)


def test_albl_with_a_bonus_for_every_arm_by_hand(contest) -> None:
    # As above, but the bonus, the same for both at p = 1/2, cancels: pmin/2 * .004 / .5 for each of
    # 3 - 1 slots
    albl = ALBL(bonus="every").begin(contest(arms=2, classes=2, rounds=2, slots=5))
    seen = {"correct": np.array([1.0, 1.0, 0.0]), "chances": np.full(3, 0.5)}
    albl.learn(outcomes([0, 0, 1, 0], 2, **seen))
    np.testing.assert_allclose(albl.log_weights, [0, -2 * 0.186165 / 2 * 0.004 / 0.5], atol=1e-8)


@pytest.mark.parametrize("kind", [ALBL, DEAL])
def test_a_bonus_for_every_arm_favours_who_is_drawn_least(contest, kind: type) -> None:
    """Without a reward it draws the weights together, whoever was pulled."""
    made = kind(bonus="every").begin(contest(arms=3, classes=2))
    made.log_weights = np.log([1.0, 0.5, 0.1])
    made.learn(outcomes([0] * 10, 2, reward=0.0))
    p = np.exp(made.log_weights)
    assert 0.5 < p[1] < 1
    assert 0.1 < p[2] < p[1]


def test_deal_without_a_bonus_is_as_it_was(contest) -> None:
    plain, named = (
        DEAL(**options).begin(contest()) for options in ({}, {"bonus": None, "delta": 0.3})
    )
    for made in (plain, named):
        made.learn(outcomes([0, 1, 1], 4, reward=0.5))
    np.testing.assert_array_equal(plain.log_weights, named.log_weights)


def test_albl_reward_is_clipped(contest) -> None:
    albl = ALBL().begin(contest(arms=2, classes=2, rounds=2, slots=5))
    fit = Fit(np.ones(5000), np.full(5000, 0.5), np.zeros(2), 100)
    assert albl.reward(fit) == 1.0


def test_comb_by_hand(contest) -> None:
    # M = 2, T = 100: g = sqrt(2 ln 2 / ((e - 1) 100))
    comb = COMB().begin(contest(arms=2, classes=3, rounds=10, slots=10))
    assert comb.floor == pytest.approx(0.0898215 / 2, abs=1e-6)
    comb.learn(outcomes([0, 0, 0, 0, 1], 3, rates=np.array([0.5, 0.25, 0.25])))
    # entropy of (1/2, 1/4, 1/4) is 1.5 ln 2, over ln 3; stretched
    fit = Fit(np.zeros(0), np.zeros(0), np.array([0.5, 0.25, 0.25]), 9)
    assert comb.reward(fit) == pytest.approx(0.917430, abs=1e-6)
    np.testing.assert_allclose(comb.log_weights, [0, -0.247215], atol=1e-6)
    np.testing.assert_allclose(comb.chances(np.zeros(1, int))[0], 0.555968, atol=1e-6)


def test_comb_multi_label_entropy(contest) -> None:
    comb = COMB().begin(contest("multi-label", arms=2, classes=2))
    fit = Fit(np.zeros(0), np.zeros(0), np.array([0.5, 0.25]), 9)
    assert comb.reward(fit) == pytest.approx(0.857550, abs=1e-6)
    assert comb.reward(Fit(np.zeros(0), np.zeros(0), np.zeros(2), 9)) == 0


def test_deal_starts_anew(contest) -> None:
    game = contest(arms=3, classes=2, rounds=8, slots=10)
    assert DEAL().begin(game).period == 6  # (3 ln 3)^(1/3) * 8^(2/3) = 5.95
    deal = DEAL(variation=4.0).begin(game)
    assert deal.period == 3  # * (8/4)^(2/3) = 2.36
    gaps = []
    for t in range(6):
        deal.learn(outcomes([0, 0, 1], 2, round=t, reward=0.8))
        gaps.append(np.ptp(deal.log_weights))
    assert [g > 0 for g in gaps] == [True, True, False, True, True, False]
    assert gaps[:3] == gaps[3:]
    # one slot's step at p = 1/3: g * .8 / (3 / 3)
    g = min(1, (3 * np.log(3) / ((np.e - 1) * 80)) ** 0.5)
    assert gaps[0] == pytest.approx(2 * g * 0.8)


@pytest.mark.parametrize("kind", [ALBL, COMB, DEAL])
def test_weights_stay_finite_and_chances_exact(contest, kind: type) -> None:
    game = contest(arms=4, classes=2, rounds=50, slots=2000)
    made = kind().begin(game)
    for t in range(50):
        made.learn(outcomes([2] * 2000, 2, round=t, reward=1.0))
    p = made.chances(np.zeros(1, int))
    assert p.sum() == pytest.approx(1)
    assert p.min() >= made.floor * (1 - 1e-12)
    plan = made.plan(20_000, np.zeros(2), np.random.default_rng(0))
    share = np.bincount(plan, minlength=4) / 20_000
    assert np.abs(share - p).max() < 4 * np.sqrt(0.25 / 20_000)


@pytest.mark.parametrize("kind", [ALBL, COMB, DEAL])
@pytest.mark.parametrize(
    "fit", [{"reward": 1.2}, {"reward": np.nan}, {"pool": 0}, {"rates": np.zeros(5)}]
)
def test_wrong_fit_changes_nothing(contest, kind: type, fit: dict) -> None:
    made = kind().begin(contest(arms=2, classes=2))
    before = made.state()
    with pytest.raises(InputError):
        made.learn(outcomes([0, 0, 1], 2, **fit))
    with pytest.raises(InputError, match=r"Outcomes\.fit"):
        made.learn(Outcomes(0, np.zeros(2), np.array([0]), np.eye(2)[:1]))
    for name, value in made.state().items():
        np.testing.assert_array_equal(value, before[name])


def test_single_arm(contest) -> None:
    for kind in (ALBL, COMB, DEAL):
        made = kind().begin(contest(arms=1, classes=2))
        made.learn(outcomes([0, 0], 2, reward=1.0))
        assert made.chances(np.zeros(1, int)).tolist() == [1.0]


def test_wrong_options(contest) -> None:
    with pytest.raises(InputError, match="delta"):
        ALBL(delta=0).begin(contest())
    with pytest.raises(InputError, match="variation"):
        DEAL(variation=0).begin(contest())
    with pytest.raises(InputError, match="bonus is 'all': it must be pulled or every"):
        ALBL(bonus="all").begin(contest())
    with pytest.raises(InputError, match="bonus is 'pulled': it must be none or every"):
        DEAL(bonus="pulled").begin(contest())
    with pytest.raises(InputError, match="delta is 1"):
        DEAL(bonus="every", delta=1).begin(contest())
