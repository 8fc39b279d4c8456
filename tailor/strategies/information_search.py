"""Greedy choice by what an example adds to the information of a linear head."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from tailor.common.checks import check_whole
from tailor.common.linear_head import check_ridge
from tailor.errors import Exhausted
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Cursor, SeparateArms
from tailor.strategies.costs import OpeningWork, PoolShape
from tailor.strategies.information import (
    Change,
    Information,
    apply_changes,
    head_rows,
    known_moments,
    pool_moments,
    quadratic_form,
    ridge_of,
)
from tailor.strategies.ranking import ClassScores, first_depth, rank_pool

if TYPE_CHECKING:
    import torch

#: candidates of highest gain that hear of every take; the others hear of them together
BLOCK = 2048
#: takes that the others may not have heard of
UNHEARD = 64
#: takes, as a share of the candidates, after which others are preselected by what is known then
RENEWED_SHARE = 1 / 16
#: Gains that differ by a smaller share are equal, and ties decide: sums over a pool come out a
#: little different when they are added up in another order, as over shards.
SAME_GAIN = 1e-9


class InformationStrategy(SeparateArms):
    """A family that takes the largest gain, computed from an example's leverage and reach
    (tailor.strategies.information).
    """

    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})
    bytes_per_example = 24

    def __init__(self, candidates: int, ridge: float | None) -> None:
        self.candidates = check_whole(candidates, "candidates")
        self.ridge = check_ridge(ridge)

    @abstractmethod
    def weigh(self, view: PoolView, which: slice | torch.Tensor) -> torch.Tensor:
        """(n,) the weight of examples among those that are known."""

    def pool_information(self, view: PoolView) -> torch.Tensor:
        """(e, e) float64: T, the sum over the pool."""
        return pool_moments(view, self.weigh)

    @abstractmethod
    def factor(self, view: PoolView, which: slice | torch.Tensor) -> torch.Tensor:
        """(n,) what the gain of examples depends on besides leverage and reach."""

    @abstractmethod
    def gain(
        self,
        leverage: torch.Tensor,
        reach: torch.Tensor,
        factor: torch.Tensor,
        ridge: float,
    ) -> torch.Tensor:
        """(n,) what each example adds; the largest is taken."""

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        return InformationCursor(view, self, pulls)

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        squared_width = (shape.features + 1) ** 2
        # The sum over the pool, leverage and reach: a product with a square matrix each.
        return OpeningWork(
            bytes_read=shape.feature_bytes + 4 * shape.examples,
            flops=2.0 * (3 * shape.examples + shape.labelled) * squared_width,
        )


class PoolGains:
    """Scores a whole pool by its gains, in the precision that the view has: for a preselection."""

    def __init__(
        self,
        strategy: InformationStrategy,
        information: Information,
        ridge: float,
    ) -> None:
        self._strategy = strategy
        self._ridge = ridge
        # Arrays, which go to the workers of any engine.
        self._inverse: np.ndarray = information.inverse.cpu().numpy()
        self._reach_form: np.ndarray = information.reach_form().cpu().numpy()

    def scores(self, view: PoolView, classes: list[int | None]) -> Iterable[ClassScores]:
        yield None, view.per_row(self._minus_gains)

    def _minus_gains(self, view: PoolView, part: slice) -> torch.Tensor:
        rows = head_rows(view, part)
        inverse = view.to_device(self._inverse).to(rows.dtype)
        reach_form = view.to_device(self._reach_form).to(rows.dtype)
        gains = self._strategy.gain(
            quadratic_form(rows, inverse),
            quadratic_form(rows, reach_form),
            self._strategy.factor(view, part),
            self._ridge,
        )
        # The smallest score comes first.
        return -gains


class InformationSearch:
    """The candidate of largest gain, again and again.

    The BLOCK candidates of largest gain hear of every change. The others hear of them together:
    when UNHEARD have come, or when the best of the block does not beat what is known of the others.
    So with more than BLOCK candidates the pick is the best of all unless a gain outside has risen
    since then; gains nearly always fall.

    positions  (n,) int64 of the candidates
    """

    def __init__(
        self,
        view: PoolView,
        strategy: InformationStrategy,
        information: Information,
        ridge: float,
        positions: np.ndarray,
    ) -> None:
        import torch

        self.positions = positions
        self._strategy = strategy
        self._ridge = ridge
        indices = view.to_device(positions)
        self.rows = head_rows(view, indices).double()  # (n, e)
        self.factors = strategy.factor(view, indices).double()
        self.ties = view.to_device(view.ties[positions])
        self._by_position = np.argsort(positions)
        self._leverage, self._reach = information.measure(self.rows)
        self._gone = torch.zeros(len(positions), dtype=torch.bool, device=view.device)
        self._unheard: list[Change] = []
        self._choose_block()

    def copy(self) -> InformationSearch:
        """Changes of one do not reach the other."""
        twin = copy(self)
        twin._leverage = self._leverage.clone()
        twin._reach = self._reach.clone()
        twin._gone = self._gone.clone()
        twin._unheard = list(self._unheard)
        twin._block_leverage = self._block_leverage.clone()
        twin._block_reach = self._block_reach.clone()
        return twin

    def change(self, changes: Sequence[Change]) -> None:
        """Examples were taken, whoever took them."""
        if not changes:
            return
        apply_changes(
            changes,
            self._block_rows,
            self._block_leverage,
            self._block_reach,
        )
        self._unheard += changes

    def remove(self, positions: np.ndarray) -> None:
        """Those of positions (n,) that are candidates are not offered any more."""
        ordered = self.positions[self._by_position]
        places = np.searchsorted(ordered, positions)
        is_beyond = places == len(ordered)
        places[is_beyond] = 0  # any place will do: what stands there is another position
        is_candidate = ordered[places] == positions
        numbers = self._by_position[places[is_candidate]]
        self._gone[numbers.tolist()] = True

    def is_used_up(self) -> bool:
        """Whether all candidates are taken."""
        return bool(self._gone.all())

    def best(self) -> int:
        """The number of the candidate that adds most, the first by ties among equals; -1 where all
        are taken.
        """
        import torch

        if self.is_used_up():
            return -1
        gains = self._block_gains()
        if self._is_behind(gains):
            self._hear()
            gains = self._block_gains()
        numbers = self._block
        least = _least_equal(gains)
        if least <= self._highest_outside:
            # Equals of the best lie outside of the block too.
            gains = self._all_gains()
            numbers = torch.arange(len(gains), device=gains.device)
            least = _least_equal(gains)
        is_best = gains >= least
        equals = numbers[is_best]
        first_by_ties = self.ties[equals].argmin()
        return int(equals[first_by_ties])

    def _is_behind(self, gains: torch.Tensor) -> bool:
        """Whether the candidates outside of the block have to hear of changes. gains (b,): of the
        block.
        """
        if not self._unheard or len(self._block) == len(self.positions):
            return False
        if len(self._unheard) >= UNHEARD:
            return True
        return _least_equal(gains) <= self._highest_outside

    def _hear(self) -> None:
        """All candidates hear of the changes since the last time."""
        apply_changes(
            self._unheard,
            self.rows,
            self._leverage,
            self._reach,
        )
        self._unheard.clear()
        self._choose_block()

    def _choose_block(self) -> None:
        """Take the candidates of largest gain. All have heard of every change."""
        gains = self._all_gains()
        count = min(BLOCK, len(gains))
        looked_at = min(count + 1, len(gains))
        largest = gains.topk(looked_at)
        self._block = largest.indices[:count]
        self._highest_outside = -np.inf
        if looked_at > count:
            self._highest_outside = float(largest.values[count])
        self._block_rows = self.rows[self._block]
        self._block_leverage = self._leverage[self._block]
        self._block_reach = self._reach[self._block]

    def _all_gains(self) -> torch.Tensor:
        gains = self._strategy.gain(
            self._leverage,
            self._reach,
            self.factors,
            self._ridge,
        )
        return gains.masked_fill(self._gone, -np.inf)

    def _block_gains(self) -> torch.Tensor:
        gains = self._strategy.gain(
            self._block_leverage,
            self._block_reach,
            self.factors[self._block],
            self._ridge,
        )
        return gains.masked_fill(self._gone[self._block], -np.inf)

    def bytes_held(self) -> int:
        """Of the candidates' rows."""
        return 8 * self.rows.numel()


def _least_equal(gains: torch.Tensor) -> float:
    """The smallest gain that counts as equal to the largest of some."""
    largest = float(gains.max())
    return largest - SAME_GAIN * abs(largest)


class InformationCursor(Cursor):
    """Preselects candidates by their gain when it is opened, and again after every so many takes
    (RENEWED_SHARE), or when they are used up.
    """

    def __init__(
        self,
        view: PoolView,
        strategy: InformationStrategy,
        pulls: int,
    ) -> None:
        super().__init__(view)
        self.strategy = strategy
        self.ridge = ridge_of(view, strategy.ridge)
        self._count = max(strategy.candidates, first_depth(pulls))
        self._preselected_at = 0
        self._is_preselection = False
        self.search: InformationSearch | None = None
        if self.ledger.left:
            known = np.concatenate([view.labelled, view.pending, self.unseen()])
            moments = known_moments(view, known, strategy.weigh, self.ridge)
            pool = strategy.pool_information(view)
            self.information = Information(moments, pool)
            self.search = self._preselect()

    def take(self) -> int:
        search = self.catch_up()
        number = search.best()
        return int(search.positions[number])

    def catch_up(self) -> InformationSearch:
        """The search, which knows of all that was taken and has a candidate left. Raises Exhausted
        where nothing is free.
        """
        if self.ledger.left == 0 or self.search is None:
            raise Exhausted("every example has been taken")
        positions = self.unseen().copy()
        changes = self._learn(positions)
        self.hear(positions, changes)
        takes_since = self.ledger.count - self._preselected_at
        is_old = takes_since >= RENEWED_SHARE * self._count
        # Where all that is free are candidates, none can be missing.
        if self.search.is_used_up() or (is_old and self._is_preselection):
            self.search = self._preselect()
        return self.search

    def hear(self, positions: np.ndarray, changes: list[Change]) -> None:
        """Examples at positions (n,) were taken, which changed what is known."""
        assert self.search is not None
        self.search.change(changes)
        self.search.remove(positions)

    def _learn(self, positions: np.ndarray) -> list[Change]:
        """Examples at positions (n,) join those that are known -> what each changes."""
        if len(positions) == 0:
            return []
        indices = self.view.to_device(positions)
        rows = head_rows(self.view, indices).double()
        weights = self.strategy.weigh(self.view, indices).double()
        return [self.information.add(row, weight) for row, weight in zip(rows, weights)]

    def searched(self, positions: np.ndarray) -> InformationSearch:
        """A search among these positions alone."""
        return InformationSearch(
            self.view,
            self.strategy,
            self.information,
            self.ridge,
            positions,
        )

    def _preselect(self) -> InformationSearch:
        """The free examples of largest gain, all of them where they are few."""
        free = np.flatnonzero(self.ledger.free)
        self._preselected_at = self.ledger.count
        self._is_preselection = len(free) > self._count
        if self._is_preselection:
            gains = PoolGains(self.strategy, self.information, self.ridge)
            # Those that were taken in this round are ranked too, and left out here.
            looked_at = self._count + self.ledger.count
            ranked = rank_pool(gains, self.view, looked_at)
            is_free = self.ledger.free[ranked]
            free = np.sort(ranked[is_free][: self._count])
        return self.searched(free)

    def bytes_held(self) -> int:
        if self.search is None:
            return 0
        return self.search.bytes_held()


def largest_probability(view: PoolView, which: slice | torch.Tensor) -> torch.Tensor:
    """(n,) of some examples."""
    if isinstance(which, slice):
        return view.row_max[which]
    return view.rows(which).amax(1)
