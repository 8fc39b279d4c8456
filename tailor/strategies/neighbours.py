"""The nearest neighbours of labelled examples in features, kept from round to round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.common.distribution import pip_install
from tailor.common.unit_features import unit_features
from tailor.errors import InputError
from tailor.selection.pool_view import PoolView, tie_keys
from tailor.strategies.feature_kernel import squared_distances

if TYPE_CHECKING:
    import torch

INDEXES = ("auto", "exact", "faiss")
#: "auto" is exact in pools below this
LARGE_POOL = 100_000
#: labelled examples whose neighbours are sought together
QUERIES = 512
#: Squared distances of unit rows, at most 4, are compared in units of 1 / DISTANCE_UNITS.
DISTANCE_UNITS = 2**28
#: The place of an example among equals takes the lower bits of a key.
TIE_BITS = 31
#: larger than the key of any neighbour
NO_NEIGHBOUR = 2**63 - 1
#: Lists of the approximate index at most, so that building it stays linear in N; those that a
#: search looks through, and rows for each list that it learns from.
MOST_LISTS = 1024
PROBES = 16
TRAINING_ROWS = 40


class Neighbours:
    """The nearest neighbours of some examples, among all of the pool.

    Distances are of unit features (taken from the pool's mean, divided by the length). Neighbours
    are kept for as long as the features stay what they are: each example is looked up once.

    count  neighbours of each example
    index  "exact": all distances are measured; "faiss": an approximate index (inverted lists in
           half precision, package faiss-cpu); "auto": exact below 100,000 examples, else faiss
    """

    def __init__(self, count: int, index: str) -> None:
        self._count = count
        self._index = index
        self._prints: np.ndarray | None = None  # (N,) of the features that all this is about
        self._known: dict[int, np.ndarray] = {}
        self._search: ExactSearch | FaissSearch

    def around(self, view: PoolView, positions: np.ndarray) -> np.ndarray:
        """(m,) int64, ascending: the neighbours of positions (n,)."""
        self._follow_features(view)
        wanted = positions.tolist()
        self._look_up(view, wanted)
        around = [self._known[position] for position in wanted]
        if not around:
            return np.empty(0, np.int64)
        joined = np.concatenate(around)
        return np.unique(joined)

    def _look_up(self, view: PoolView, positions: list[int]) -> None:
        """Seek the neighbours of those whose neighbours are not known yet, some at a time."""
        new = []
        for position in positions:
            if position not in self._known:
                new.append(position)
        for start in range(0, len(new), QUERIES):
            stop = start + QUERIES
            part = new[start:stop]
            queries = np.array(part, np.int64)
            neighbours = self._search.nearest(view, queries, self._count)
            for position, nearest in zip(part, neighbours, strict=True):
                self._known[position] = nearest

    def _follow_features(self, view: PoolView) -> None:
        """Begin anew where the view's features are others than those of the last round."""
        prints = view.per_row(feature_prints).cpu().numpy()
        if self._prints is not None and np.array_equal(prints, self._prints):
            return
        self._known = {}
        self._prints = None  # until the index is there: building it may fail
        self._search = make_search(view, self._index)
        self._prints = prints


def uses_faiss(index: str, examples: int) -> bool:
    """Whether a pool of so many examples gets the approximate index."""
    if index == "auto":
        return examples >= LARGE_POOL
    return index == "faiss"


def list_count(examples: int) -> int:
    """Lists of the approximate index of so many examples, one at least."""
    return min(MOST_LISTS, int(examples**0.5))


def make_search(view: PoolView, index: str) -> ExactSearch | FaissSearch:
    """Raises InputError where the approximate index is wanted and its package is missing."""
    centre = mean_features(view)
    if uses_faiss(index, view.size):
        return FaissSearch(view, centre)
    return ExactSearch(view, centre)


class ExactSearch:
    """Measures every distance. Equally near ones are ordered by a hash of their position.

    centre  (d,) float64: the pool's mean features
    """

    def __init__(self, view: PoolView, centre: torch.Tensor) -> None:
        self._centre = centre
        # The seed is fixed: neighbours don't change from round to round.
        keys = tie_keys(view.size, seed=0)
        #: (N,) positions by their place among equals, and the place of each position
        self._by_place = np.argsort(keys)
        places = np.empty_like(self._by_place)
        places[self._by_place] = np.arange(view.size)
        self._places = view.to_device(places)

    def nearest(
        self,
        view: PoolView,
        queries: np.ndarray,
        count: int,
    ) -> list[np.ndarray]:
        """For each of queries (q,) the positions of its nearest others, `count` or all."""
        import torch

        indices = view.to_device(queries)
        query_features = view.feature_rows(indices)
        query_rows = unit_features(query_features, self._centre)
        own_places = self._places[indices]
        best = torch.empty((len(queries), 0), dtype=torch.int64, device=view.device)
        for part in view.chunks():
            features = view.feature_rows(part)
            rows = unit_features(features, self._centre)
            places = self._places[part]
            in_units = squared_distances(query_rows, rows) * DISTANCE_UNITS
            keys = in_units.round_().long()
            keys <<= TIE_BITS
            keys += places
            # No example is a neighbour of its own.
            is_itself = own_places[:, None] == places
            keys.masked_fill_(is_itself, NO_NEIGHBOUR)
            candidates = torch.cat([best, keys], dim=1)
            kept = min(count, candidates.shape[1])
            smallest = candidates.topk(kept, dim=1, largest=False)
            best = smallest.values
        return self._positions_of(best.cpu().numpy())

    def _positions_of(self, keys: np.ndarray) -> list[np.ndarray]:
        """For each row of keys (q, n) the positions that they belong to."""
        place_bits = 2**TIE_BITS - 1
        positions = []
        for row in keys:
            is_neighbour = row < NO_NEIGHBOUR
            places = row[is_neighbour] & place_bits
            positions.append(self._by_place[places])
        return positions


class FaissSearch:
    """Looks through the inverted lists whose centres are nearest: some neighbours are missed.

    The lists are as many as the square root of N, 1,024 at most, their centres learned from a fixed
    random sample.

    centre  (d,) float64: the pool's mean features
    """

    def __init__(self, view: PoolView, centre: torch.Tensor) -> None:
        faiss = import_faiss()
        self._centre = centre
        lists = list_count(view.size)
        dims = len(centre)
        # The index does not keep its coarse quantiser alive by itself.
        self._quantiser = faiss.IndexFlatL2(dims)
        index = faiss.IndexIVFScalarQuantizer(
            self._quantiser,
            dims,
            lists,
            faiss.ScalarQuantizer.QT_fp16,
            faiss.METRIC_L2,
        )
        # The seed is fixed: the same features give the same index, in another process too.
        rng = np.random.default_rng(0)
        sample_size = min(view.size, TRAINING_ROWS * lists)
        sample = rng.choice(view.size, sample_size, replace=False)
        sample.sort()
        sample_rows = self._rows(view, view.to_device(sample))
        index.train(sample_rows)
        for part in view.chunks():
            rows = self._rows(view, part)
            index.add(rows)
        index.nprobe = min(PROBES, lists)
        self._index = index

    def nearest(
        self,
        view: PoolView,
        queries: np.ndarray,
        count: int,
    ) -> list[np.ndarray]:
        """For each of queries (q,) positions of near others, `count` of them or fewer."""
        rows = self._rows(view, view.to_device(queries))
        # One more: most queries find themselves.
        sought = min(count + 1, view.size)
        _, positions = self._index.search(rows, sought)
        nearest = []
        for query, row in zip(queries, positions, strict=True):
            is_other = (row >= 0) & (row != query)
            others = row[is_other].astype(np.int64)
            nearest.append(others[:count])
        return nearest

    def _rows(self, view: PoolView, which: slice | torch.Tensor) -> np.ndarray:
        """(n, d) float32 unit features."""
        features = view.feature_rows(which)
        rows = unit_features(features, self._centre)
        on_host: np.ndarray = rows.float().cpu().numpy()
        return on_host


def import_faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise InputError(
            f"neighbours in a pool of {LARGE_POOL:,} examples or more are sought by an index, "
            f"which needs faiss: {pip_install('neighbours')}; or measure every distance with "
            "seals(..., index=exact)"
        ) from error
    return faiss


def mean_features(view: PoolView) -> torch.Tensor:
    """(d,) float64: of the whole pool."""
    import torch

    sums = []
    for part in view.chunks():
        features = view.feature_rows(part)
        sums.append(features.double().sum(0))
    total = torch.stack(sums).sum(0)
    return total / view.size


def feature_prints(view: PoolView, part: slice) -> torch.Tensor:
    """(n,) float64: a number for each row that changes with its features."""
    import torch

    features = view.feature_rows(part).double()
    width = features.shape[1]
    places = torch.arange(1, width + 1, dtype=torch.float64, device=view.device)
    # Fixed weights without a pattern that features could share.
    weights = torch.cos(places**2)
    return features @ weights
