"""Ranking arms over shards: each shard gives its best, and the best of those are the pool's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tailor.compute.shard_view import ShardView
from tailor.strategies.base import ScoreStrategy, lowest


class Ranked(NamedTuple):
    """The best of some rows, in order."""

    ids: np.ndarray  # (c,) int64, positions in the pool
    scores: np.ndarray  # (c,)
    ties: np.ndarray  # (c,) int64


class Lowest:
    """For each arm of a family its `count` lowest-scored free examples: exact, and no shard sends
    more than that.
    """

    def __init__(
        self, strategy: ScoreStrategy, classes: Sequence[int | None], counts: Sequence[int]
    ) -> None:
        self._strategy = strategy
        self._classes = list(classes)
        self._counts = list(counts)

    def __call__(self, part: ShardView) -> list[Ranked]:
        import torch

        found = []
        for (_, scores), count in zip(
            self._strategy.scores(part, self._classes), self._counts, strict=True
        ):
            ids = lowest(scores, count, part)
            best = scores[torch.from_numpy(ids).to(scores.device)].cpu().numpy()
            found.append(Ranked(ids + part.start, best, part.ties[ids]))
        return found

    def join(self, found: list[list[Ranked]]) -> list[Ranked]:
        return [_merge(arm, count) for arm, count in zip(zip(*found), self._counts, strict=True)]


def _merge(found: Sequence[Ranked], count: int) -> Ranked:
    ids, scores, ties = (np.concatenate(column) for column in zip(*found))
    order = np.lexsort((ties, scores))[:count]
    return Ranked(ids[order], scores[order], ties[order])
