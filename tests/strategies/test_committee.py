"""committee against its definition, its heads against their loss, and beside scikit-activeml."""

from __future__ import annotations

import numpy as np
import parts
import pytest
import torch
from cases import cases, many, open_arm, others, walk
from head_oracles import (
    bait_weight,
    disagreement,
    features,
    head_loss,
    member_probabilities,
    with_bias,
)
from hypothesis import given
from hypothesis import strategies as st
from oracles import free_now, probabilities

from tailor import InputError
from tailor.compute import LocalEngine
from tailor.errors import UnknownName
from tailor.selection.array_view import ArrayView
from tailor.strategies.committee import Committee, LaplaceSamples, RefittedHeads
from tailor.strategies.disagreement import MEASURES
from tailor.strategies.head_refits import draw_sample, refit_head
from tailor.task import MultiClass, MultiLabel
from tailor.testing import check_strategy, make_pool, make_view
from tailor.testing.engines import check_same_picks

KINDS = [MultiClass, MultiLabel]


def member_logits(view, seed, members=3, labels=4096, ridge=1.0):
    """(members, N, K) as the family's own heads give them, one example at a time."""
    heads = RefittedHeads(view, members, labels, ridge, np.random.default_rng(seed))
    rows = features(view)
    return np.array(
        [
            [row @ weights[:-1].double().numpy() + weights[-1].double().numpy() for row in rows]
            for weights in heads.weights
        ]
    )


@many(12)
@given(case=cases(sizes=(1, 20)), share=others, measure=st.sampled_from(list(MEASURES)))
def test_the_heads_disagree_most_about_a_pick(case, share, measure):
    view = case.view()
    logits = member_logits(view, seed=5)
    scores = [disagreement(logits[:, i], view.task, measure) for i in range(view.size)]
    cursor = open_arm(Committee(members=3, measure=measure), view, seed=5)

    def check(index):
        free = free_now(view)
        largest = max(scores[i] for i in free)
        assert scores[index] == pytest.approx(largest, abs=1e-9)

    walk(view, cursor, case.seed, share, check)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ridge", [0.5, 5.0])
def test_a_head_is_the_best_for_its_sample(kind, ridge):
    view = make_view(make_pool(kind(3), 60, seed=1), 1, labelled=0.4)
    sample = draw_sample(len(view.labelled), 4096, np.random.default_rng(0))
    assert len(sample) == len(view.labelled)
    assert len(np.unique(sample)) < len(sample)
    weights = refit_head(view, sample, ridge).numpy()
    rows = features(view)[view.labelled[sample]]
    labels = view.labels[sample]
    least = head_loss(weights, rows, labels, view.task, ridge)
    rng = np.random.default_rng(2)
    for size in (0.3, 0.03, 0.003):
        for _ in range(20):
            other = weights + size * rng.normal(size=weights.shape)
            assert head_loss(other, rows, labels, view.task, ridge) > least - 1e-6


def test_an_offset_of_the_features_changes_no_head():
    pool = make_pool(MultiClass(3), 60, seed=1)
    shifted = pool.features + 1000
    near = make_view(pool, 1, labelled=0.4)
    far = ArrayView(
        pool.task, pool.probs, shifted, labelled=near.labelled, labels=near.labels, free=near.free
    )
    sample = np.arange(len(near.labelled))
    at_origin = refit_head(near, sample, 1.0)
    far_off = refit_head(far, sample, 1.0)
    torch.testing.assert_close(far_off[:-1], at_origin[:-1], rtol=0, atol=1e-4)


def test_a_sample_is_no_larger_than_wanted_and_empty_without_labels():
    rng = np.random.default_rng(0)
    assert len(draw_sample(100, 30, rng)) == 30
    assert len(draw_sample(0, 30, rng)) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_laplace_samples_spread_as_the_head_is_unsure(kind):
    """Mean and deviation of many samples: the model's logits, and the root of h'M^-1 h."""
    view = make_view(make_pool(kind(3), 12, seed=3), 3, pending=0.1)
    samples = LaplaceSamples(view, 4000, 2.0, np.random.default_rng(0))
    drawn = torch.stack(list(samples.logits(view, torch.arange(12)))).numpy()
    h = with_bias(view)
    known = 2.0 * np.eye(h.shape[1])
    for i in [*view.labelled, *view.pending]:
        known += bait_weight(view, i) * np.outer(h[i], h[i])
    p = probabilities(view)
    z = np.log(p) if kind is MultiClass else np.log(p) - np.log(1 - p)
    spread = np.sqrt([row @ np.linalg.inv(known) @ row for row in h])
    # Six standard errors of 4,000 samples.
    bound = 6 / np.sqrt(4000)
    assert np.abs(drawn.mean(0) - z).max() < bound * spread.max()
    ratios = drawn.std(0) / spread[:, None]
    assert np.abs(ratios - 1).max() < bound


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{"heads": "laplace"}, {"candidates": 3, "labels": 5}])
def test_the_contract_is_kept_with_options(kind, options):
    check_strategy(Committee(members=2, **options), kind(3))


@pytest.mark.parametrize("kind", KINDS)
def test_candidates_are_those_of_the_largest_guess_and_the_rest_follows(kind):
    """The mean head's doubt, times how far the members' logits spread around their mean."""
    view = make_view(make_pool(kind(3), 80, seed=2), 2, labelled=0.2)
    logits = member_logits(view, seed=0)
    mean = logits.mean(0)
    guesses = {}
    for i in view.free_ids.tolist():
        p = member_probabilities(mean[i], view.task)
        spread = np.sum((logits[:, i] - mean[i]) ** 2)
        guesses[i] = np.sum(p * (1 - p)) * spread
    by_guess = sorted(guesses, key=guesses.get, reverse=True)
    cursor = open_arm(Committee(candidates=20, members=3), view, pulls=2)
    picks = []
    for _ in range(len(by_guess)):
        picks.append(cursor.take())
        view.ledger.take(picks[-1])
    assert sorted(picks[:20]) == sorted(by_guess[:20])
    assert picks[20:] == by_guess[20:]


@pytest.mark.parametrize(
    "family",
    ["committee(heads=laplace,candidates=20)", "committee(candidates=20,members=2)"],
)
def test_over_shards_the_committee_is_that_in_memory(family, tmp_path):
    pool = make_pool(MultiClass(3), 60, seed=7)
    check_same_picks(LocalEngine(), pool, [family, "random"], tmp_path, seed=7)


def test_options_that_are_none_are_refused():
    with pytest.raises(UnknownName, match="laplace"):
        Committee(heads="laplas")
    with pytest.raises(UnknownName, match="vote-entropy"):
        Committee(measure="votes")
    with pytest.raises(InputError, match="at least 2"):
        Committee(members=1)
    with pytest.raises(InputError, match="above 0"):
        Committee(ridge=0)


def test_scikit_activeml_computes_the_same_numbers():
    parts.need("scikit-activeml")
    from skactiveml.pool import average_kl_divergence, variation_ratios, vote_entropy

    task = MultiClass(4)
    rng = np.random.default_rng(0)
    logits = [torch.from_numpy(rng.normal(size=(50, 4), scale=2)) for _ in range(5)]
    probs = np.stack([member.softmax(1).numpy() for member in logits])
    votes = probs.argmax(2).T  # (n, members)
    ours = {name: measure(logits, task).numpy() for name, measure in MEASURES.items()}
    assert ours["information"] == pytest.approx(average_kl_divergence(probs))
    assert ours["variation-ratio"] == pytest.approx(variation_ratios(votes))
    assert ours["vote-entropy"] == pytest.approx(vote_entropy(votes, np.arange(4)))
