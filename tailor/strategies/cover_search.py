"""The candidate that adds most to a cover, again and again."""

from __future__ import annotations

import numpy as np

from tailor.strategies.cover_lists import cover_references, group_by_reference
from tailor.strategies.feature_kernel import blocks
from tailor.strategies.kernel_cover import GAIN_UNITS, CoverPairs, KernelCover

#: pairs of a candidate and a reference that are kept, 16 bytes each
MOST_PAIRS = 2**23


class CoverSearch:
    """Greedy choice among candidates by what each adds to a KernelCover.

    Kept are the pairs of a candidate and a reference that it is nearer to than anything labelled,
    pending or taken. Of n such examples and one more that is like them, any is the nearest with the
    same chance; so about one pair in n + 1 is kept, and what one pick changes is less still. When
    a cover rises, the gains of the reference's candidates fall at once: gains are always up to
    date, and exact, since they are whole numbers.

    cover       is kept up to date
    candidates  (n,) positions of free examples, each once, in random order: where there would be
                more than `most_pairs` pairs, only as many of the first are searched

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> features = np.array([[0.0, 1.0], [0.0, 2.0], [3.0, 0.0], [-3.0, -3.0]])
    >>> view = ArrayView(MultiClass(2), np.full((4, 2), 0.5), features,
    ...                  labelled=[0], labels=[[1, 0]])
    >>> cover = KernelCover.draw(view, np.random.default_rng(0))
    >>> search = CoverSearch(cover, np.array([1, 2, 3]))
    >>> picks = []
    >>> for _ in range(2):
    ...     position, gain = search.best()
    ...     search.take(np.array([position]))
    ...     picks.append(position)
    >>> sorted(picks)
    [2, 3]
    """

    def __init__(
        self,
        cover: KernelCover,
        candidates: np.ndarray,
        most_pairs: int = MOST_PAIRS,
    ) -> None:
        self.cover = cover
        pairs = self._collect(candidates, most_pairs)
        positions = self.positions
        by_position = np.argsort(positions)
        self._by_position = by_position
        self._sorted_positions = positions[by_position]
        self._rank_by_ties()
        self._index(pairs)

    def _rank_by_ties(self) -> None:
        """Bring the candidates into the order in which equals are picked."""
        positions = self.positions
        view = self.cover.kernel.view
        ties = view.ties[positions]
        by_ties = np.argsort(ties)
        self._positions_by_ties = positions[by_ties]
        # (n,) the place of each candidate in that order.
        ranks = np.empty(len(positions), np.int64)
        ranks[by_ties] = np.arange(len(positions))
        self._ranks = ranks

    def _index(self, pairs: CoverPairs) -> None:
        """Sum up the gains of candidates, and keep the pairs by candidate and by reference."""
        cover = self.cover
        count = len(self.positions)
        ranks = self._ranks[pairs.rows]
        # (n,) int64 in the order of ties, so that the first of equals is found first: what each
        # candidate adds, in units; -1 where it is taken.
        gains = np.zeros(count, np.int64)
        np.add.at(gains, ranks, cover.improvements(pairs))
        self._gains = gains
        # By candidate: its pairs stand together, from its start to the next one's.
        self._starts = np.searchsorted(pairs.rows, np.arange(count + 1))
        self._references = pairs.references.astype(np.int32)
        self._values = pairs.values.astype(np.int32)
        # The same by reference.
        self._lists = group_by_reference(
            ranks.astype(np.int32),
            self._references,
            self._values,
            len(cover.references),
        )

    def _collect(self, candidates: np.ndarray, most_pairs: int) -> CoverPairs:
        """The pairs of as many candidates as there is room for; `positions` are those."""
        rows = [np.empty(0, np.int64)]
        references = [np.empty(0, np.int64)]
        values = [np.empty(0, np.int64)]
        searched = [candidates[:0]]
        row_count = 0
        pair_count = 0
        for block in blocks(candidates):
            pairs = self.cover.pairs(block)
            rows.append(pairs.rows + row_count)
            references.append(pairs.references)
            values.append(pairs.values)
            searched.append(block)
            row_count += len(block)
            pair_count += len(pairs.rows)
            if pair_count >= most_pairs:
                # The order is random: those that are left out are like those that were searched.
                break
        #: (n,) the candidates that are searched
        self.positions = np.concatenate(searched)
        return CoverPairs(np.concatenate(rows), np.concatenate(references), np.concatenate(values))

    def best(self) -> tuple[int, float]:
        """(position, what it adds) of the candidate that adds most, the first by ties among equals;
        (-1, 0.0) where all are taken.
        """
        if len(self._gains) == 0:
            return -1, 0.0
        winner = self._gains.argmax()
        largest = self._gains[winner]
        if largest < 0:  # taken, as all others are
            return -1, 0.0
        position = self._positions_by_ties[winner]
        gain = float(largest) / GAIN_UNITS
        return int(position), gain

    def take(self, positions: np.ndarray) -> None:
        """These (n,) are taken, whoever took them: the cover rises, gains fall."""
        ordered = self._sorted_positions
        places = np.searchsorted(ordered, positions)
        is_beyond = places == len(ordered)
        places[is_beyond] = 0  # any place will do: what stands there is another position
        is_candidate = np.zeros(len(positions), bool)
        if len(ordered):
            # Only then is there anything at the places that were looked up.
            neighbours = ordered[places]
            is_candidate = neighbours == positions
        candidate_places = places[is_candidate]
        numbers = self._by_position[candidate_places]
        for number in numbers.tolist():
            self._take_candidate(number)
        others = positions[~is_candidate]
        for block in blocks(others):
            # The pairs of these are not kept: they are measured now.
            pairs = self.cover.pairs(block)
            self._raise(pairs.references, pairs.values)

    def _take_candidate(self, number: int) -> None:
        start, end = self._starts[number : number + 2]
        self._raise(self._references[start:end], self._values[start:end])
        # Only now, since the cover's rise has taken from this gain too.
        rank = self._ranks[number]
        self._gains[rank] = -1

    def _raise(self, references: np.ndarray, values: np.ndarray) -> None:
        cover_references(
            references.astype(np.int32),
            values.astype(np.int32),
            self.cover.covered,
            self.cover.weights,
            self._lists,
            self._gains,
        )

    def bytes_held(self) -> int:
        """Of the pairs."""
        return 16 * len(self._values)
