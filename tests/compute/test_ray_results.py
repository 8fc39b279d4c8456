"""What a cluster's calls gave, put in order. Needs no Ray."""

from __future__ import annotations

import pytest

from tailor.compute.ray_engine import _in_order


def test_results_stand_in_the_order_of_their_calls():
    assert _in_order({2: "c", 0: "a", 1: "b"}, 3) == ["a", "b", "c"]


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_missing_result_is_an_error_and_no_shorter_list(missing):
    results = {number: "result" for number in range(3) if number != missing}
    with pytest.raises(KeyError, match=str(missing)):
        _in_order(results, 3)
