"""bait and lookahead against their definitions, and the search behind them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import cases, many, open_arm, others, walk
from head_oracles import bait_gains, bait_trace, bait_weight, lookahead_gains, with_bias
from hypothesis import given
from hypothesis import strategies as st
from oracles import free_now

import tailor.strategies.information
import tailor.strategies.information_search
from tailor.common.linear_head import LinearHead
from tailor.compute import LocalEngine
from tailor.strategies.bait import Bait
from tailor.strategies.information import Information, apply_changes
from tailor.strategies.lookahead import Lookahead
from tailor.task import MultiClass, MultiLabel
from tailor.testing import check_strategy, make_pool, make_view, take_all
from tailor.testing.engines import check_same_picks

KINDS = [MultiClass, MultiLabel]


def check_largest(view, gains, index):
    """The largest gain, within rounding; of copies the first by ties."""
    largest = max(gains.values())
    assert gains[index] == pytest.approx(largest, rel=1e-7, abs=1e-12)
    p = view.probs.numpy()
    h = view.features.numpy()
    copies = [i for i in gains if (p[i] == p[index]).all() and (h[i] == h[index]).all()]
    assert index == min(copies, key=lambda i: view.ties[i])


RIDGES = st.sampled_from([1.0, 0.1, 30.0])


@many(60)
@given(case=cases(sizes=(1, 24)), share=others, ridge=RIDGES, balance=st.booleans())
def test_bait_is_plain_greedy(case, share, ridge, balance):
    view = case.view()
    cursor = open_arm(Bait(ridge=ridge, balance=balance), view)

    def check(index):
        check_largest(view, bait_gains(view, free_now(view), ridge, balance), index)

    walk(view, cursor, case.seed, share, check)


@many(60)
@given(case=cases(sizes=(1, 24)), share=others, ridge=RIDGES)
def test_lookahead_is_plain_greedy(case, share, ridge):
    view = case.view()
    cursor = open_arm(Lookahead(ridge=ridge), view)

    def check(index):
        check_largest(view, lookahead_gains(view, free_now(view), ridge), index)

    walk(view, cursor, case.seed, share, check)


@pytest.mark.parametrize("with_bias_term", [True, False])
def test_ridge_and_bias_are_those_of_the_head(with_bias_term):
    bias = np.zeros(3) if with_bias_term else None
    head = LinearHead(np.ones((3, 3)), bias, ridge=7.0)
    view = make_view(make_pool(MultiClass(3), 30, seed=2), 2, head=head)
    assert with_bias(view).shape == (30, 4 if with_bias_term else 3)
    cursor = open_arm(Bait(), view)
    for _ in range(10):
        index = cursor.take()
        check_largest(view, bait_gains(view, free_now(view), ridge=7.0), index)
        view.ledger.take(index)


# ------------------------------------------------------------------ rank-one changes


def test_changes_of_rank_one_are_what_a_new_inverse_gives():
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.normal(size=(20, 6)))
    pool = rows.T @ rows
    known = 0.5 * torch.eye(6, dtype=torch.float64)
    information = Information(known, pool)
    leverage, reach = information.measure(rows)
    changes = []
    for number, weight in [(3, 0.2), (7, 1.0), (3, -0.2), (11, 0.7)]:
        changes.append(information.add(rows[number], weight))
        known = known + weight * torch.outer(rows[number], rows[number])
    apply_changes(changes, rows, leverage, reach)
    expected = Information(known, pool)
    torch.testing.assert_close(information.inverse, expected.inverse)
    fresh_leverage, fresh_reach = expected.measure(rows)
    torch.testing.assert_close(leverage, fresh_leverage)
    torch.testing.assert_close(reach, fresh_reach)


@pytest.mark.parametrize("family", [Bait(ridge=0.3), Lookahead(ridge=0.3)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_small_block_that_hears_late_gives_the_same_picks(family, kind, monkeypatch):
    """Most candidates hear of takes some takes later: no gain rises here by enough to matter."""
    pool = make_pool(kind(3), 70, seed=4, copies=0.2)
    picks = []
    for block, unheard in [(2048, 64), (5, 3), (1, 1)]:
        monkeypatch.setattr(tailor.strategies.information_search, "BLOCK", block)
        monkeypatch.setattr(tailor.strategies.information_search, "UNHEARD", unheard)
        view = make_view(pool, 4, labelled=0.1)
        picks.append(take_all(family.arms(view.task)[0], view, others=0.3))
    assert picks[0] == picks[1] == picks[2]


def test_candidates_are_chosen_anew_as_the_batch_grows(monkeypatch):
    """After every take, all candidates are those of largest gain: as if all examples were."""
    monkeypatch.setattr(tailor.strategies.information_search, "RENEWED_SHARE", 0.0)
    pool = make_pool(MultiClass(3), 120, seed=6)
    picks = []
    for candidates in (25, 1000):
        view = make_view(pool, 6, labelled=0.1)
        cursor = open_arm(Bait(candidates=candidates), view, pulls=2)
        for _ in range(60):
            view.ledger.take(cursor.take())
        picks.append(view.ledger.taken.tolist())
    assert picks[0] == picks[1]


def test_picks_come_from_the_candidates_of_largest_gain(monkeypatch):
    monkeypatch.setattr(tailor.strategies.information_search, "RENEWED_SHARE", 10.0)
    view = make_view(make_pool(MultiClass(3), 200, seed=6), 6, labelled=0.1)
    gains = bait_gains(view, view.free_ids.tolist(), ridge=1.0)
    best = sorted(gains, key=gains.get, reverse=True)
    cursor = open_arm(Bait(candidates=40), view, pulls=2)
    for _ in range(40):
        index = cursor.take()
        assert index in best[:40]
        view.ledger.take(index)
    # Used up: others are preselected, by what is known now.
    gains = bait_gains(view, free_now(view), ridge=1.0)
    best = sorted(gains, key=gains.get, reverse=True)
    assert cursor.take() == best[0]


@pytest.mark.parametrize("family", ["bait(candidates=9)", "lookahead(candidates=9)"])
def test_a_preselection_over_shards_is_that_in_memory(family, tmp_path, monkeypatch):
    monkeypatch.setattr(tailor.strategies.information, "SUMMED_ROWS", 4)
    pool = make_pool(MultiClass(3), 60, seed=7)
    check_same_picks(LocalEngine(), pool, [family, "random"], tmp_path, seed=7)


# ------------------------------------------------------------------ prune


@pytest.mark.parametrize("kind", KINDS)
def test_prune_keeps_the_contract(kind):
    check_strategy(Bait(prune=True), kind(3))


def test_prune_plans_twice_as_many_and_removes_what_is_missed_least():
    view = make_view(make_pool(MultiClass(3), 40, seed=8), 8, labelled=0.1)
    forward = []
    for _ in range(10):
        free = [i for i in free_now(view) if i not in forward]
        traces = {i: bait_trace(view, 1.0, [*forward, i]) for i in free}
        forward.append(min(traces, key=traces.get))
    kept = list(forward)
    while len(kept) > 5:
        traces = {i: bait_trace(view, 1.0, [j for j in kept if j != i]) for i in kept}
        kept.remove(min(traces, key=traces.get))
    cursor = open_arm(Bait(ridge=1.0, prune=True), view, pulls=5)
    picks = []
    for _ in range(5):
        picks.append(cursor.take())
        view.ledger.take(picks[-1])
    assert sorted(picks) == sorted(kept)


def test_the_gain_is_what_a_pick_takes_from_the_trace():
    """So bait's formula does make tr(M^-1 F) small."""
    view = make_view(make_pool(MultiClass(3), 25, seed=9), 9)
    gains = bait_gains(view, view.free_ids.tolist(), ridge=1.0)
    before = bait_trace(view, 1.0, [])
    for i, gain in gains.items():
        assert before - bait_trace(view, 1.0, [i]) == pytest.approx(gain)
        assert bait_weight(view, i) <= 0.25
