"""Who is near whom among the candidates of a search and what is known already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailor.common.unit_features import unit_features
from tailor.selection.pool_view import PoolView
from tailor.strategies.expected_finds import group_by_neighbour
from tailor.strategies.feature_kernel import block_slices, blocks, squared_distances
from tailor.strategies.most_likely_positive import MostLikelyPositive
from tailor.strategies.ranking import RankShards

if TYPE_CHECKING:
    import torch


class NeighbourGraph:
    """The nearest neighbours of candidates, by unit features, shared by all arms of a round.

    Nodes are the candidates, numbered first, and then examples that are known: labelled, pending
    or taken. Nothing random goes into it but the view's ties, so that it is the same whichever arms
    are open.

    candidates  free examples, at most; where more are free, those that the model finds likeliest
                for each class, as many of each, and random ones
    known       labelled, pending and taken ones, at most; random ones of these where there are more
    """

    def __init__(
        self,
        view: PoolView,
        *,
        neighbours: int,
        candidates: int,
        known: int,
    ) -> None:
        self.view = view
        self._seen = view.ledger.count
        #: (C,) positions of the candidates
        self.candidates = choose_candidates(view, candidates)
        #: (n,) positions of the other nodes
        self.known = self._first_by_ties(self._all_known(), known)
        count = len(self.candidates)
        #: (C, k) int32 nodes
        self.neighbours = self._find(neighbours)
        nodes = count + len(self.known)
        starts, counted_by = group_by_neighbour(self.neighbours, nodes)
        self.counted_by = (starts, counted_by)
        is_known = self.neighbours >= count
        #: (C,) how many neighbours of each candidate are known now
        self.known_neighbours = is_known.sum(1).astype(np.int64)
        #: (C,) bool: not taken yet
        self.free = np.ones(count, bool)
        self._by_position = np.argsort(self.candidates)
        self._sorted = self.candidates[self._by_position]
        #: how often something that concerns the graph was taken
        self.version = 0

    def _all_known(self) -> np.ndarray:
        view = self.view
        return np.concatenate(
            [
                view.labelled,
                view.pending,
                view.ledger.taken,
            ]
        )

    def _first_by_ties(self, positions: np.ndarray, count: int) -> np.ndarray:
        """Up to `count` of the positions, random ones where there are more."""
        by_ties = np.argsort(self.view.ties[positions])
        return positions[by_ties[:count]]

    def positives(self, klass: int) -> np.ndarray:
        """(C,) int64: how many neighbours of each candidate are labelled as a class. What is
        pending or taken counts as 0.
        """
        view = self.view
        is_in_class = view.labels[:, klass] == 1
        in_class = view.labelled[is_in_class]
        count = len(self.candidates)
        is_positive = np.zeros(count + len(self.known), np.int64)
        is_positive[count:] = np.isin(self.known, in_class)
        return is_positive[self.neighbours].sum(1)

    def follow(self) -> None:
        """Candidates that were taken meanwhile, by any arm, are known from now on."""
        taken = self.view.ledger.taken[self._seen :]
        self._seen = self.view.ledger.count
        starts, counted_by = self.counted_by
        for number in self._numbers_of(taken):
            self.free[number] = False
            begin = starts[number]
            end = starts[number + 1]
            # those that have it among their neighbours
            concerned = counted_by[begin:end]
            self.known_neighbours[concerned] += 1
            self.version += 1

    def _numbers_of(self, positions: np.ndarray) -> list[int]:
        """The numbers of those positions (n,) that are candidates."""
        places = np.searchsorted(self._sorted, positions)
        # Beyond the last one any place will do: what stands there is another position.
        places[places == len(self._sorted)] = 0
        is_candidate = self._sorted[places] == positions
        numbers = self._by_position[places[is_candidate]]
        return numbers.tolist()

    def _find(self, neighbours: int) -> np.ndarray:
        """(C, k) int32: the nearest nodes of each candidate, itself left out."""
        import torch

        positions = np.concatenate([self.candidates, self.known])
        rows = unit_rows(self.view, positions)
        width = min(neighbours, len(positions) - 1)
        nearest = []
        for part in block_slices(len(self.candidates)):
            block = rows[part]
            squared = squared_distances(block, rows)
            # No example is a neighbour of its own.
            places = torch.arange(len(block), device=rows.device)
            squared[places, part.start + places] = torch.inf
            smallest = squared.topk(width, dim=1, largest=False)
            nodes = smallest.indices.to(torch.int32)
            nearest.append(nodes)
        numbers: np.ndarray = torch.cat(nearest).cpu().numpy()
        return numbers

    def bytes_held(self) -> int:
        _, counted_by = self.counted_by
        return self.neighbours.nbytes + counted_by.nbytes


def unit_rows(view: PoolView, positions: np.ndarray) -> torch.Tensor:
    """(n, d) float32: features of positions (n,) from their mean, divided by their length."""
    import torch

    features = []
    for block in blocks(positions):
        indices = view.to_device(block)
        rows = view.feature_rows(indices)
        features.append(rows)
    joined = torch.cat(features)
    centre = joined.double().mean(0)
    units = []
    for rows in joined.split(1024):
        exact = unit_features(rows, centre)
        # Single precision from here on: these are only compared with each other.
        units.append(exact.float())
    return torch.cat(units)


def choose_candidates(view: PoolView, count: int) -> np.ndarray:
    """(C,) positions, ascending: all that is free now, or where that is more than `count`, for
    each class an equal number that the model finds likeliest, and random ones for the rest.
    """
    free = np.flatnonzero(view.ledger.free)
    if len(free) <= count:
        return free
    classes = view.task.size
    # Half are random, so that the likeliest have others around them.
    each = count // (2 * classes)
    chosen = np.zeros(view.size, bool)
    for positions in likeliest(view, each):
        chosen[positions] = True
    chosen &= view.ledger.free
    is_other = ~chosen[free]
    others = free[is_other]
    by_ties = np.argsort(view.ties[others])
    room = count - int(chosen.sum())
    first_by_ties = others[by_ties[:room]]
    chosen[first_by_ties] = True
    return np.flatnonzero(chosen)


def likeliest(view: PoolView, count: int) -> list[np.ndarray]:
    """For each class the `count` positions of largest probability that were free as the round
    began.
    """
    if count == 0:
        return []
    family = MostLikelyPositive()
    classes = list(range(view.task.size))
    if view.shards is not None:
        counts = [count] * len(classes)
        job = RankShards(family, classes, counts)
        ranked = view.shards.visit(job)
        return [rows.positions for rows in ranked]
    return family.ranked_classes(view, classes, count)
