"""Two-level Thompson sampling against a slow loop, and what it is for: families start even."""

from __future__ import annotations

import numpy as np
import pytest

from tailor.bandits import Contest, Outcomes, TwoLevelThompsonSampling
from tailor.bandits.selectors import two_level_thompson_sampling as module
from tailor.errors import InputError
from tailor.task import MultiClass, MultiLabel

KINDS = {"multi-class": MultiClass, "multi-label": MultiLabel}


def contest_of(kind, classes, singles=1):
    """A family with an arm a class, and some families of one arm."""
    names = [f"wide[{klass}]" for klass in range(classes)]
    families = ["wide"] * classes
    arm_classes = list(range(classes))
    for number in range(singles):
        names.append(f"single{number}")
        families.append(f"single{number}")
        arm_classes.append(-1)
    task = KINDS[kind](classes)
    return Contest(task, tuple(names), tuple(families), tuple(arm_classes), rounds=5, slots=10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_family_of_a_thousand_arms_and_one_of_one_start_even(kind):
    contest = contest_of(kind, 200)
    selector = TwoLevelThompsonSampling().begin(contest)
    weights = np.full(200, 1 / 200)
    plan = selector.plan(4_000, weights, np.random.default_rng(0))
    share_of_single = (plan == 200).mean()
    # Four standard deviations of a fair coin.
    assert abs(share_of_single - 0.5) < 4 * 0.5 / np.sqrt(4_000)


def slow_plan(kind, arms, families, labels, forget, weights, slots, rng):
    """One slot after the other, every sample drawn by NumPy. Of a family "wide" and one single."""
    classes = len(weights)
    rounds = len(arms)
    decay = [forget ** (rounds - 1 - number) for number in range(rounds)]

    def sample(of_arm, prior_for, prior_against):
        hits = np.array(prior_for, float)
        misses = np.array(prior_against, float)
        for number in range(rounds):
            own = labels[number][np.isin(arms[number], of_arm)]
            hits += decay[number] * own.sum(0)
            misses += decay[number] * (1 - own).sum(0)
        if kind == "multi-class":
            return rng.dirichlet(hits)
        return rng.beta(hits, misses)

    dirichlet = kind == "multi-class"
    family_prior = np.full(classes, module.FAMILY_PRIOR / classes if dirichlet else 1.0)
    plan = []
    for _ in range(slots):
        values = []
        for members in families:
            theta = sample(members, family_prior, family_prior)
            values.append(weights @ theta)
        members = families[int(np.argmax(values))]
        values = []
        for arm in members:
            other = module.OTHER_CLASSES_PRIOR / classes if dirichlet else 1.0
            prior = np.full(classes, other)
            against = prior.copy()
            if arm < classes:
                prior[arm] += module.OWN_CLASS_PRIOR
            theta = sample([arm], prior, against)
            values.append(weights @ theta)
        plan.append(members[int(np.argmax(values))])
    return np.array(plan)


@pytest.mark.parametrize("kind", KINDS)
def test_the_law_is_that_of_a_slow_loop(kind):
    rng = np.random.default_rng(1)
    classes = 3
    contest = contest_of(kind, classes)
    selector = TwoLevelThompsonSampling(forget=0.8).begin(contest)
    arms, labels = [], []
    weights = np.array([0.6, 0.1, 0.3])
    for number in range(3):
        arms.append(rng.integers(0, 4, 6))
        if kind == "multi-class":
            labels.append(np.eye(classes)[rng.integers(0, classes, 6)])
        else:
            labels.append((rng.random((6, classes)) < 0.4).astype(float))
        selector.learn(Outcomes(number, weights, arms[-1], labels[-1]))
    slots = 20_000
    plan = selector.plan(slots, weights, rng)
    wanted = slow_plan(
        kind, arms, [[0, 1, 2], [3]], labels, 0.8, weights, 4_000, np.random.default_rng(2)
    )
    shares = np.bincount(plan, minlength=4) / slots
    expected = np.bincount(wanted, minlength=4) / 4_000
    noise = np.sqrt(expected * (1 - expected) / 4_000) + 1e-3
    assert (np.abs(shares - expected) < 5 * noise).all()


def test_beliefs_are_the_families_where_they_have_one_arm():
    contest = contest_of("multi-class", 2, singles=2)
    selector = TwoLevelThompsonSampling(forget=1.0).begin(contest)
    label = np.array([[1.0, 0.0]]).repeat(8, axis=0)
    selector.learn(Outcomes(0, np.zeros(2), np.full(8, 2), label))
    beliefs = selector.beliefs()
    assert beliefs[2] == pytest.approx([9 / 10, 1 / 10])
    assert beliefs[3] == pytest.approx([0.5, 0.5])
    # Of an arm for class 0: 1.25 and 0.25 observations to begin with.
    assert beliefs[0] == pytest.approx([1.25 / 1.5, 0.25 / 1.5])


def test_a_contest_with_other_families_has_another_state():
    saved = TwoLevelThompsonSampling().begin(contest_of("multi-class", 3)).state()
    other = TwoLevelThompsonSampling().begin(contest_of("multi-class", 3, singles=2))
    with pytest.raises(InputError, match="shape"):
        other.restore(saved)


def test_a_lead_has_nearly_all_slots_at_first_and_half_at_its_number_of_labels():
    contest = contest_of("multi-class", 4, singles=3)
    selector = TwoLevelThompsonSampling(lead="single1", lead_labels=10).begin(contest)
    weights = np.full(4, 0.25)
    lead = contest.arms.index("single1")
    first = selector.plan(200, weights, np.random.default_rng(0))
    assert (first == lead).all()
    # 40 answers, 10 a class: half of the slots, and what it wins of the others.
    labels = np.eye(4)[np.arange(40) % 4]
    selector.learn(Outcomes(0, weights, np.full(40, lead), labels))
    later = selector.plan(4_000, weights, np.random.default_rng(1))
    assert 0.5 < (later == lead).mean() < 0.85
    again = TwoLevelThompsonSampling(lead="single1", lead_labels=10).begin(contest)
    again.restore(selector.state())
    assert np.array_equal(
        again.plan(50, weights, np.random.default_rng(2)),
        selector.plan(50, weights, np.random.default_rng(2)),
    )


def test_a_lead_that_is_not_among_the_families_changes_nothing():
    contest = contest_of("multi-class", 3)
    weights = np.full(3, 1 / 3)
    plain = TwoLevelThompsonSampling().begin(contest)
    led = TwoLevelThompsonSampling(lead="herding").begin(contest)
    plans = [one.plan(50, weights, np.random.default_rng(0)) for one in (plain, led)]
    assert np.array_equal(*plans)


def test_a_lead_that_never_ends_is_refused():
    with pytest.raises(InputError, match="lead_labels is 0"):
        TwoLevelThompsonSampling(lead="herding", lead_labels=0)
