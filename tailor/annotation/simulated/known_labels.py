"""An annotator who looks the answer up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tailor.errors import InputError
from tailor.pools.base import Pool


class SimulatedAnnotator(Protocol):
    """Whoever answers for a list of ids."""

    def answer(self, ids: Sequence[str]) -> dict[str, Any]:
        """Answers by id, as Session.tell takes them; None for what is skipped."""
        ...


class KnownLabels:
    """Answers from labels that are known already; skips what has none.

    >>> KnownLabels({"a.jpg": "cat"}).answer(["a.jpg", "b.jpg"])
    {'a.jpg': 'cat', 'b.jpg': None}
    """

    def __init__(self, labels: Mapping[str, Any]) -> None:
        self._labels = labels

    @classmethod
    def of(cls, pool: Pool) -> KnownLabels:
        """The labels that a pool knows; InputError where it knows none."""
        labels = pool.labels()
        if not labels:
            raise InputError(
                'this pool has no known labels to simulate with: set labels = "folder" or label '
                "= COLUMN in [pool], or label it yourself with `tailor ask` and `tailor tell`"
            )
        return cls(labels)

    def answer(self, ids: Sequence[str]) -> dict[str, Any]:
        return {id: self._labels.get(id) for id in ids}
