"""What every family of arms is: a Strategy lists its Arms; an opened arm is a Cursor that hands out
examples.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.costs import HeldMemory, OpeningWork, PoolShape
from tailor.task import Task

BOTH = frozenset({"multi-class", "multi-label"})
MULTI_CLASS = frozenset({"multi-class"})
MULTI_LABEL = frozenset({"multi-label"})


class Idea(enum.Enum):
    """What a family goes by. `tailor arms` and the docs group families by it, in this order."""

    UNCERTAIN = "uncertain"
    REPRESENTATIVE = "representative"
    BOTH = "both"
    RARE_CLASSES = "rare classes"
    SEARCH = "search"
    LEARNED = "learned"

    @property
    def meaning(self) -> str:
        """The idea in a sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    Idea.UNCERTAIN: "What the model is least sure of.",
    Idea.REPRESENTATIVE: "What stands for the rest of the pool, whatever the model says.",
    Idea.BOTH: "What the model is unsure of and what stands for much, or differs from the rest.",
    Idea.RARE_CLASSES: "What helps classes that have few examples.",
    Idea.SEARCH: "What is likely to be of a class: to find examples, not to teach a model.",
    Idea.LEARNED: "What a rule that was learned on other pools expects most of.",
}


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

    def open(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        """Prepare for `pulls` takes in this round."""
        cursors = self.strategy.open(
            [self],
            view,
            [pulls],
            [rng],
        )
        return cursors[0]


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
        positions = self.ledger.taken[self._seen :]
        self._seen = self.ledger.count
        return positions

    def bytes_held(self) -> int:
        """Memory that is held now, how much depending on the predictions and labels.

        What a family holds for every example whatever they are is Strategy.bytes_per_example.
        """
        return 0


class Strategy(ABC):
    """A family of arms.

    A family writes `open`, or subclasses ScoreStrategy where it ranks the pool by a number, or
    SeparateArms where its arms are opened one by one. The rest says what the family is for, what it
    reads and what it costs, and has defaults.

    Over a pool in shards, `open` is given a view whose `shards` asks all of them at once
    (tailor.selection.pool_view.ShardVisitor). A family may use that; one that does not works all
    the same, through view.per_row, view.columns and view.rows.

    >>> from tailor.strategies import Strategy, make_arms
    >>> from tailor.strategies.random import RandomCursor
    >>> from tailor import MultiClass
    >>> class Anything(Strategy):
    ...     name = "anything"
    ...     def open(self, arms, view, pulls, rngs):
    ...         return [RandomCursor(view, rng) for rng in rngs]
    >>> [arm.name for arm in make_arms([Anything()], MultiClass(2))]
    ['anything']
    """

    # Of the class, but for a wrapper, which has those of the family within it.
    name: str
    #: what it goes by; a plugin may leave it out, and is listed apart then
    idea: ClassVar[Idea | None] = None
    #: kinds of task that it has arms for
    tasks: frozenset[str] = BOTH
    #: what it reads of the view; options may ask for more
    needs: frozenset[Need] = frozenset({Need.PROBABILITIES})
    #: what to do where a need is missing, as it stands in a sentence: "take steps=0, "
    ways_out: ClassVar[Mapping[Need, str]] = {}
    #: one arm for each class, named family[class], or a single arm named as the family
    per_class: bool = False
    #: whether it takes what covers the pool best: a round that covers what its arms propose lets it
    #: choose from the whole pool, since its picks pass that test already
    covers_pool: ClassVar[bool] = False
    #: the option whose value may stand alone in brackets: "seals(margin)"
    unnamed_option: ClassVar[str] = ""
    #: memory that an opened family keeps for every example in the pool, besides the view's
    bytes_per_example: int = 0
    #: epochs that it asks view.finetuned() for, if it needs Need.FINETUNE: over shards the copy is
    #: fine-tuned before they are visited
    finetune_epochs: int = 2

    def arms(self, task: Task) -> list[Arm]:
        """The family's arms for a task. Raises InputError where it has none for such tasks."""
        if task.kind not in self.tasks:
            kinds = " or ".join(sorted(self.tasks))
            raise InputError(f"{self.name!r} is for {kinds} tasks, this one is {task.kind}")
        if not self.per_class:
            return [Arm(self, self.name)]
        arms = []
        for klass, class_name in enumerate(task.classes):
            arm_name = f"{self.name}[{class_name}]"
            arm = Arm(self, arm_name, klass)
            arms.append(arm)
        return arms

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

        arms   those of this family's that were pulled
        pulls  how often each will probably be asked; it may be asked more often
        rngs   a generator for each
        """

    @property
    def hears_answers(self) -> bool:
        """Whether labels that come during the round change what its arms take."""
        return False

    def explanation(self) -> str:
        """A sentence that says where its picks come from, for the page that explains a pick; empty
        where the family's name says enough.
        """
        return ""

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        """The least that opening its arms takes, over shards."""
        return OpeningWork()

    def held_in_memory(self, shape: PoolShape) -> HeldMemory | None:
        """What it may hold in a run that keeps its predictions in memory, if that is much."""
        return None


class SeparateArms(Strategy):
    """A family whose arms are opened one by one: it writes `cursor` instead of `open`.

    `cursor` is not told which arm it opens, so this is for families with a single arm. One with an
    arm a class writes `open`.

    >>> from tailor.strategies import SeparateArms, make_arms
    >>> from tailor.strategies.random import RandomCursor
    >>> from tailor import MultiClass
    >>> class Anything(SeparateArms):
    ...     name = "anything"
    ...     def cursor(self, view, pulls, rng):
    ...         return RandomCursor(view, rng)
    >>> [arm.name for arm in make_arms([Anything()], MultiClass(2))]
    ['anything']
    """

    @abstractmethod
    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        """Open one arm, which will probably be asked `pulls` times."""

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        cursors = []
        for count, rng in zip(pulls, rngs, strict=True):
            cursor = self.cursor(view, count, rng)
            cursors.append(cursor)
        return cursors


def random_free(ledger_free: np.ndarray, candidates: np.ndarray, rng: np.random.Generator) -> int:
    """A uniformly random free example, or raises Exhausted.

    ledger_free  (N,) bool
    candidates   positions, all free ones among them
    """
    # Most candidates are free: a few blind tries nearly always save the pass over all N.
    for _ in range(16):
        if len(candidates) == 0:
            break
        number = rng.integers(len(candidates))
        index = int(candidates[number])
        if ledger_free[index]:
            return index
    free = np.flatnonzero(ledger_free)
    if len(free) == 0:
        raise Exhausted("every example has been taken")
    number = rng.integers(len(free))
    return int(free[number])
