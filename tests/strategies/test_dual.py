"""dual against the plain definition."""

from __future__ import annotations

import numpy as np
import pytest
from batch_oracles import dual_scores
from cases import cases, many, open_arm, others, walk
from hypothesis import given
from hypothesis import strategies as st

from tailor.errors import InputError
from tailor.selection.array_view import ArrayView
from tailor.strategies.dual import Dual, moving_share
from tailor.strategies.kernel_cover import draw_free
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view


@many(60)
@given(
    case=cases(sizes=(1, 20)),
    share=others,
    fixed=st.sampled_from([None, 0.0, 0.4, 1.0]),
    references=st.sampled_from([512, 5]),
)
def test_it_ranks_by_doubt_and_density(case, share, fixed, references):
    view = case.view()
    drawn = draw_free(view, references, np.random.default_rng(5)).tolist()
    cursor = open_arm(Dual(share=fixed, references=references, quantile=0.3), view, seed=5)
    scores = dual_scores(view, drawn, 0.3, fixed)

    def check(index):
        best = max(scores[i] for i in np.flatnonzero(view.ledger.free).tolist())
        assert scores[index] >= best - 1e-8 * (1 + best)

    walk(view, cursor, case.seed, share, check)


@pytest.mark.parametrize("kind", [MultiClass, MultiLabel])
def test_the_share_of_plain_doubt_rises_with_labels_and_as_the_error_falls(kind):
    task = kind(4)
    unsure = np.full((400, 4), 0.25 if kind is MultiClass else 0.5)
    sure = 0.8 * np.eye(4)[np.arange(400) % 4] + 0.05
    if kind is MultiLabel:
        sure = 0.2 + 0.6 * np.eye(4)[np.arange(400) % 4]
    shares = []
    for probs, labelled in ((unsure, 0), (unsure, 4), (sure, 4), (sure, 40), (sure, 300)):
        labels = np.eye(4)[np.arange(labelled) % 4]
        view = ArrayView(task, probs, labelled=np.arange(labelled), labels=labels)
        doubts = 1 - view.row_max.double()
        if kind is MultiLabel:
            doubts = view.probs.minimum(1 - view.probs).mean(1)
        shares.append(moving_share(view, doubts))
    assert shares[:2] == pytest.approx([0, 0.5])
    assert (np.diff(shares) > 0).all()
    assert shares[-1] > 0.99


def test_an_outlier_waits_while_labels_are_few():
    """A crowd that the model doubts a little less than it does a lone example."""
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.normal((3, 0), 0.1, (60, 2)), [[-3.0, 5.0]]])
    probs = np.concatenate([np.tile([0.58, 0.42], (60, 1)), [[0.5, 0.5]]])
    few = ArrayView(MultiClass(2), probs, features, labelled=[0], labels=[[1, 0]])
    assert open_arm(Dual(), few).take() != 60
    many_labels = ArrayView(
        MultiClass(2),
        probs,
        features,
        labelled=np.arange(40),
        labels=np.eye(2)[np.arange(40) % 2],
    )
    assert open_arm(Dual(), many_labels).take() == 60


def test_the_same_round_again_has_the_same_picks():
    pool = make_pool(MultiClass(3), 50, seed=2)
    picks = []
    for _ in range(2):
        view = make_view(pool, 2)
        cursor = open_arm(Dual(), view)
        for _ in range(10):
            view.ledger.take(cursor.take())
        picks.append(view.ledger.taken.tolist())
    assert picks[0] == picks[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 1.5}, r"share is 1.5: a number in \[0, 1\]"),
        ({"share": "half"}, "share is 'half'"),
        ({"references": 0}, "references is 0: at least 1"),
        ({"quantile": -0.1}, r"quantile is -0.1: a number in \[0, 1\]"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(InputError, match=message):
        Dual(**options)
