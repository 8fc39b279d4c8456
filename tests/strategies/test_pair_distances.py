"""Distances of some pairs of rows: in a compiled loop, by fetching rows, by a product of all."""

import numpy as np
import pytest
import torch

from tailor.strategies import feature_kernel
from tailor.strategies.feature_kernel import pair_distances


def some_pairs(share, width=37):
    rng = np.random.default_rng(3)
    points = rng.standard_normal((50, width))
    centres = rng.standard_normal((70, width))
    rows, columns = np.nonzero(rng.random((50, 70)) < share)
    return points, centres, rows, columns


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9])
def test_every_pair_has_its_own_distance(share):
    points, centres, rows, columns = some_pairs(share)
    expected = ((points[rows] - centres[columns]) ** 2).sum(1)
    squared = pair_distances(*map(torch.from_numpy, (points, centres, rows, columns)))
    assert squared.dtype == torch.float64
    np.testing.assert_allclose(squared.numpy(), expected, rtol=1e-12)


def test_rows_that_are_fetched_give_the_same_as_the_loop():
    arguments = [torch.from_numpy(part) for part in some_pairs(0.2)]
    in_loop = feature_kernel._pairs_on_host(*arguments)
    fetched = feature_kernel._pairs_on_device(*arguments)
    np.testing.assert_allclose(in_loop.numpy(), fetched.numpy(), rtol=1e-13)


def test_rows_that_lie_apart_in_memory_are_read_right():
    points, centres, rows, columns = some_pairs(0.1)
    expected = ((points[rows] - centres[columns]) ** 2).sum(1)
    spread = torch.from_numpy(np.asfortranarray(points))
    squared = pair_distances(spread, *map(torch.from_numpy, (centres, rows, columns)))
    np.testing.assert_allclose(squared.numpy(), expected, rtol=1e-12)
