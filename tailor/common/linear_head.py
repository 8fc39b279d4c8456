"""The last layer of a classifier: one row of weights a class, on the features that arms see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tailor.common.checks import check_array, check_number
from tailor.errors import InputError


@dataclass(frozen=True)
class LinearHead:
    """Logits are weights @ h + bias, with h an example's features; probabilities are their softmax,
    in a multi-label task the sigmoid of each.

    weights  (K, d) float64
    bias     (K,) float64; None where the head has none
    ridge    what half the sum of squared weights counts beside the loss summed over labelled
             examples; None where nobody knows

    >>> head = LinearHead.checked(([[3.0, 0.0], [0.0, 4.0]], None), classes=2, features=2)
    >>> head.row_distances
    array([[0., 5.],
           [5., 0.]])
    """

    weights: np.ndarray
    bias: np.ndarray | None
    ridge: float | None = None

    @classmethod
    def checked(
        cls,
        head: Any,
        classes: int,
        features: int | None,
    ) -> LinearHead:
        """From a LinearHead, or a pair (weights, bias) of arrays or tensors, bias None for none.

        features  d, where it is known

        Raises InputError where shapes do not fit or a number is not finite.
        """
        ridge = None
        if isinstance(head, LinearHead):
            ridge = head.ridge
            pair: Any = (head.weights, head.bias)
        else:
            pair = head
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError("head must be a pair (weights, bias): arrays (K, d) and (K,)")
        weights = _finite(pair[0], "the head's weights")
        width = features
        # Any width will do where no features say which.
        if width is None and weights.ndim == 2:
            width = weights.shape[1]
        if weights.shape != (classes, width):
            raise InputError(
                f"the head's weights have shape {weights.shape}: ({classes}, {width}) is needed, "
                "a row a class and a column a feature"
            )
        bias = None
        if pair[1] is not None:
            bias = _finite(pair[1], "the head's bias")
            if bias.shape != (classes,):
                raise InputError(
                    f"the head's bias has shape {bias.shape}: ({classes},) is needed, one a class"
                )
        return cls(weights, bias, ridge)

    @cached_property
    def row_distances(self) -> np.ndarray:
        """(K, K) float64: the length of the difference of every two rows of the weights."""
        # |a - b|^2 as |a|^2 + |b|^2 - 2 a.b: a matrix product, and no (K, K, d) differences.
        products = self.weights @ self.weights.T
        squares = np.diag(products)
        sums = squares[:, None] + squares
        differences = sums - 2 * products
        np.fill_diagonal(differences, 0)
        return np.sqrt(np.maximum(differences, 0))


def check_ridge(value: Any) -> float | None:
    """The option `ridge` of a family: a number above 0, or None. Raises InputError."""
    if value is None:
        return None
    ridge = check_number(value, "ridge", "a number above 0 is needed")
    if not ridge > 0:
        raise InputError(f"ridge is {ridge}: a number above 0 is needed")
    return ridge


def _finite(values: Any, name: str) -> np.ndarray:
    """As float64. Raises InputError where one is not a finite number."""
    array = check_array(values, name)
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} must be numbers, got dtype {array.dtype}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} hold a number that is not finite")
    return array.astype(np.float64)
