"""galaxy-all: bisection on the line graphs of all classes at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailor.selection.pool_view import PoolView
from tailor.strategies.base import MULTI_CLASS, Arm, Cursor, Idea
from tailor.strategies.galaxy.class_graph import GalaxyCursor
from tailor.strategies.galaxy.galaxy import Galaxy


class GalaxyAll(Galaxy):
    """GALAXY as published: one arm that takes the shortest of all classes' shortest cuts.

    Zhang, Katz-Samuels and Nowak, "GALAXY: Graph-based Active Learning at the Extreme", 2022.
    Multi-class; needs probabilities. Opening costs as much as galaxy with all its arms pulled; a
    take costs O(K log N). Options are those of galaxy.

    pending  as for galaxy

    Formula: as galaxy, the smallest over all classes.

    Cost: one pass over the N × K probabilities: every class's line is needed for each pick.

    When to use: to compare with the published algorithm. As a candidate for TAILOR take galaxy,
    whose arms can be told apart.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> probs = np.array([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [0.3, 0.7], [0.1, 0.9]])
    >>> view = ArrayView(task, probs, labelled=[0, 4], labels=[[1, 0], [0, 1]])
    >>> GalaxyAll().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    2
    """

    name = "galaxy-all"
    idea = Idea.RARE_CLASSES
    tasks = MULTI_CLASS
    per_class = False

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        classes = list(range(view.task.size))
        cursors: list[Cursor] = []
        for rng in rngs:
            graphs = self.graphs(view, classes, together=True)
            cursor = GalaxyCursor(list(graphs), view, rng)
            cursors.append(cursor)
        return cursors
