"""badge against explicit gradient embeddings and a race in which every clock is advanced at every
step.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from cases import cases, many, open_arm, others, walk
from hypothesis import given
from hypothesis import strategies as st
from oracles import BadgeRace, embeddings, squared_distances
from scipy.stats import chisquare

import tailor.strategies.lazy_maximum
from tailor.strategies.badge import Badge
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view


def check_agreement(case, share):
    view = case.view()
    race = BadgeRace(view, seed=11)
    scale = (race.points**2).sum(1).max()

    def check(index):
        values = race.values()
        best = min(values.values())
        if best == math.inf or not scale:
            return  # copies of centres only: any free one will do
        assert values[index] == best or abs(values[index] - best) <= 1e-9 * max(
            abs(best), abs(values[index])
        )
        race.follow(index)

    walk(view, open_arm(Badge(), view, seed=11), case.seed, share, check)


@pytest.mark.parametrize("buffer", [3, 256])
@many(150)
@given(case=cases(), share=others)
def test_pick_by_pick(buffer, case, share):
    """With few clocks at hand, the others stop and are brought up to date later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tailor.strategies.lazy_maximum, "BUFFER", buffer)
        patch.setattr(tailor.strategies.lazy_maximum, "MOST", 4 * buffer)
        check_agreement(case, share)


@pytest.mark.parametrize("classes", [2, 50])
@many(10)
@given(data=st.data())
def test_few_and_many_classes(classes, data):
    check_agreement(data.draw(cases(classes=classes)), 0.3)


@pytest.mark.parametrize("task", [MultiClass(3), MultiLabel(3)], ids=lambda t: t.kind)
def test_draws_have_the_law_of_kmeans_plus_plus(task):
    """Two draws together, over 3,000 seeds, other arms' picks being centres before and between.

    Bound: chi-square p above 0.001, total variation below 0.05 (pure chance gives about 0.04 with
    40 cells).
    """
    pool = make_pool(task, 8, seed=3)
    points = embeddings(make_view(pool, 0, labelled=0.0))
    runs = 3000
    counts = {}
    for seed in range(runs):
        view = make_view(pool, 0, labelled=0.0)
        cursor = open_arm(Badge(), view, seed=seed)
        view.ledger.take(0)
        first = cursor.take()
        view.ledger.take(first)
        view.ledger.take(between(first))
        pair = first, cursor.take()
        counts[pair] = counts.get(pair, 0) + 1
    expected = {}
    for first, second in itertools.permutations(range(1, 8), 2):
        if second == between(first):
            continue
        one = squared_distances(points, [0])
        two = squared_distances(points, [0, first, between(first)])
        expected[first, second] = one[first] / one.sum() * two[second] / two.sum()
    assert set(counts) <= set(expected)
    assert sum(expected.values()) == pytest.approx(1)
    seen = np.array([counts.get(pair, 0) for pair in expected])
    law = np.array(list(expected.values()))
    large = law * runs >= 5
    rare = [v[~large].sum() for v in (seen, law * runs)]
    assert rare[1] > 0 or rare[0] == 0
    cells = [np.append(v[large], [r] * int(rare[1] > 0)) for v, r in zip((seen, law * runs), rare)]
    assert chisquare(*cells).pvalue > 0.001
    assert np.abs(seen / runs - law).sum() / 2 < 0.05


def between(first):
    """What another arm takes after the first draw."""
    return 1 if first != 1 else 2


@pytest.mark.parametrize("task", [MultiClass(4), MultiLabel(4)], ids=lambda t: t.kind)
def test_the_largest_norm_is_returned_first(task):
    for seed in range(20):
        view = make_view(make_pool(task, 30, seed=seed), seed, labelled=0.2)
        norms = np.where(view.free, (embeddings(view) ** 2).sum(1), -1)
        assert open_arm(Badge(), view, seed=seed).take() == norms.argmax()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_a_copy_of_a_taken_example_waits_until_only_copies_are_left(dtype):
    """Half of the pool are copies; whoever took the original, its copies come last."""
    for seed in range(25):
        half = make_pool(MultiClass(3), 12, seed=seed)
        probs, features = (
            np.concatenate([a, a]).astype(dtype) for a in (half.probs, half.features)
        )
        view = make_view(half, seed)
        view = type(view)(view.task, probs, features, seed=seed)
        cursor = open_arm(Badge(), view, seed=seed)
        rng = np.random.default_rng(seed)
        rows = set()
        while len(rows) < 12:
            ours = rng.random() < 0.7
            new = [i for i in range(24) if view.ledger.free[i] and i % 12 not in rows]
            index = cursor.take() if ours else int(rng.choice(new))
            assert index in new
            rows.add(index % 12)
            view.ledger.take(index)
        assert view.ledger.free[cursor.take()]
