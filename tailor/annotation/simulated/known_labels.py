"""An annotator who looks the answer up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tailor.errors import InputError
from tailor.pools.base import Pool


class Known:
    """Answers from labels that are known already; skips what has none.

    >>> Known({"a.jpg": "cat"}).answer(["a.jpg", "b.jpg"])
    {'a.jpg': 'cat', 'b.jpg': None}
    """

    def __init__(self, labels: Mapping[str, Any]) -> None:
        self._labels = labels

    @classmethod
    def of(cls, pool: Pool) -> Known:
        labels = pool.labels()
        if not labels:
            raise InputError(
                'this pool has no known labels to simulate with: set labels = "folder" or label '
                "= COLUMN in [pool], or "
                "label it yourself with `tailor ask` and `tailor tell`"
            )
        return cls(labels)

    def answer(self, ids: Sequence[str]) -> dict[str, Any]:
        return {one: self._labels.get(one) for one in ids}
