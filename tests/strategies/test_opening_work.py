"""What families say that opening them costs."""

from __future__ import annotations

import pytest

from tailor.strategies import make_strategy
from tailor.strategies.costs import PoolShape

FAMILIES = ["discriminator", "ally", "similar", "ens", "dual", "farthest"]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_work_grows_with_the_pool_and_no_faster(family):
    strategy = make_strategy(family)
    works = []
    for examples in (100_000, 200_000, 400_000):
        shape = PoolShape(examples=examples, classes=100, features=64, labelled=5000)
        works.append(strategy.opening_work(shape))
    reads = [work.bytes_read for work in works]
    flops = [work.flops for work in works]
    assert reads[0] > 0
    assert reads[2] - reads[1] == 2 * (reads[1] - reads[0]) > 0
    assert flops[2] - flops[1] == 2 * (flops[1] - flops[0])


def test_staying_away_from_examples_costs_as_much_again():
    shape = PoolShape(examples=10**6, classes=1000, features=512, labelled=20_000)
    plain = make_strategy("similar").opening_work(shape)
    away = make_strategy("similar(hold_out=skipped)").opening_work(shape)
    assert away.flops == 2 * plain.flops
    assert away.bytes_read == plain.bytes_read


def test_the_neighbours_of_ens_are_no_more_than_its_candidates_have():
    strategy = make_strategy("ens")
    small = PoolShape(examples=10**5, classes=1000, features=512, labelled=20_000)
    large = PoolShape(examples=10**7, classes=1000, features=512, labelled=20_000)
    assert strategy.held_in_memory(small) == strategy.held_in_memory(large)
