"""galaxy: bisection on each class's line graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tailor.errors import InputError
from tailor.selection.pool_view import PoolView
from tailor.strategies.base import Arm, Cursor, Idea, Strategy
from tailor.strategies.costs import HeldMemory, OpeningWork, PoolShape
from tailor.strategies.galaxy.class_graph import ClassGraph, GalaxyCursor, graphs_in_memory
from tailor.strategies.galaxy.over_shards import graphs_over_shards

MODES = ("split", "predicted", "revealed")


class Galaxy(Strategy):
    """GALAXY, one arm a class.

    Sort the pool by the class's score: p_k in a multi-label task, p_k - max p in a multi-class one.
    Between two neighbouring labelled examples whose labels differ lies an open cut: take the middle
    of the shortest. With no open cut, take the free example nearest, by rank, to a closed cut (a
    negative directly below a positive). With neither, take a random one.

    Zhang, Katz-Samuels and Nowak, "GALAXY: Graph-based Active Learning at the Extreme", 2022. Both
    kinds of task; needs probabilities. Opening costs O(NK) for all arms together, and sorting what
    lies in cuts; a take costs O(log N).

    pending  what stands for a label that has not arrived: "split" keeps both halves of the cut
             open, "predicted" lets the model's own label stand in, and "revealed" uses each label
             as it comes and splits meanwhile; a label that is withdrawn has never come

    Formula: sort the pool by p_k − max_j p_j (multi-label: by p_k); among labelled neighbours i < j
    on that line whose labels differ take the pair with the fewest free examples between them, and
    of these the middle one.

    Cost: one pass over the probabilities of each class whose arm is pulled; nothing is sorted, a
    pick costs O(log N). "predicted" and "revealed" hold every class's whole line: 33 bytes for each
    example and class.

    When to use: rare classes. It bisects towards the border of each class, and so finds it with few
    labels, however small the class is.

    >>> import numpy as np
    >>> from tailor import MultiLabel
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiLabel(["cat"])
    >>> probs = np.array([[0.1], [0.2], [0.4], [0.6], [0.9]])
    >>> view = ArrayView(task, probs, labelled=[0, 4], labels=[[0], [1]])
    >>> Galaxy().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    2
    """

    name = "galaxy"
    idea = Idea.RARE_CLASSES
    per_class = True
    bytes_per_example = 9

    def __init__(self, *, pending: str = "split") -> None:
        if pending not in MODES:
            modes = ", ".join(MODES)
            raise InputError(f"pending is {pending!r}: it must be one of {modes}")
        self.pending = pending

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        classes = []
        for arm in arms:
            if arm.klass is not None:
                classes.append(arm.klass)
        graphs = self.graphs(view, classes)
        cursors: list[Cursor] = []
        for graph, rng in zip(graphs, rngs, strict=True):
            cursor = GalaxyCursor([graph], view, rng)
            cursors.append(cursor)
        return cursors

    def graphs(
        self,
        view: PoolView,
        classes: list[int],
        together: bool = False,
    ) -> Iterable[ClassGraph]:
        """The line of each class. together: one cursor takes from all of them."""
        if view.shards is None:
            return graphs_in_memory(view, self.pending, classes)
        return graphs_over_shards(
            view,
            view.shards,
            self.pending,
            classes,
            together,
        )

    @property
    def hears_answers(self) -> bool:
        return self.pending == "revealed"

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        # The few labels that are sorted don't count.
        return OpeningWork(bytes_read=shape.probability_bytes)

    def held_in_memory(self, shape: PoolShape) -> HeldMemory | None:
        if self.pending == "split":
            return None
        return HeldMemory(
            what="galaxy's lines, which hold all examples where labels come meanwhile",
            most=ClassGraph.bytes_on_line * shape.examples * shape.classes,
        )
