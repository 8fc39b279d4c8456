"""What lies nearest to direct's cuts, in memory or over shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailor.selection.pool_view import PoolView, tie_keys
from tailor.strategies.direct_cut import ClassCut, class_scores
from tailor.strategies.ranking import RankedRows, merge_ranked, ranked_among

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Depths:
    """How many examples a class is asked for."""

    above: int = 0
    below: int = 0
    in_doubt: int = 0


@dataclass(frozen=True)
class AroundCut:
    """Free examples around a class's cut, as many as were asked for or all there are."""

    above: RankedRows  # at or above the cut, the lowest score first
    below: RankedRows  # below it, the highest score first
    in_doubt: RankedRows  # between the last leading positive and the first trailing negative


class RankAroundCuts:
    """A job for the shards, and for a view in memory: what lies around the cut of each class.

    Ranks within some rows are no larger than ranks within all: so the nearest of every part hold
    the nearest of the pool. O(N) for each class; nothing is sorted but what is found.

    cuts    of the classes
    depths  how many are wanted of each class
    """

    def __init__(self, cuts: list[ClassCut], depths: list[Depths]) -> None:
        self._cuts = cuts
        self._depths = depths

    def __call__(self, part: PoolView) -> list[AroundCut]:
        # On a GPU they travel once for all classes.
        ties = part.to_device(part.ties)
        is_free = ~part.closed
        classes = [cut.klass for cut in self._cuts]
        columns = part.columns(classes)
        answers = []
        for (_, column), cut, depths in zip(columns, self._cuts, self._depths, strict=True):
            scores = class_scores(part, column)
            answers.append(_around(part, scores, ties, is_free, cut, depths))
        return answers

    def join(self, answers: list[list[AroundCut]]) -> list[AroundCut]:
        by_class = zip(*answers)
        joined = []
        for parts, depths in zip(by_class, self._depths, strict=True):
            around = AroundCut(
                above=merge_ranked([part.above for part in parts], depths.above),
                below=merge_ranked([part.below for part in parts], depths.below),
                in_doubt=merge_ranked([part.in_doubt for part in parts], depths.in_doubt),
            )
            joined.append(around)
        return joined


def _around(
    part: PoolView,
    scores: torch.Tensor,
    ties: torch.Tensor,
    is_free: torch.Tensor,
    cut: ClassCut,
    depths: Depths,
) -> AroundCut:
    """What of a part lies around one cut. scores, ties and is_free are (N,)."""
    is_above = scores >= cut.score
    is_in_doubt = (scores >= cut.bottom) & (scores <= cut.top)
    # A hash of seed and position, mixed with one of the class: as good as drawing lots, the same
    # over shards, and in another order for each class, so that arms do not take each other's.
    (class_hash,) = tie_keys(1, 0, cut.klass).tolist()
    lots = ties ^ class_hash
    return AroundCut(
        above=ranked_among(is_free & is_above, scores, depths.above, part),
        below=ranked_among(is_free & ~is_above, -scores, depths.below, part),
        in_doubt=ranked_among(is_free & is_in_doubt, lots, depths.in_doubt, part),
    )
