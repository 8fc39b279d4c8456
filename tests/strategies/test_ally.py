"""ally against the plain definition, given the clusters that k-means found."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from batch_oracles import (
    ally_best,
    ally_predictions,
    ally_variables,
    features_of,
    standard_rows,
)
from cases import cases, many, open_arm, others, walk
from cover_oracles import unit_rows
from hypothesis import given
from hypothesis import strategies as st

from tailor.errors import InputError
from tailor.selection.array_view import ArrayView
from tailor.strategies.ally import Ally
from tailor.strategies.dual_variables import dual_variables
from tailor.strategies.standard_features import UNITS
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view

KINDS = [MultiClass, MultiLabel]


def penalties(width):
    return torch.tensor([width - 1.0] * (width - 1) + [0.0], dtype=torch.float64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_variables_are_those_of_the_definition(kind, seed):
    view = make_view(make_pool(kind(3), 40, seed=seed), seed, labelled=0.4)
    rows = standard_rows(view, np.arange(40))
    expected = ally_variables(
        rows[view.labelled],
        view.labels.astype(float),
        kind is MultiClass,
        eps=0.1,
        eta=0.3,
        steps=12,
    )
    variables = dual_variables(
        torch.from_numpy(rows[view.labelled]),
        torch.from_numpy(view.labels.astype(float)),
        penalties(rows.shape[1]),
        multi_class=kind is MultiClass,
        eps=0.1,
        eta=0.3,
        steps=12,
    )
    assert variables.numpy() == pytest.approx(expected, abs=1e-9)
    assert variables.max() > 0


def test_what_can_be_fitted_presses_less_than_what_cannot():
    """One label of 41 contradicts its neighbours; none presses where the limit is high."""
    rng = np.random.default_rng(0)
    side = np.repeat([0, 1], 20)
    x = np.concatenate([(2.0 * side - 1) + 0.2 * rng.normal(size=40), [1.0]])
    rows = torch.from_numpy(np.stack([x, np.ones(41)], 1))
    labels = torch.from_numpy(np.eye(2)[[*side, 0]])
    fit = {"multi_class": True, "eta": 0.1, "steps": 50}
    variables = dual_variables(rows, labels, penalties(2), eps=0.2, **fit)
    assert variables.argmax() == 40
    assert variables[40] > 3 * variables[:40].max()
    assert dual_variables(rows, labels, penalties(2), eps=100.0, **fit).max() == 0


@many(40)
@given(case=cases(sizes=(1, 24)), share=others, pulls=st.sampled_from([1, 4, 30]))
def test_it_goes_round_the_clusters_and_takes_the_largest_variable(case, share, pulls):
    view = case.view()
    strategy = Ally(steps=6)
    cursor = open_arm(strategy, view, pulls=pulls)
    if len(view.labelled):
        sample = [*view.free_ids, *view.labelled, *view.pending]
        rows = standard_rows(view, sample)
        u = ally_variables(
            rows[view.labelled],
            view.labels.astype(float),
            isinstance(view.task, MultiClass),
            strategy.eps,
            strategy.eta,
            strategy.steps,
        )
        units = unit_rows(features_of(view), sample)
        predicted = ally_predictions(units, view.labelled.tolist(), u)
    else:
        predicted = np.zeros(view.size)
    clusters = cursor.clusters.tolist()
    assert max(clusters) < max(1, pulls)

    def check(index):
        assert cursor.variables[index] / UNITS == pytest.approx(predicted[index], abs=1e-6)
        least, takes, largest = ally_best(view, clusters, view.ledger.taken, predicted)
        assert takes[clusters[index]] == least
        assert predicted[index] >= largest - 1e-6

    walk(view, cursor, case.seed, share, check)


def test_every_heap_gives_one_before_one_gives_two():
    rng = np.random.default_rng(1)
    heaps = np.repeat(np.arange(4), 15)
    features = np.eye(4)[heaps] + 0.02 * rng.normal(size=(60, 4))
    view = ArrayView(
        MultiClass(2),
        np.full((60, 2), 0.5),
        features,
        labelled=[0, 15, 30, 45],
        labels=np.eye(2)[[0, 1, 0, 1]],
    )
    cursor = open_arm(Ally(), view, pulls=4)
    view.ledger.take(5)  # another arm was in the first heap already
    picks = []
    for _ in range(7):
        picks.append(cursor.take())
        view.ledger.take(picks[-1])
    assert sorted(heaps[picks[:3]]) == [1, 2, 3]
    assert sorted(heaps[picks[3:]]) == [0, 1, 2, 3]


def test_a_batch_beyond_the_clusters_goes_round_them():
    view = make_view(make_pool(MultiClass(3), 200, seed=1), 1, labelled=0.1)
    cursor = open_arm(Ally(clusters=5), view, pulls=50)
    for _ in range(50):
        view.ledger.take(cursor.take())
    takes = np.bincount(cursor.clusters[view.ledger.taken], minlength=5)
    sizes = np.bincount(cursor.clusters[view.free_ids], minlength=5)
    full = takes == sizes
    assert takes[~full].max() - takes[~full].min() <= 1


def test_samples_of_labels_and_pool_stand_for_all():
    """Labels are wrong more often on one side: there u is larger, by the samples too."""
    rng = np.random.default_rng(4)
    features = rng.normal(size=(1500, 3))
    is_wrong = rng.random(1500) < np.where(features[:, 1] > 0, 0.4, 0.05)
    classes = ((features[:, 0] > 0) ^ is_wrong).astype(int)
    predicted = []
    for options in ({}, {"sample": 300, "rows": 300, "references": 50}):
        view = ArrayView(
            MultiClass(2),
            np.full((1500, 2), 0.5),
            features,
            labelled=np.arange(500),
            labels=np.eye(2)[classes[:500]],
        )
        cursor = open_arm(Ally(**options), view, pulls=20)
        predicted.append(cursor.variables[500:])
        is_noisy = features[500:, 1] > 0
        assert predicted[-1][is_noisy].mean() > 1.1 * predicted[-1][~is_noisy].mean()
    assert np.corrcoef(predicted)[0, 1] > 0.8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eps": -0.1}, "eps is -0.1: a number of at least 0"),
        ({"eta": "big"}, "eta is 'big'"),
        ({"steps": 0}, "steps is 0: at least 1"),
        ({"clusters": 0}, "clusters is 0: at least 1"),
        ({"sample": 0}, "sample is 0: at least 1"),
        ({"rows": 0}, "rows is 0: at least 1"),
        ({"references": 0}, "references is 0: at least 1"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(InputError, match=message):
        Ally(**options)
