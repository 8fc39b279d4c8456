"""How much of a class has been found, and how much is left to find."""

from __future__ import annotations

from dataclasses import dataclass

from tailor.insight.intervals import Share


@dataclass(frozen=True)
class SearchProgress:
    """Of one class: `found` labels, and what the hold-out says of the whole pool, with the ends of
    95% intervals.

    recall        found over what there is; None where the hold-out has none and nothing was found
    left          how many are expected among what has no label
    """

    found: int
    recall: float | None
    recall_lower: float
    recall_upper: float
    left: int
    left_lower: int
    left_upper: int


def search_progress(in_pool: Share, found: int, pool: int) -> SearchProgress:
    """in_pool: how many of a random hold-out are of the class; found: labels of it in all, the
    hold-out's too; pool: examples in all.
    """
    # At least what was found is there, whatever the hold-out says.
    total = max(found, in_pool.share * pool)
    fewest = max(found, in_pool.lower * pool)
    most = max(found, in_pool.upper * pool)
    recall = None
    if total > 0:
        recall = found / total
    recall_lower = 0.0
    if most > 0:
        recall_lower = found / most
    recall_upper = 1.0
    if fewest > 0:
        recall_upper = found / fewest
    return SearchProgress(
        found=found,
        recall=recall,
        recall_lower=recall_lower,
        recall_upper=recall_upper,
        left=round(total) - found,
        left_lower=round(fewest) - found,
        left_upper=round(most) - found,
    )
