"""The digits that demo and experiments read."""

from __future__ import annotations

import numpy as np
from sklearn import datasets

from tailor_experiments.datasets.digits import load_digits


def test_they_are_scikit_learns():
    expected_pixels, expected_digits = datasets.load_digits(return_X_y=True)
    pixels, digits = load_digits()
    assert np.array_equal(pixels, expected_pixels)
    assert np.array_equal(digits, expected_digits)
    assert (pixels.dtype, digits.dtype) == (expected_pixels.dtype, expected_digits.dtype)
