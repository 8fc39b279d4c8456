"""Rewards: both signs of diversity, the search and the user's weights, and their limits."""

from __future__ import annotations

import numpy as np
import pytest

from tailor.bandits.rewards import Difficulty, Diversity, Domain, LabelSummary, Search, make_reward
from tailor.bandits.rewards import registry as rewards
from tailor.errors import InputError, UnknownName
from tailor.task import MultiClass, MultiLabel

COUNTS = np.array([0, 1, 4, 6])  # of 10 labelled: the last is common


def summary(task, round=0, counts=COUNTS, labelled=10, difficulty=None):
    return LabelSummary(task, round, counts, labelled, difficulty)


def test_diversity_signs() -> None:
    plain = [1 / 4, 1 / 4, 1 / 16, 1 / 24]
    flipped = [1 / 4, 1 / 4, 1 / 16, -1 / 24]
    for task, expected in ((MultiClass(4), plain), (MultiLabel(4), flipped)):
        np.testing.assert_allclose(Diversity().weights(summary(task)), expected)
        np.testing.assert_allclose(Diversity(negative=True).weights(summary(task)), flipped)
        np.testing.assert_allclose(Diversity(negative=False).weights(summary(task)), plain)


def test_exactly_half_keeps_its_sign() -> None:
    assert (Diversity().weights(summary(MultiLabel(2), 0, np.array([5, 5]), 10)) > 0).all()


def test_two_classes_negative() -> None:
    v = Diversity(negative=True).weights(summary(MultiClass(2), 3, np.array([9, 1]), 10))
    np.testing.assert_allclose(v, [-1 / 18, 1 / 2])


def test_search_and_domain() -> None:
    task = MultiLabel(4)
    np.testing.assert_allclose(Search().weights(summary(task)), 0.25)
    np.testing.assert_allclose(
        Domain(weights=[0.25, 0, -0.25, 0.1]).weights(summary(task))[2], -0.25
    )
    by_round = Domain(weights=lambda round, counts: np.where(counts > 0, 0.1 * round, 0))
    np.testing.assert_allclose(by_round.weights(summary(task, 2)), [0, 0.2, 0.2, 0.2])


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ([0.25, 0.1, 0.3, 0.0], "'2' is 0.3"),
        ([0.25, -0.26, 0.0, 0.0], "'1' is -0.26"),
        ([0.25, np.nan, 0.0, 0.0], "'1' is nan"),
        ([0.25, 0.1], "shape"),
        (lambda round, counts: np.full(4, np.inf), "'0' is inf"),
    ],
)
def test_domain_limits_name_the_class(given: object, match: str) -> None:
    with pytest.raises(InputError, match=match):
        Domain(weights=given).weights(summary(MultiLabel(4)))


def test_rounding_at_the_limit_is_fine() -> None:
    given = np.full(3, np.float32(1) / 3)
    np.testing.assert_allclose(
        Domain(weights=given).weights(summary(MultiLabel(3), 0, np.zeros(3), 0)), given
    )


@pytest.mark.parametrize("counts", [np.zeros(3), np.array([1, 2, 3, -1]), np.array([1, 2, 3, 11])])
def test_wrong_counts(counts: np.ndarray) -> None:
    with pytest.raises(InputError):
        Search().weights(summary(MultiLabel(4), 0, counts, 10))


def test_by_name() -> None:
    assert list(rewards)[:3] == ["diversity", "search", "domain"]
    made = make_reward("diversity(negative=true)")
    assert isinstance(made, Diversity)
    assert made.negative is True
    assert make_reward(made) is made
    with pytest.raises(UnknownName, match="search"):
        make_reward("serch")


def test_difficulty_weighs_what_the_model_gets_wrong() -> None:
    hard = np.array([0.5, 0.1, 0.25, 0.0])
    np.testing.assert_allclose(
        Difficulty().weights(summary(MultiLabel(4), difficulty=hard)), hard / 2
    )
    np.testing.assert_allclose(
        Difficulty().weights(summary(MultiClass(4))), 0.25
    )  # before anything is known
