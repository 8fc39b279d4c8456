"""submodular: facility-location mutual information with what is labelled (FLQMI)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Arm, Cursor, Strategy
from tailor.strategies.gradient_embeddings import Parts, parts, rough_parts
from tailor.strategies.lazy_maximum import SLACK, LazyLargest

if TYPE_CHECKING:
    import torch


class Submodular(Strategy):
    """SIMILAR's FLQMI (Kothawade et al. 2021), with up to `queries` labelled examples a class as
    the query set.

    f(A) = sum over q of max over j in A of s_qj + eta * sum over j in A of max over q of s_qj, s
    the cosine of gradient embeddings, and the max over an empty A is 0, so that a negative cosine
    counts as none. A is the batch so far, whichever arm took it. It needs one labelled example of
    any class; without one it is exhausted.
    """

    name = "submodular"
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})

    def __init__(self, *, eta: float = 1.0, queries: int = 5) -> None:
        if not 0 <= eta < np.inf:
            raise InputError(f"eta is {eta}: it must be finite and at least 0")
        if queries < 1:
            raise InputError(
                f"queries is {queries}: at least one labelled example a class is needed"
            )
        self.eta = eta
        self.queries = queries

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        return [SubmodularCursor(view, self.query_set(view, rng), self.eta) for rng in rngs]

    def query_set(self, view: PoolView, rng: np.random.Generator) -> np.ndarray:
        """Positions of up to `queries` random labelled examples of each class, each once."""
        chosen = []
        for k in range(view.task.size):
            members = view.labelled[view.labels[:, k] == 1]
            chosen.append(rng.permutation(members)[: self.queries])
        return np.unique(np.concatenate(chosen))


class SubmodularCursor(Cursor):
    """Gains only fall as the batch grows, so few have to be computed again for each pick."""

    def __init__(self, view: PoolView, queries: np.ndarray, eta: float) -> None:
        super().__init__(view)
        self._gains = Gains(view, queries, eta) if len(queries) else None
        if self._gains is not None:
            self._search = LazyLargest(self._gains.first_bounds(), self._gains, view.ties)

    def take(self) -> int:
        import torch

        if self._gains is None:
            raise Exhausted("no class has a labelled example to be similar to")
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        news = torch.from_numpy(self.unseen().copy()).to(self.view.device)
        if len(news):
            self._gains.cover(news)
            self._search.remove(news)
        return self._search.largest()[0]


class Gains:
    """f(A + j) - f(A), for the batch A so far."""

    def __init__(self, view: PoolView, queries: np.ndarray, eta: float) -> None:
        import torch

        self._view = view
        self._eta = eta
        self._queries = units(parts(view, torch.from_numpy(queries).to(view.device)))
        self._covered = self._queries[0].new_zeros(len(queries))  # (Q,) max over A of s_qj

    def cover(self, positions: torch.Tensor) -> None:
        """These joined A."""
        import torch

        own = similarity(units(parts(self._view, positions)), self._queries)
        self._covered = torch.maximum(self._covered, own.amax(0))

    def first_bounds(self) -> torch.Tensor:
        import torch

        bounds = self._view.per_row(partial(_first_bounds, self._queries, self._covered, self._eta))
        return bounds.masked_fill_(self._view.closed, -torch.inf)

    def load(self, ids: torch.Tensor) -> torch.Tensor:
        self._own = similarity(units(parts(self._view, ids)), self._queries)  # (n, Q)
        self._best = self._eta * self._own.amax(1)
        return self.renew()

    def renew(self) -> torch.Tensor:
        return gains(self._own, self._covered, self._best)


def gains(own: torch.Tensor, covered: torch.Tensor, best: torch.Tensor) -> torch.Tensor:
    """(n,) what each example adds, by its cosines (n, Q) with the queries, how far those (Q,) are
    covered already, and its own eta * largest cosine (n,).
    """
    return (own - covered).clamp_(min=0).sum(1) + best


def similarity(rows: Parts, queries: Parts) -> torch.Tensor:
    """(n, Q) cosines of gradient embeddings, given by their units."""
    return (rows[0] @ queries[0].T).mul_(rows[1] @ queries[1].T)


def _first_bounds(
    queries: Parts, covered: torch.Tensor, eta: float, view: PoolView, part: slice
) -> torch.Tensor:
    """(n,) float64: no gain is larger."""
    rows = units(rough_parts(view, part))
    a, h = (query.to(row.dtype) for query, row in zip(queries, rows))
    own = similarity(rows, (a, h))
    most = len(covered) + eta  # what an example can add
    return gains(own, covered.to(own.dtype), eta * own.amax(1)).double() + SLACK * most


def units(embeddings: Parts) -> Parts:
    """The two parts, each row of length 1, or 0 where it vanishes."""
    import torch

    a, h = embeddings
    return torch.nn.functional.normalize(a, dim=1, eps=1e-30), torch.nn.functional.normalize(
        h, dim=1, eps=1e-30
    )
