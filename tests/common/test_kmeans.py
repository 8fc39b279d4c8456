"""k-means against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tailor.common.kmeans
from tailor.common.kmeans import assign, kmeans


def slow_kmeans(rows, centres, iterations):
    """Lloyd's iterations from some centres, in double precision."""
    for _ in range(iterations):
        numbers = [np.argmin(((centres - row) ** 2).sum(1)) for row in rows]
        centres = np.stack(
            [
                rows[np.equal(numbers, c)].mean(0) if c in numbers else centres[c]
                for c in range(len(centres))
            ]
        )
    return np.argmin(((rows[:, None] - centres) ** 2).sum(2), 1), centres


@pytest.mark.parametrize("count", [1, 3, 12])
def test_lloyd_is_the_plain_loop(count, monkeypatch):
    monkeypatch.setattr(tailor.common.kmeans, "BLOCK", 7)
    rows = np.random.default_rng(count).normal(size=(60, 4))
    first = kmeans(torch.from_numpy(rows), count, np.random.default_rng(1), iterations=0)
    last = kmeans(torch.from_numpy(rows), count, np.random.default_rng(1), iterations=50)
    numbers, centres = slow_kmeans(rows, first.centres.numpy(), 50)
    assert np.array_equal(last.numbers.numpy(), numbers)
    assert last.centres.numpy() == pytest.approx(centres)
    assert last.squared.numpy() == pytest.approx(((rows - centres[numbers]) ** 2).sum(1))
    assert last.sizes.tolist() == np.bincount(numbers, minlength=count).tolist()


def test_first_centres_are_drawn_by_squared_distance():
    """The second of two centres: rows at distance 1, 2 and 3 in proportion 1 : 4 : 9."""
    rows = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    counts = np.zeros(4)
    for seed in range(1400):
        centres = kmeans(rows, 2, np.random.default_rng(seed), iterations=0).centres
        counts[int(centres[1])] += 1
    assert counts[0] == 0
    assert counts[1:] == pytest.approx([100, 400, 900], abs=60)


def test_copies_make_no_cluster_of_their_own():
    rows = torch.tensor([[0.0, 0.3], [0.7, 0.1], [0.2, 0.9]]).repeat(20, 1)
    clusters = kmeans(rows, 10, np.random.default_rng(0))
    assert len(clusters.centres) == 3
    assert clusters.sizes.tolist() == [20, 20, 20]


def test_a_centre_that_no_row_is_nearest_to_stays():
    rows = torch.tensor([[0.0], [0.2], [1.0]])
    clusters = assign(rows, torch.tensor([[0.0], [0.0], [1.0]]))
    assert clusters.sizes.tolist() == [2, 0, 1]
    means = tailor.common.kmeans._means(rows, clusters)
    assert means[:, 0].tolist() == pytest.approx([0.1, 0.0, 1.0])
