"""Ranking the pool by a number: the lowest first, in memory or over shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tailor.errors import Exhausted
from tailor.selection.pool_view import PoolView
from tailor.strategies.base import Cursor

if TYPE_CHECKING:
    import torch

#: count -> positions of as many of the best-ranked examples, in order
Rank = Callable[[int], np.ndarray]


#: a class, None for the only arm of a family, and a number for each example (N,)
ClassScores = tuple[int | None, "torch.Tensor"]


class Scorer(Protocol):
    """Gives every example a number, for one arm or for one arm a class."""

    def scores(self, view: PoolView, classes: list[int | None]) -> Iterable[ClassScores]:
        """(class, (N,) its numbers) for each of the classes; None: the family's only arm."""


class RankedCursor(Cursor):
    """Hands out the best-ranked free examples.

    It holds a few more than it was told to give, and ranks again if other arms take those.

    ranked  the best first_depth(pulls), in order
    rank    count -> as many of the best, in order
    """

    def __init__(
        self,
        view: PoolView,
        ranked: np.ndarray,
        pulls: int,
        rank: Rank,
    ) -> None:
        super().__init__(view)
        self._ranked = ranked
        self._rank = rank
        self._next = 0
        self._depth = first_depth(pulls)

    def take(self) -> int:
        while True:
            while self._next < len(self._ranked):
                ranked = self._ranked[self._next]
                index = int(ranked)
                if self.ledger.free[index]:
                    return index
                self._next += 1
            all_free = len(self.view.free_ids)
            if len(self._ranked) == all_free:
                raise Exhausted("every example has been taken")
            # The deeper ranking begins with this one, so the place in it stays.
            self._depth *= 4
            self._ranked = self._rank(self._depth)


def first_depth(pulls: int) -> int:
    """How many of the best an arm that is pulled so often holds at the start: others take some of
    them.
    """
    return 2 * pulls + 16


def lowest(scores: torch.Tensor, count: int, view: PoolView) -> np.ndarray:
    """Positions of the `count` lowest-scored examples among those free at the round's start, in
    order; ties by view.ties. scores (N,).
    """
    count = min(count, len(view.free_ids))
    if count == 0:
        return np.empty(0, np.int64)
    # Select, then sort only what was selected: O(N + count log count).
    scores = scores.masked_fill(view.closed, float("inf"))
    selected = scores.topk(count, largest=False, sorted=False)
    limit = selected.values.amax()
    # All that tie with the last one selected come along, so that view.ties decides among them.
    is_chosen = scores <= limit
    chosen = is_chosen.nonzero().squeeze(1)
    positions = chosen.cpu().numpy()
    chosen_scores = scores[chosen].cpu().numpy()
    ties = view.ties[positions]
    order = np.lexsort((ties, chosen_scores))
    best = order[:count]
    return positions[best]


class RankedRows(NamedTuple):
    """The best of some rows, in order."""

    positions: np.ndarray  # (c,) int64, in the pool
    scores: np.ndarray  # (c,)
    ties: np.ndarray  # (c,) int64


class RankShards:
    """A job for the shards: for each arm of a family its lowest-scored free examples.

    Each shard gives its own best, and the best of those are the pool's: exact, and no shard sends
    more than `counts` asks for.

    classes  of the arms; None: the family's only one
    counts   how many examples of each
    """

    def __init__(
        self,
        scorer: Scorer,
        classes: Sequence[int | None],
        counts: Sequence[int],
    ) -> None:
        self._scorer = scorer
        self._classes = list(classes)
        self._counts = list(counts)

    def __call__(self, part: PoolView) -> list[RankedRows]:
        scored = self._scorer.scores(part, self._classes)
        answers = []
        for (_, scores), count in zip(scored, self._counts, strict=True):
            positions = lowest(scores, count, part)
            indices = part.to_device(positions)
            best = scores[indices]
            rows = RankedRows(
                positions=positions + part.start,
                scores=best.cpu().numpy(),
                ties=part.ties[positions],
            )
            answers.append(rows)
        return answers

    def join(self, answers: list[list[RankedRows]]) -> list[RankedRows]:
        by_arm = zip(*answers)
        merged = []
        for rows, count in zip(by_arm, self._counts, strict=True):
            best = merge_ranked(rows, count)
            merged.append(best)
        return merged


def rank_pool(scorer: Scorer, view: PoolView, count: int) -> np.ndarray:
    """Positions of the `count` lowest-scored examples of a whole pool, in order, by the only arm of
    a family; in memory or over shards.
    """
    job = RankShards(scorer, [None], [count])
    if view.shards is None:
        (best,) = job(view)
    else:
        (best,) = view.shards.visit(job)
    return best.positions


def merge_ranked(rows: Sequence[RankedRows], count: int) -> RankedRows:
    """The best `count` of what several shards gave."""
    positions = np.concatenate([ranked.positions for ranked in rows])
    scores = np.concatenate([ranked.scores for ranked in rows])
    ties = np.concatenate([ranked.ties for ranked in rows])
    # By score, then by ties: lexsort's last key counts most.
    order = np.lexsort((ties, scores))
    best = order[:count]
    return RankedRows(positions=positions[best], scores=scores[best], ties=ties[best])


def ranked_among(
    is_among: torch.Tensor,
    numbers: torch.Tensor,
    count: int,
    part: PoolView,
) -> RankedRows:
    """The `count` lowest-numbered of some rows, in order, or all where there are fewer; ties by
    part.ties.

    is_among  (N,) bool: the rows in question
    numbers   (N,) what they are ranked by
    """
    if count == 0:
        is_among = is_among[:0]
    chosen = is_among.nonzero().squeeze(1)
    values = numbers[chosen]
    if count < len(chosen):
        selected = values.topk(count, largest=False, sorted=False)
        # All that tie with the last one selected come along, so that part.ties decides.
        is_near = values <= selected.values.amax()
        chosen = chosen[is_near]
        values = values[is_near]
    positions = chosen.cpu().numpy()
    scores = values.cpu().numpy()
    ties = part.ties[positions]
    order = np.lexsort((ties, scores))
    best = order[:count]
    return RankedRows(positions=positions[best] + part.start, scores=scores[best], ties=ties[best])
