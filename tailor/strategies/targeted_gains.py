"""What an example adds to a batch that shall be like some examples and unlike others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tailor.selection.pool_view import PoolView
from tailor.strategies.gradient_embeddings import Parts, cosines, parts, rough_parts, unit_parts
from tailor.strategies.lazy_maximum import SLACK

if TYPE_CHECKING:
    import torch


class TargetedGains:
    """f(A + j) - f(A), for the batch A so far (FLQMI, less what lies near what is held out):

    f(A) = sum over queries q of max(0, max over j in A of s_qj - strength * max_p s_qp)
         + eta * sum over j in A of max(0, max_q s_qj - strength * max_p s_pj)

    queries   gradient embeddings of examples to be like, one at least
    held_out  those of examples p to be unlike; None: there are none
    """

    def __init__(
        self,
        view: PoolView,
        *,
        queries: Parts,
        held_out: Parts | None,
        eta: float,
        strength: float,
    ) -> None:
        self._view = view
        unit_queries = unit_parts(queries)
        unit_held_out = None
        if held_out is not None:
            unit_held_out = unit_parts(held_out)
        self._targets = TargetSet(
            unit_queries,
            unit_held_out,
            eta,
            strength,
        )
        #: how many gains were computed one by one
        self.loaded = 0
        # (Q,) how far each query is covered: at first by what is held out.
        self._covered = self._targets.covered_at_first()

    def cover(self, positions: torch.Tensor) -> None:
        """These joined A."""
        import torch

        similarities, _ = self._measure(positions)
        newly_covered = similarities.amax(0)
        self._covered = torch.maximum(self._covered, newly_covered)

    def first_bounds(self) -> torch.Tensor:
        """(N,) float64: no gain is larger."""
        import torch

        view = self._view
        bounds_of = partial(_first_bounds, self._targets, self._covered)
        bounds = view.per_row(bounds_of)
        bounds.masked_fill_(view.closed, -torch.inf)
        taken = view.ledger.taken.copy()
        bounds[view.to_device(taken)] = -torch.inf
        return bounds

    def load(self, ids: torch.Tensor) -> torch.Tensor:
        self.loaded += len(ids)
        self._similarities, self._worth = self._measure(ids)
        return self.renew()

    def renew(self) -> torch.Tensor:
        return gains(self._similarities, self._covered, self._worth)

    def _measure(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, Q) similarities with the queries, and (n,) the second sum's terms."""
        embeddings = parts(self._view, positions)
        return self._targets.measure(unit_parts(embeddings))


class TargetSet:
    """The examples to be like and unlike, as a shard needs them; embeddings by unit_parts()."""

    def __init__(
        self,
        queries: Parts,
        held_out: Parts | None,
        eta: float,
        strength: float,
    ) -> None:
        self.queries = queries
        self.held_out = held_out
        self.eta = eta
        self.strength = strength

    def covered_at_first(self) -> torch.Tensor:
        """(Q,) float64"""
        residuals, _ = self.queries
        if self.held_out is None:
            return residuals.new_zeros(len(residuals))
        nearest = similarity(self.queries, self.held_out).amax(1)
        return self.strength * nearest

    def measure(self, rows: Parts) -> tuple[torch.Tensor, torch.Tensor]:
        """Of rows (n, ...): (n, Q) similarities with the queries, and (n,) eta times what each is
        worth by itself, in the precision of the rows.
        """
        similarities = similarity(rows, _as_precise(self.queries, rows))
        worth = similarities.amax(1)
        if self.held_out is not None:
            nearest = similarity(rows, _as_precise(self.held_out, rows)).amax(1)
            worth = worth - self.strength * nearest
        return similarities, self.eta * worth.clamp(min=0)


def similarity(rows: Parts, others: Parts) -> torch.Tensor:
    """(n, m): cosines moved to [0, 1]; both given by unit_parts()."""
    return cosines(rows, others).add_(1).div_(2)


def gains(similarities: torch.Tensor, covered: torch.Tensor, worth: torch.Tensor) -> torch.Tensor:
    """(n,) what each example adds: similarities (n, Q), covered (Q,), worth (n,)."""
    improvements = similarities - covered
    return improvements.clamp_(min=0).sum(1) + worth


def _as_precise(embeddings: Parts, rows: Parts) -> Parts:
    """Embeddings in the precision of rows."""
    a, h = embeddings
    row_a, row_h = rows
    return a.to(row_a.dtype), h.to(row_h.dtype)


def _first_bounds(
    targets: TargetSet,
    covered: torch.Tensor,
    view: PoolView,
    part: slice,
) -> torch.Tensor:
    """(n,) float64: no gain is larger."""
    embeddings = rough_parts(view, part)
    similarities, worth = targets.measure(unit_parts(embeddings))
    improvements = similarities.sub_(covered.to(similarities.dtype))
    # A similarity is at most 1 and off by less than SLACK: where it stays below what is covered by
    # more than that, nothing can be added.
    may_add = improvements > -SLACK
    terms = may_add.sum(1) + targets.eta * (1 + targets.strength)
    rough_gains = improvements.clamp_(min=0).sum(1) + worth
    return rough_gains.double() + SLACK * terms
