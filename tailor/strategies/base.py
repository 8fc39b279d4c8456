"""What every family of arms is: a Strategy lists its Arms; an opened arm is a Cursor that hands out
examples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.task import Task

if TYPE_CHECKING:
    import torch

BOTH = frozenset({"multi-class", "multi-label"})
MULTI_CLASS = frozenset({"multi-class"})
MULTI_LABEL = frozenset({"multi-label"})


@dataclass(frozen=True)
class Arm:
    """One candidate algorithm: a family, and the class it works for where the family has one arm a
    class.
    """

    strategy: Strategy
    name: str
    klass: int | None = None

    @property
    def family(self) -> str:
        return self.strategy.name

    def open(self, view: PoolView, pulls: int, rng: np.random.Generator) -> Cursor:
        """Prepare for `pulls` takes in this round."""
        return self.strategy.open([self], view, [pulls], [rng])[0]


class Cursor(ABC):
    """An opened arm. It reads view.ledger to learn what other arms took meanwhile."""

    def __init__(self, view: PoolView) -> None:
        self.view = view
        self.ledger = view.ledger
        self._seen = 0

    @abstractmethod
    def take(self) -> int:
        """The position of the next free example, or raises Exhausted. The caller enters it in the
        ledger.
        """

    def unseen(self) -> np.ndarray:
        """(n,) positions taken by any arm since this was last called, in order."""
        news = self.ledger.taken[self._seen :]
        self._seen = self.ledger.count
        return news


class Strategy(ABC):
    """A family of arms. See docs/how-to/extending.md for a worked example."""

    name: ClassVar[str]
    tasks: ClassVar[frozenset[str]] = BOTH
    needs: ClassVar[frozenset[Need]] = frozenset({Need.PROBABILITIES})
    #: one arm for each class, named family[class], or a single arm named as the family
    per_class: ClassVar[bool] = False

    def arms(self, task: Task) -> list[Arm]:
        if task.kind not in self.tasks:
            raise InputError(
                f"{self.name!r} is for {' or '.join(sorted(self.tasks))} tasks, this one is "
                f"{task.kind}"
            )
        if self.per_class:
            return [Arm(self, f"{self.name}[{c}]", k) for k, c in enumerate(task.classes)]
        return [Arm(self, self.name)]

    @abstractmethod
    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        """Open the pulled arms of this family together, so that they can share a pass over the
        pool.
        """


class ScoreStrategy(Strategy):
    """A family that ranks the pool once: one number an example, smallest first.

    A family of one arm writes `score`; a family of one arm a class writes `class_score`.
    """

    def score(self, view: PoolView) -> torch.Tensor:
        """(N,) finite, on view.device."""
        raise InputError(f"{type(self).__name__} must define score")

    def class_score(self, column: torch.Tensor) -> torch.Tensor:
        """column (N,): the probabilities of one class -> (N,) finite."""
        raise InputError(f"{type(self).__name__} must define class_score")

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        found = zip(self.scores(view, [arm.klass for arm in arms]), pulls, strict=True)
        return [
            RankedCursor(
                view, lowest(scores, first_depth(n), view), n, self._ranks_on(view, klass, scores)
            )
            for (klass, scores), n in found
        ]

    def _ranks_on(
        self, view: PoolView, klass: int | None, scores: torch.Tensor
    ) -> Callable[[int], np.ndarray]:
        """count -> as many of the best, in order, for an arm whose shortlist is used up.

        A family of one arm keeps its scores, which may have cost dropout passes or a fine-tuning
        and may come out otherwise the next time. Columns of probabilities stay what they are, and
        the scores of one arm a class would take as much memory as those: they are computed again.
        """
        if klass is None:
            return lambda count: lowest(scores, count, view)
        return partial(self.ranked, view, klass)

    def ranked(self, view: PoolView, klass: int | None, count: int) -> np.ndarray:
        """Positions of the `count` best-ranked examples, in order; all that are free where there
        are fewer.
        """
        ((_, scores),) = self.scores(view, [klass])
        return lowest(scores, count, view)

    def scores(
        self, view: PoolView, classes: list[int | None]
    ) -> Iterable[tuple[int | None, torch.Tensor]]:
        if self.per_class:
            columns = view.columns([k for k in classes if k is not None])
            return ((k, self.class_score(column)) for k, column in columns)
        return [(None, self.score(view))]


class RankedCursor(Cursor):
    """Hands out the best-ranked free examples. Holds a few more than it was told to give, and
    refills if others take those.

    ranked  the best first_depth(pulls), in order
    rank    count -> as many of the best, in order
    """

    def __init__(
        self, view: PoolView, ranked: np.ndarray, pulls: int, rank: Callable[[int], np.ndarray]
    ) -> None:
        super().__init__(view)
        self._ranked = ranked
        self._rank = rank
        self._next = 0
        self._depth = first_depth(pulls)

    def take(self) -> int:
        while True:
            while self._next < len(self._ranked):
                index = int(self._ranked[self._next])
                if self.ledger.free[index]:
                    return index
                self._next += 1
            if len(self._ranked) == len(self.view.free_ids):
                raise Exhausted("every example has been taken")
            self._depth *= 4
            self._ranked = self._rank(self._depth)


def first_depth(pulls: int) -> int:
    """How many of the best an arm that is pulled so often holds at the start: others take some of
    them.
    """
    return 2 * pulls + 16


def lowest(scores: torch.Tensor, count: int, view: PoolView) -> np.ndarray:
    """Positions of the `count` lowest-scored examples among those free at the round's start, in
    order; ties by view.ties. Selects, then sorts only what it selected.
    """
    count = min(count, len(view.free_ids))
    if count == 0:
        return np.empty(0, np.int64)
    scores = scores.masked_fill(view.closed, float("inf"))
    limit = scores.topk(count, largest=False, sorted=False).values.amax()
    chosen = (scores <= limit).nonzero().squeeze(1)
    ids = chosen.cpu().numpy()
    order = np.lexsort((view.ties[ids], scores[chosen].cpu().numpy()))
    return ids[order[:count]]


def random_free(ledger_free: np.ndarray, candidates: np.ndarray, rng: np.random.Generator) -> int:
    """A uniformly random free example. Tries blindly first, since most candidates are free."""
    for _ in range(16):
        if len(candidates) == 0:
            break
        index = int(candidates[rng.integers(len(candidates))])
        if ledger_free[index]:
            return index
    free = np.flatnonzero(ledger_free)
    if len(free) == 0:
        raise Exhausted("every example has been taken")
    return int(free[rng.integers(len(free))])
