"""Features by their directions."""

from __future__ import annotations

import pytest
import torch

from tailor.common.unit_features import unit_features


def test_what_lies_on_the_centre_is_zero():
    features = torch.tensor([[3.0, 1e6 + 4], [0.0, 1e6]], dtype=torch.float64)
    rows = unit_features(features, torch.tensor([0.0, 1e6], dtype=torch.float64))
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]
