"""What a linear head has learned from some examples, and what one more would add.

M = ridge * I + sum of w h h' over the examples that it has, with h their features, a 1 appended
where the head has a bias, and w a weight each. T is the same sum over the pool. Of an example,
leverage is s = h' M^-1 h: how little is known in its direction. Reach is t = h' M^-1 T M^-1 h: how
much the pool lies in directions that it would teach. One more example is a change of rank one, so
that both follow from two inner products.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tailor.selection.pool_view import PoolView, RowFunction

if TYPE_CHECKING:
    import torch

#: the ridge term where neither an option nor the model's head says one
DEFAULT_RIDGE = 1.0
#: rows that are summed up at once, in double precision
SUMMED_ROWS = 8192


def ridge_of(view: PoolView, option: float | None) -> float:
    """The option where it is given, or what the model's head was trained with."""
    if option is not None:
        return option
    if view.head is None or view.head.ridge is None:
        return DEFAULT_RIDGE
    return view.head.ridge


def head_rows(view: PoolView, which: slice | torch.Tensor) -> torch.Tensor:
    """(n, e) features as the view has them, and a 1 for the bias unless the head has none."""
    import torch

    rows = view.feature_rows(which)
    if view.head is not None and view.head.bias is None:
        return rows
    ones = rows.new_ones(len(rows), 1)
    return torch.cat([rows, ones], 1)


class SecondMoments:
    """A job for the shards: the sum of weight * h h' over all rows, (e, e) float64.

    weigh  (view, part) -> (n,) the weight of each row of a part
    """

    def __init__(self, weigh: RowFunction) -> None:
        self._weigh = weigh

    def __call__(self, part: PoolView) -> np.ndarray:
        sums = []
        for start in range(0, part.size, SUMMED_ROWS):
            stop = min(start + SUMMED_ROWS, part.size)
            rows = slice(start, stop)
            features = head_rows(part, rows).double()
            weights = self._weigh(part, rows)
            moment = _moment(features, weights)
            sums.append(moment)
            # Two at a time: a large pool has hundreds.
            if len(sums) == 2:
                sums = [sums[0] + sums[1]]
        on_host: np.ndarray = sums[0].cpu().numpy()
        return on_host

    def join(self, answers: list[np.ndarray]) -> np.ndarray:
        return np.sum(answers, axis=0)


def pool_moments(view: PoolView, weigh: RowFunction) -> torch.Tensor:
    """(e, e) float64: the sum of weight * h h' over the whole pool, in memory or over shards."""
    job = SecondMoments(weigh)
    if view.shards is None:
        moments = job(view)
    else:
        moments = view.shards.visit(job)
    return view.to_device(moments)


def known_moments(
    view: PoolView,
    positions: np.ndarray,
    weigh: RowFunction,
    ridge: float,
) -> torch.Tensor:
    """(e, e) float64: ridge * I + the sum of weight * h h' over the examples at positions (n,)."""
    import torch

    # In the order of positions, so that it does not matter in which the labels came.
    ordered = view.to_device(np.sort(positions))
    no_rows = head_rows(view, ordered[:0])
    width = no_rows.shape[1]
    identity = torch.eye(width, dtype=torch.float64, device=view.device)
    total = ridge * identity
    for indices in ordered.split(SUMMED_ROWS):
        features = head_rows(view, indices).double()
        weights = weigh(view, indices)
        total += _moment(features, weights)
    return total


def _moment(features: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The sum of weight * h h' over features (n, e) float64 with weights (n,)."""
    column = weights.double()[:, None]
    weighted = features * column
    return weighted.T @ features


class Change(NamedTuple):
    """What one more example does to the inverse of M: it becomes M^-1 - scale * u u'."""

    scale: torch.Tensor  # ()
    direction: torch.Tensor  # (e,) u = M^-1 h
    reach: torch.Tensor  # (e,) M^-1 T u
    spread: torch.Tensor  # () u' T u


class Information:
    """The inverse of M and the sum T, (e, e) float64 both.

    >>> import torch
    >>> identity = torch.eye(2, dtype=torch.float64)
    >>> information = Information(identity, identity)
    >>> rows = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    >>> leverage, reach = information.measure(rows)
    >>> leverage.tolist(), reach.tolist()
    ([1.0, 4.0], [1.0, 4.0])
    >>> change = information.add(rows[0], 1.0)
    >>> apply_changes([change], rows, leverage, reach)
    >>> leverage.tolist(), reach.tolist()
    ([0.5, 4.0], [0.25, 4.0])
    """

    def __init__(self, known: torch.Tensor, pool: torch.Tensor) -> None:
        import torch

        self.inverse = torch.linalg.inv(known)
        self.pool = pool

    def copy(self) -> Information:
        """Changes of one do not reach the other."""
        return copy(self)

    def reach_form(self) -> torch.Tensor:
        """(e, e): M^-1 T M^-1."""
        return self.inverse @ self.pool @ self.inverse

    def measure(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Leverage and reach (n,) of rows (n, e) float64."""
        leverage = quadratic_form(rows, self.inverse)
        reach = quadratic_form(rows, self.reach_form())
        return leverage, reach

    def add(self, row: torch.Tensor, weight: float | torch.Tensor) -> Change:
        """An example (e,) joins those that are known; with a negative weight, it leaves them."""
        direction = self.inverse @ row
        toward_pool = self.pool @ direction
        leverage = row @ direction
        growth = 1 + weight * leverage
        change = Change(
            scale=weight / growth,
            direction=direction,
            reach=self.inverse @ toward_pool,
            spread=direction @ toward_pool,
        )
        # Not in place: a copy may share the matrix.
        outer = direction[:, None] * direction
        self.inverse = self.inverse - change.scale * outer
        return change


def quadratic_form(rows: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """(n,) h' A h of rows (n, e)."""
    products = rows @ matrix
    return products.mul_(rows).sum(1)


def apply_changes(
    changes: Sequence[Change],
    rows: torch.Tensor,
    leverage: torch.Tensor,
    reach: torch.Tensor,
) -> None:
    """Bring leverage and reach (n,) of rows (n, e) up to date, in place."""
    import torch

    scales = torch.stack([change.scale for change in changes])
    spreads = torch.stack([change.spread for change in changes])
    directions = torch.stack([change.direction for change in changes])
    reaches = torch.stack([change.reach for change in changes])
    along = rows @ directions.T  # (n, changes)
    toward = rows @ reaches.T
    scaled = scales * along
    known_since = scaled * along
    leverage -= known_since.sum(1)
    gained = scaled.square() * spreads
    lost = 2 * scaled * toward
    difference = gained - lost
    reach += difference.sum(1)
