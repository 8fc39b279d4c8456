"""similar: examples like those of rare classes, and unlike what is to be left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tailor.common.checks import check_list, check_number, check_whole
from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Arm, Cursor, Idea, SeparateArms
from tailor.strategies.costs import OpeningWork, PoolShape
from tailor.strategies.gradient_embeddings import Parts, parts, parts_with_labels
from tailor.strategies.lazy_maximum import LazyLargest
from tailor.strategies.targeted_gains import TargetedGains
from tailor.task import Task

#: hold_out: stay away from what annotators skipped
SKIPPED = "skipped"
#: bounds are computed anew when one in so many examples was looked at since, and so many at least
MANY = 8
FEWEST = 8192


class Similar(SeparateArms):
    """SIMILAR for rare classes: examples like the labelled ones of rare classes, unlike each other,
    and with `hold_out` unlike those to stay away from.

    Greedily maximises FLQMI, f(A) = Σ_q max over j in A of s_qj + `eta` · Σ over j in A of max_q
    s_qj, with A the batch so far, whichever arm took it. The queries q are labelled examples of
    rare classes: those with at most the median count of all classes that have a label, or those
    named in `classes`; up to `queries` of each, in turn from the rarest class on, `most` in all.
    Similarities are cosines c of gradient embeddings, as s = (c + 1) / 2. A query's gradient is
    that of its true label, every other's that of the model's own. Without a query it is exhausted.

    `hold_out` makes it a conditional gain: what lies near the examples to stay away from is
    subtracted, from what a pick adds for a query and from what it is worth by itself:
    f(A) = Σ_q max(0, max over j in A of s_qj − `strength` · max_p s_qp) + `eta` · Σ over j in A of
    max(0, max_q s_qj − `strength` · max_p s_pj), p up to `most` random ones of these. The first sum
    is submodlib's conditional gain of facility location, taken over the queries; the second, which
    has no peer there, treats an example as the first treats a query.

    `submodular` is its sibling: queries of all classes, plain cosines and the model's own labels.

    Kothawade et al., "SIMILAR: Submodular Information Measures Based Active Learning In Realistic
    Scenarios", 2021. Both kinds of task; needs probabilities and features.

    eta       weight of the second sum
    queries   labelled examples of each rare class, at most
    most      queries in all, and examples to stay away from, at most
    classes   names of the classes to look for, in a list or with | between them; none: the rare
              ones
    hold_out  skipped: what annotators skipped; or names of classes, as in `classes`; none: nothing
    strength  how much what lies near the examples to stay away from counts

    Formula: the x of largest gain f(A ∪ {x}) − f(A).

    Cost: one pass of N × `most` cosines, twice as many with `hold_out`; then a few hundred gains a
    pick.

    When to use: a few classes are rare and you have some labels of them; with
    `hold_out=skipped`, part of the pool is junk that annotators skip.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(["common", "rare"])
    >>> probs = np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.9, 0.1], [0.4, 0.6]])
    >>> features = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [1.0, 0.2], [0.1, 1.0]])
    >>> view = ArrayView(task, probs, features, labelled=[0, 1, 2],
    ...                  labels=[[1, 0], [1, 0], [0, 1]])
    >>> Similar().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    4
    """

    name = "similar"
    idea = Idea.RARE_CLASSES
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})
    bytes_per_example = 40

    def __init__(
        self,
        *,
        eta: float = 1.0,
        queries: int = 5,
        most: int = 500,
        classes: str | Iterable[str] | None = None,
        hold_out: str | Iterable[str] | None = None,
        strength: float = 1.0,
    ) -> None:
        self.eta = _check_at_least_0(eta, "eta")
        self.queries = check_whole(queries, "queries")
        self.most = check_whole(most, "most")
        self.classes = _names(classes, "classes")
        self.hold_out = _names(hold_out, "hold_out")
        self.strength = _check_at_least_0(strength, "strength")

    def arms(self, task: Task) -> list[Arm]:
        # A name that is wrong shows here, and not in the middle of a round.
        for name in self.classes or []:
            task.index(name)
        if not self._stays_away_from_skipped:
            for name in self.hold_out or []:
                task.index(name)
        return super().arms(task)

    @property
    def _stays_away_from_skipped(self) -> bool:
        return self.hold_out == [SKIPPED]

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        query_places = self.query_places(view, rng)
        if len(query_places) == 0:
            return SimilarCursor(view, None)
        gains = TargetedGains(
            view,
            queries=_labelled_parts(view, query_places),
            held_out=self._held_out_parts(view, rng),
            eta=self.eta,
            strength=self.strength,
        )
        return SimilarCursor(view, gains)

    def target_classes(self, view: PoolView) -> np.ndarray:
        """(c,) classes to look for that have a label, the rarest first."""
        counts = view.labels.sum(0)
        if self.classes is None:
            has_label = counts > 0
            if not has_label.any():
                return np.empty(0, np.int64)
            median = np.median(counts[has_label])
            is_target = has_label & (counts <= median)
        else:
            is_target = np.zeros(view.task.size, bool)
            named = [view.task.index(name) for name in self.classes]
            is_target[named] = True
            is_target &= counts > 0
        targets = np.flatnonzero(is_target)
        rarest_first = np.argsort(counts[targets], kind="stable")
        return targets[rarest_first]

    def query_places(self, view: PoolView, rng: np.random.Generator) -> np.ndarray:
        """(q,) places in view.labelled of the queries, ascending."""
        shuffled = []
        for klass in self.target_classes(view):
            members = np.flatnonzero(view.labels[:, klass])
            shuffled.append(rng.permutation(members))
        chosen: set[int] = set()
        # The first of each class, then the second: where there is no room for all, every class has
        # some.
        for turn in range(self.queries):
            for members in shuffled:
                if turn < len(members) and len(chosen) < self.most:
                    chosen.add(int(members[turn]))
        return np.array(sorted(chosen), np.int64)

    def held_out_places(self, view: PoolView, rng: np.random.Generator) -> np.ndarray:
        """(p,) of what to stay away from: places in view.labelled, or in view.skipped."""
        if self._stays_away_from_skipped:
            places = np.arange(len(view.skipped))
        else:
            named = []
            for name in self.hold_out or []:
                named.append(view.task.index(name))
            is_member = view.labels[:, named].any(1)
            places = np.flatnonzero(is_member)
        if len(places) > self.most:
            places = rng.choice(places, self.most, replace=False)
        return places

    def _held_out_parts(self, view: PoolView, rng: np.random.Generator) -> Parts | None:
        places = self.held_out_places(view, rng)
        if len(places) == 0:
            return None
        if not self._stays_away_from_skipped:
            return _labelled_parts(view, places)
        # Nobody has said what these are, so that the model's own label has to do.
        positions = view.to_device(view.skipped[places])
        return parts(view, positions)

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        wanted = self.queries * shape.classes
        measured = min(wanted, shape.labelled, self.most)
        if self.hold_out is not None:
            measured += self.most
        width = shape.classes + shape.features
        bytes_read = shape.probability_bytes + shape.feature_bytes
        # A multiplication and an addition for each number of each pair.
        flops = 2.0 * shape.examples * measured * width
        return OpeningWork(bytes_read=bytes_read, flops=flops)


class SimilarCursor(Cursor):
    """Gains only fall as the batch grows, so few have to be computed again for each pick.

    Every example is like every query to some degree, so that the first take lowers all gains at
    once. Then, and whenever old bounds let many examples pass, all bounds are computed anew.

    gains  None where no query is there
    """

    def __init__(self, view: PoolView, gains: TargetedGains | None) -> None:
        super().__init__(view)
        self._gains = gains
        self._search: LazyLargest | None = None
        self._takes_in_bounds = 0

    def take(self) -> int:
        gains = self._gains
        if gains is None:
            raise Exhausted("no class that is looked for has a labelled example")
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        taken = self.unseen().copy()
        if len(taken):
            positions = self.view.to_device(taken)
            gains.cover(positions)
            if self._search is not None:
                self._search.remove(positions)
        if self._search is None or self._bounds_are_old(gains):
            self._search = self._start_search(gains)
        index, _ = self._search.largest()
        return index

    def _bounds_are_old(self, gains: TargetedGains) -> bool:
        if self.ledger.count == self._takes_in_bounds:
            return False
        if self._takes_in_bounds == 0:
            return True
        return gains.loaded > max(FEWEST, self.view.size // MANY)

    def _start_search(self, gains: TargetedGains) -> LazyLargest:
        self._takes_in_bounds = self.ledger.count
        gains.loaded = 0
        return LazyLargest(gains.first_bounds(), values=gains, ties=self.view.ties)


def _labelled_parts(view: PoolView, places: np.ndarray) -> Parts:
    """Gradient embeddings of labelled examples, by their true labels. places (n,) in
    view.labelled.
    """
    positions = view.to_device(view.labelled[places])
    labels = view.to_device(view.labels[places])
    return parts_with_labels(view, positions, labels)


def _names(given: Any, option: str) -> list[str] | None:
    """Class names from a list, or from a text with | between them."""
    if given is None:
        return None
    names = given
    if isinstance(given, str):
        names = given.split("|")
    listed = check_list(names, option, "class names")
    stripped = []
    for name in listed:
        if not isinstance(name, str):
            raise InputError(f"{option} has {name!r}: class names are needed")
        stripped.append(name.strip())
    if not stripped:
        raise InputError(f"{option} is empty: name a class, or leave it out")
    return stripped


def _check_at_least_0(value: float, name: str) -> float:
    number = check_number(value, name, "it must be finite and at least 0")
    if number < 0:
        raise InputError(f"{name} is {value}: it must be finite and at least 0")
    return number
