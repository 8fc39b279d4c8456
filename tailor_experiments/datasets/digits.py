"""scikit-learn's digits, read from its file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from tailor.errors import TailorError


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Returns pixels (1797, 64) float64 in 0 .. 16, and the digits (1797,) int64.

    They are those of sklearn.datasets.load_digits. Importing that takes a second in every process
    that runs a trial, reading the file a hundredth of it.

    >>> pixels, digits = load_digits()
    >>> pixels.shape, digits[:3].tolist()
    ((1797, 64), [0, 1, 2])
    """
    # Where the package lies, without importing it.
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise TailorError("the digits are scikit-learn's, which is not installed")
    file = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    table = np.loadtxt(file, delimiter=",")
    # The last column is the digit.
    return table[:, :-1], table[:, -1].astype(np.int64)
