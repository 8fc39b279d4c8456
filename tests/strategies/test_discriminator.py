"""discriminator against the plain definition, and the logistic regression behind it."""

from __future__ import annotations

import numpy as np
import parts
import pytest
import torch
from batch_oracles import discriminator_logits, standard_rows
from cases import cases, many, open_arm, others, walk
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from tailor.common.logistic import fit_logistic
from tailor.errors import InputError
from tailor.selection.array_view import ArrayView
from tailor.strategies.discriminator import Discriminator
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view


class Watched:
    """The oracle's logits, as of the beginning of each part."""

    def __init__(self, view, part):
        self.view = view
        self.part = part
        self.given = 0
        self.rows = standard_rows(view, view.free_ids)
        self.logits = None

    def check(self, index):
        view = self.view
        known = len(view.labelled) + len(view.pending) + view.ledger.count
        if known == 0:
            return
        if self.logits is None or self.given == self.part:
            self.logits = discriminator_logits(view, self.rows)
            self.given = 0
        self.given += 1
        free = np.flatnonzero(view.ledger.free)
        assert self.logits[index] <= self.logits[free].min() + 1e-5


@many(25)
@given(case=cases(sizes=(1, 24)), share=others, pulls=st.sampled_from([1, 7, 20]))
def test_it_takes_what_looks_least_labelled_and_learns_after_each_part(case, share, pulls):
    view = case.view()
    part = max(1, -(-pulls // 4))
    watched = Watched(view, part)
    cursor = open_arm(Discriminator(parts=4), view, pulls=pulls)
    walk(view, cursor, case.seed, share, watched.check)


def test_takes_of_other_arms_count_as_labelled():
    """Two heaps beside the labelled one: when another arm takes the one that comes first, the
    other is next.
    """
    rng = np.random.default_rng(0)
    heaps = np.repeat([0, 1, 2], [10, 20, 20])
    features = np.eye(3)[heaps] * [1, 3, 2] + 0.01 * rng.normal(size=(50, 3))
    first_picks = []
    for taken_elsewhere in (0, 10):
        view = ArrayView(
            MultiClass(2),
            np.full((50, 2), 0.5),
            features,
            labelled=np.arange(10),
            labels=np.eye(2)[[0] * 10],
        )
        cursor = open_arm(Discriminator(parts=2), view, pulls=2)
        first = cursor.take()
        view.ledger.take(first)
        heap = heaps[first]
        for index in np.flatnonzero((heaps == heap) & view.ledger.free)[:taken_elsewhere]:
            view.ledger.take(int(index))
        first_picks.append((heap, heaps[cursor.take()]))
    assert first_picks[0][0] == first_picks[1][0] != first_picks[1][1]


def test_a_large_pool_is_told_apart_by_a_sample_of_either_side():
    """Half of the first hundred picks at least are those of the fit to everything."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(3000, 8)) * np.linspace(1, 3, 8)
    labelled = np.flatnonzero(features[:, 7] > 3)[:300]
    picks = []
    for sample in (150, 4000):
        view = ArrayView(
            MultiLabel(1),
            np.full((3000, 1), 0.5),
            features,
            labelled=labelled,
            labels=np.ones((len(labelled), 1)),
        )
        cursor = open_arm(Discriminator(sample=sample, parts=1), view, pulls=100)
        assert len(cursor.sample) <= sample
        assert len(cursor.known) == min(sample, len(labelled))
        for _ in range(100):
            view.ledger.take(cursor.take())
        picks.append(set(view.ledger.taken.tolist()))
    assert len(picks[0] & picks[1]) >= 50


def test_nothing_known_leaves_chance():
    firsts = set()
    for seed in range(20):
        view = make_view(make_pool(MultiClass(2), 30, seed=0), 1, labelled=0.0)
        firsts.add(open_arm(Discriminator(), view, seed=seed).take())
    assert len(firsts) > 5


@pytest.mark.parametrize("seed", range(4))
def test_the_fit_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(200, 5))
    y = (x[:, 0] + rng.normal(size=200) > 0).astype(float)
    weight = rng.random(200) + 0.1
    theirs = LogisticRegression(C=1 / 3, tol=1e-12, max_iter=10_000).fit(x, y, sample_weight=weight)
    rows = torch.from_numpy(np.concatenate([x, np.ones((200, 1))], 1))
    ours = fit_logistic(
        rows,
        torch.from_numpy(y),
        torch.from_numpy(weight),
        penalties=torch.tensor([3.0] * 5 + [0.0], dtype=torch.float64),
        start=torch.zeros(6, dtype=torch.float64),
    )
    assert ours.numpy() == pytest.approx([*theirs.coef_[0], *theirs.intercept_], abs=1e-5)


def test_classes_that_are_far_apart_are_no_trouble():
    rows = torch.tensor([[-1e6, 1.0], [1e6, 1.0]], dtype=torch.float64)
    targets = torch.tensor([0.0, 1.0], dtype=torch.float64)
    weights = fit_logistic(
        rows,
        targets,
        torch.ones(2, dtype=torch.float64),
        penalties=torch.tensor([1.0, 0.0], dtype=torch.float64),
        start=torch.zeros(2, dtype=torch.float64),
    )
    assert torch.isfinite(weights).all()
    assert weights[0] > 0


def test_the_first_pick_is_that_of_scikit_activeml():
    parts.need("scikit-activeml")
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import DiscriminativeAL

    view = make_view(make_pool(MultiClass(3), 80, seed=6, dims=4), 6, labelled=0.2)
    rows = standard_rows(view, view.free_ids)[:, :-1]
    smaller = min(len(view.labelled), len(view.free_ids))
    # Their classes: 0 is unlabelled, 1 is labelled.
    weight = {0: smaller / len(view.free_ids), 1: smaller / len(view.labelled)}
    labels = np.full(80, np.nan)
    labels[view.labelled] = view.labels.argmax(1)
    theirs = DiscriminativeAL(greedy_selection=True, random_state=0)
    classifier = LogisticRegression(C=1 / 4, class_weight=weight, tol=1e-10, max_iter=5000)
    chosen = theirs.query(
        X=rows, y=labels, discriminator=SklearnClassifier(classifier, classes=[0, 1])
    )
    assert open_arm(Discriminator(), view).take() == chosen[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": 0}, "parts is 0: at least 1"),
        ({"sample": 0}, "sample is 0: at least 1"),
        ({"variance": 0.0}, "variance is 0.0: a number above 0"),
        ({"variance": "much"}, "variance is 'much'"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(InputError, match=message):
        Discriminator(**options)
