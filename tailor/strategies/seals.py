"""seals: any family, over the nearest neighbours of what is labelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tailor.common.checks import check_whole
from tailor.errors import InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.selection.subset_view import SubsetView
from tailor.strategies.base import Arm, Cursor, Idea, Strategy
from tailor.strategies.costs import HeldMemory, OpeningWork, PoolShape
from tailor.strategies.neighbours import INDEXES, Neighbours, list_count, uses_faiss


class Seals(Strategy):
    """SEALS: another family, which sees no more of the pool than the nearest neighbours of what is
    labelled.

    The family works on a pool that consists of what is labelled or pending and of the free examples
    among the neighbours of labelled ones, so that it costs what a small pool costs. As labels come,
    their neighbours come along. When all neighbours are taken, or nothing is labelled yet, the
    family chooses from the whole pool. What other arms take is heard where it lies among the
    neighbours.

    Neighbours are the nearest of all examples in unit features (taken from the mean, divided by the
    length). They are looked up once and kept while the features stay what they are; a model that
    changes its features from round to round makes every round look all of them up.

    Coleman et al., "Similarity Search for Efficient Active Learning and Search of Rare Concepts",
    2022. Tasks, arms and needs are those of the family, and features.

    family      the family: `seals(margin)`, `seals(galaxy(pending=predicted), neighbours=50)`
    neighbours  of each labelled example
    index       exact: every distance is measured; faiss: an approximate index; auto: exact below
                100,000 examples, faiss above

    Formula: what the family takes from S = labelled ∪ pending ∪ ⋃ over labelled y of kNN(y), free
    ones alone.

    Cost: a pass over the features; N × (new labels) distances, or an index of N examples that is
    built once; then what the family costs on labelled × `neighbours` examples.

    When to use: rare classes in a large pool, where the family's own pass over all examples is too
    dear. A class of which nothing lies near a label is not found: let another arm look for it.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> probs = np.array([[0.9, 0.1], [0.7, 0.3], [0.5, 0.5], [0.6, 0.4]])
    >>> features = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]])
    >>> view = ArrayView(task, probs, features, labelled=[0], labels=[[1, 0]])
    >>> Seals(family="margin", neighbours=1).arms(task)[0].open(view, 1, None).take()
    1
    """

    name = "seals"
    idea = Idea.RARE_CLASSES
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})
    per_class = True
    unnamed_option = "family"

    def __init__(
        self,
        *,
        family: Any = "most-likely-positive",
        neighbours: int = 100,
        index: str = "auto",
    ) -> None:
        # The package imports this module by name only.
        from tailor.strategies import make_strategy

        self.family = make_strategy(family)
        if isinstance(self.family, Seals):
            raise InputError(f"seals({self.family.name}): name the family within alone")
        if index not in INDEXES:
            raise InputError(f"index is {index!r}: it must be one of {', '.join(INDEXES)}")
        self.neighbours = check_whole(neighbours, "neighbours")
        self.index = index
        self.name = f"seals({self.family.name})"
        self.tasks = self.family.tasks
        self.needs = self.family.needs | {Need.FEATURES}
        self.per_class = self.family.per_class
        self.finetune_epochs = self.family.finetune_epochs
        # Besides the family's: a number that tells whether an example's features have changed.
        self.bytes_per_example = self.family.bytes_per_example + 8
        self._neighbours = Neighbours(self.neighbours, index)

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        around = self._neighbours.around(view, view.labelled)
        is_free = view.ledger.free[around]
        subset = SubsetView(view, around[is_free])
        inner_arms = [self._inner_arm(arm) for arm in arms]
        inner_cursors: Sequence[Cursor | None] = [None] * len(arms)
        # Where nothing is left there the cursors open the whole pool.
        if subset.ledger.left:
            inner_cursors = self.family.open(
                inner_arms,
                subset,
                pulls,
                rngs,
            )
        cursors: list[Cursor] = []
        for arm, inner_cursor, count, rng in zip(
            inner_arms,
            inner_cursors,
            pulls,
            rngs,
            strict=True,
        ):
            cursor = SealsCursor(
                subset,
                inner_cursor,
                arm,
                count,
                rng,
            )
            cursors.append(cursor)
        return cursors

    def _inner_arm(self, arm: Arm) -> Arm:
        """The family's own arm."""
        return replace(arm, strategy=self.family)

    @property
    def hears_answers(self) -> bool:
        return self.family.hears_answers

    def explanation(self) -> str:
        return (
            f"It works as {self.family.name} does, among the {self.neighbours} nearest neighbours "
            "of each labelled example; once all of these were taken, in the whole pool."
        )

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        reached = shape.labelled * (self.neighbours + 1)
        subset = replace(shape, examples=min(shape.examples, reached))
        family_work = self.family.opening_work(subset)
        measured = shape.labelled
        if uses_faiss(self.index, shape.examples):
            # Each example is compared with the centres of the lists once.
            measured = list_count(shape.examples)
        return OpeningWork(
            bytes_read=shape.feature_bytes + family_work.bytes_read,
            flops=2.0 * shape.examples * measured * shape.features + family_work.flops,
        )

    def held_in_memory(self, shape: PoolShape) -> HeldMemory | None:
        if not uses_faiss(self.index, shape.examples):
            return self.family.held_in_memory(shape)
        return HeldMemory(
            what="the index of neighbours",
            most=shape.feature_bytes,
        )


class SealsCursor(Cursor):
    """Takes from the neighbourhood for as long as something is free there, then from the whole
    pool.

    subset  the neighbourhood, which all arms of the family share
    inner   the family's cursor there; None where nothing is free
    arm     the family's
    """

    def __init__(
        self,
        subset: SubsetView,
        inner: Cursor | None,
        arm: Arm,
        pulls: int,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(subset.pool)
        self._subset = subset
        self._inner = inner
        self._arm = arm
        self._pulls = pulls
        self._rng = rng
        self._whole_pool: Cursor | None = None

    def take(self) -> int:
        self._subset.follow()
        if self._inner is not None and self._subset.ledger.left:
            place = self._inner.take()
            return int(self._subset.positions[place])
        # Nothing comes back: what the cursor there holds is not needed any more.
        self._inner = None
        if self._whole_pool is None:
            self._whole_pool = self._arm.open(self.view, self._pulls, self._rng)
        return self._whole_pool.take()

    def bytes_held(self) -> int:
        held = 0
        for cursor in (self._inner, self._whole_pool):
            if cursor is not None:
                held += cursor.bytes_held()
        return held
