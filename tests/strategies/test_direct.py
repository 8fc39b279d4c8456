"""direct against a walk over the whole line for each pick, and beside galaxy with wrong labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import cases, many, open_arm, others, reveal_some, walk
from direct_oracle import DirectWalk, in_doubt, oracle_cut
from hypothesis import given
from hypothesis import strategies as st

from tailor import Learner
from tailor.compute import LocalEngine
from tailor.errors import Exhausted, InputError
from tailor.selection.array_view import ArrayView
from tailor.strategies import SETS, direct, direct_cut, make_strategy
from tailor.strategies.direct import Direct
from tailor.strategies.direct_cut import LabelledScores
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool
from tailor.testing.engines import check_same_picks

spreads = st.sampled_from([0.0, 0.1, 0.5, 1.0])


def check_agreement(case, klass, share, spread, reveal=0.0):
    view = case.view()
    strategy = Direct(spread=spread)
    cursor = open_arm(strategy, view, klass, pulls=3, seed=7)
    oracle = DirectWalk(view, klass, spread, seed=7)

    def check(index):
        assert index == oracle.pick()

    walk(view, cursor, case.seed, share, check, reveal_some(view, case.pool, reveal))


@pytest.mark.parametrize("spare", [1, 16])
@many(400)
@given(case=cases(), share=others, spread=spreads, reveal=st.sampled_from([0.0, 0.5]))
def test_every_pick_is_the_oracles(spare, case, share, spread, reveal):
    """With one to spare the lists are used up and made longer; labels that come meanwhile change
    nothing.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(direct, "SPARE", spare)
        check_agreement(case, case.seed % case.task.size, share, spread, reveal)


@pytest.mark.parametrize("classes", [2, 50])
@many(12)
@given(case=cases(classes=2, grids=(64, None), sizes=(100, 200)), spread=spreads)
def test_few_and_many_classes(classes, case, spread):
    wider = type(case)(**{**case.__dict__, "task": type(case.task)(classes), "never": None})
    check_agreement(wider, classes - 1, 0.3, spread)


@many(300)
@given(case=cases())
def test_the_cut_and_what_is_in_doubt(case):
    view = case.view()
    labelled = LabelledScores(view)
    for klass in range(case.task.size):
        cut = labelled.cut(klass)
        assert cut.score == oracle_cut(view, klass)
        assert (cut.bottom, cut.top) == in_doubt(view, klass)


@many(40)
@given(case=cases(grids=(64,)), dtype=st.sampled_from([np.float32, np.float16]), spread=spreads)
def test_lower_precision_gives_the_same_picks(case, dtype, spread):
    """Multiples of 1/64 are exact in half precision too."""
    picks = []
    for precision in (np.float64, dtype):
        view = case.view(dtype=precision)
        mine = []
        walk(view, open_arm(Direct(spread=spread), view, 0), case.seed, 0.0, mine.append)
        picks.append(mine)
    assert picks[0] == picks[1]


@pytest.mark.parametrize("kind", [MultiClass, MultiLabel])
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_over_shards_the_picks_are_those_in_memory(kind, spread, tmp_path):
    pool = make_pool(kind(5), 400, seed=4, copies=0.1)
    strategy = Direct(spread=spread)
    check_same_picks(LocalEngine(), pool, [strategy], tmp_path, seed=5, shard=64, dtype=np.float16)


# ------------------------------------------------------------------ by hand


def line_of_ten(labelled, labels, **more):
    """One class; the score of example i is i/16."""
    probs = np.arange(10)[:, None] / 16
    rows = np.array(labels).reshape(-1, 1)
    return ArrayView(MultiLabel(1), probs, labelled=labelled, labels=rows, **more)


def take_some(view, count, **options):
    cursor = open_arm(Direct(**options), view, pulls=count)
    picks = []
    for _ in range(count):
        picks.append(cursor.take())
        view.ledger.take(picks[-1])
    return picks


def test_both_sides_of_the_cut_in_turn_and_then_what_is_left():
    view = line_of_ten([2, 6], [0, 1])
    # Midway between 2/16 and 6/16 lies 4/16, which counts as above.
    assert take_some(view, 8, spread=0) == [4, 3, 5, 1, 7, 0, 8, 9]
    with pytest.raises(Exhausted, match="every example has been taken"):
        open_arm(Direct(), view, pulls=1).take()


def test_a_single_wrong_label_does_not_move_the_cut():
    view = line_of_ten([0, 1, 2, 5, 8, 9], [0, 1, 0, 1, 1, 1])
    assert take_some(view, 2, spread=0) == [4, 3]


@pytest.mark.parametrize(
    ("labelled", "labels", "score", "doubt"),
    [
        ([], [], 1 / 2, (0, 1)),  # no label: where the model puts it
        ([8], [0], 3 / 4, (1 / 2, 1)),  # no positive: above the highest negative
        ([4, 8], [1, 1], 1 / 8, (0, 1 / 4)),  # no negative: below the lowest positive
        ([0, 4, 6, 8], [0, 1, 0, 1], 7 / 16, (0, 1 / 2)),  # two are as good: the highest
        ([2, 8], [1, 0], 3 / 4, (0, 1)),  # upside down: above all of them
        ([0, 2, 4, 6], [0, 0, 1, 1], 3 / 16, (1 / 8, 1 / 4)),  # in order
    ],
)
def test_where_the_cut_lies(labelled, labels, score, doubt):
    cut = LabelledScores(line_of_ten(labelled, labels)).cut(0)
    assert cut.score == score
    assert (cut.bottom, cut.top) == doubt


def test_equal_scores_are_not_parted():
    probs = np.array([[0.25], [0.5], [0.5], [0.5], [0.75]])
    labels = [[0], [1], [0], [1]]
    view = ArrayView(MultiLabel(1), probs, labelled=[0, 1, 2, 4], labels=labels)
    cut = LabelledScores(view).cut(0)
    # Both cuts gain 1/2; the upper one is taken, though one of the positives lies below it.
    assert cut.score == 5 / 8
    # The positive that shares its score with a negative leads nothing, the other way neither.
    assert (cut.bottom, cut.top) == (1 / 4, 3 / 4)


def test_a_multi_class_score_is_the_lead_over_the_best_other_class():
    probs = [[0.5, 0.5, 0.0], [0.4, 0.35, 0.25], [0.6, 0.4, 0.0], [0.3, 0.3, 0.4], [1, 0, 0]]
    view = ArrayView(MultiClass(3), np.array(probs))
    # Leads of class 0: 0, .05, .2, -.1, 1; nothing is labelled, so the cut is at 0.
    cursor = open_arm(Direct(spread=0), view, 0)
    picks = []
    for _ in range(5):
        picks.append(cursor.take())
        view.ledger.take(picks[-1])
    assert picks == [0, 3, 1, 2, 4]


def test_a_class_that_leads_everywhere_is_scored_a_chunk_at_a_time(monkeypatch):
    monkeypatch.setattr(direct_cut, "CHUNK", 64)
    fetched = []

    class WatchedView(ArrayView):
        def rows(self, which, classes=None):
            rows = super().rows(which, classes)
            if isinstance(which, torch.Tensor):
                fetched.append(len(rows))
            return rows

    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 1000).astype(np.float32)
    probs = np.sort(probs, axis=1)[:, ::-1].copy()
    view = WatchedView(MultiClass(4), probs)
    scores = direct_cut.class_scores(view, torch.from_numpy(probs[:, 0].copy()))
    assert np.array_equal(scores.numpy(), probs[:, 0] - probs[:, 1])
    assert sum(fetched) == 1000
    assert max(fetched) == 64


# ------------------------------------------------------------------ spread


def test_spread_takes_random_ones_in_doubt_all_with_the_same_chance():
    counts = np.zeros(10)
    for seed in range(800):
        view = line_of_ten([1, 3, 6, 8], [0, 1, 0, 1], seed=seed)
        counts[open_arm(Direct(spread=1), view).take()] += 1
    doubtful = [2, 4, 5, 7]
    assert counts[doubtful].sum() == 800
    expected = 800 / 4
    distance = ((counts[doubtful] - expected) ** 2 / expected).sum()
    assert distance < 16.3  # chi-square, 3 degrees, p = 0.001


def test_spread_is_the_share_of_pulls_that_go_there():
    """Everything is in doubt, and what is next to the cut is hardly ever drawn by lot."""
    size = 4000
    probs = (np.arange(size) / size)[:, None]
    elsewhere = 0
    for seed in range(8):
        view = ArrayView(MultiLabel(1), probs, seed=seed)
        cursor = open_arm(Direct(spread=0.2), view, pulls=100, seed=seed)
        for _ in range(100):
            index = cursor.take()
            view.ledger.take(index)
            elsewhere += abs(index - size / 2) > 60
    assert 120 < elsewhere < 195  # 155 are expected, with a standard deviation of 11


def test_when_nothing_in_doubt_is_left_both_sides_give():
    view = line_of_ten([4, 6], [0, 1])
    assert take_some(view, 8, spread=1)[0] == 5
    assert view.ledger.left == 0


# ------------------------------------------------------------------ labels


def test_a_label_that_was_withdrawn_counts_no_more():
    """Told wrong and withdrawn before a round, or never told: the same picks."""
    pool = make_pool(MultiClass(3), 120, seed=2)
    wrong = np.roll(pool.truth[40:60], 1, axis=1)
    asked = []
    for is_told in (False, True):
        learner = Learner(pool.task, 120, strategies=["direct"], selector="random-meta", batch=8)
        learner.tell(np.arange(20), pool.truth[:20])
        if is_told:
            learner.tell(np.arange(40, 60), wrong)
            learner.withdraw(np.arange(40, 60))
        asked.append(learner.ask(pool.probs).indices.tolist())
    assert asked[0] == asked[1]


# ------------------------------------------------------------------ wrong labels


def simulate(family, seed, flips):
    """Five rounds of 30 picks after 100 random labels, a share of all labels wrong; the class is
    the top fifth of the line -> (positives found, mean distance of the picks from the true border
    by rank).
    """
    rng = np.random.default_rng(seed)
    size = 4000
    border = 800
    rank = np.arange(size)
    truth = rank < border
    probs = (1 - (rank + 0.5) / size)[:, None]
    told = np.where(rng.random(size) < flips, ~truth, truth)
    labelled = rng.choice(size, 100, replace=False)
    for number in range(5):
        labels = told[labelled][:, None]
        view = ArrayView(MultiLabel(1), probs, labelled=labelled, labels=labels, seed=number)
        cursor = open_arm(make_strategy(family), view, pulls=30, seed=number)
        for _ in range(30):
            view.ledger.take(cursor.take())
        labelled = np.concatenate([labelled, view.ledger.taken])
    picks = labelled[100:]
    return truth[picks].sum(), abs(picks - border).mean()


def test_wrong_labels_lead_galaxy_astray_and_not_direct():
    """One label in ten is wrong."""
    ours = np.array([simulate("direct", seed, flips=0.1) for seed in range(8)])
    galaxys = np.array([simulate("galaxy", seed, flips=0.1) for seed in range(8)])
    # Means of 58 and 31 of 150 picks, and of 150 and 1,415 ranks.
    assert ours[:, 0].mean() > 1.5 * galaxys[:, 0].mean()
    assert (ours[:, 1] < galaxys[:, 1] / 4).all()
    # With right labels galaxy is as near to the border as can be.
    assert simulate("galaxy", 0, flips=0.0)[1] < 60


def test_it_is_in_no_set_that_stands_for_several_families():
    named = {name for by_kind in SETS.values() for names in by_kind.values() for name in names}
    assert "galaxy" in named
    assert "direct" not in named


@pytest.mark.parametrize(
    ("spread", "message"),
    [
        (1.5, r"spread is 1.5: a number in \[0, 1\] is needed"),
        (-0.1, r"spread is -0.1: a number in \[0, 1\] is needed"),
        (float("nan"), "spread is nan"),
        ("much", "spread is 'much'"),
    ],
)
def test_options_out_of_range(spread, message):
    with pytest.raises(InputError, match=message):
        Direct(spread=spread)
