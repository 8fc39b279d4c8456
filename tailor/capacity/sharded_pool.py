"""A synthetic pool in shards on disk, and what the selector knows when its round begins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tailor.bandits.rewards import Diversity, LabelSummary
from tailor.capacity.synthetic_pool import CHUNK, PoolSize, draw_pool, prevalence
from tailor.compute import Predictions
from tailor.strategies import make_arms


@dataclass(frozen=True)
class ShardedPool:
    """A pool on disk. Of the labels only what the round needs is kept."""

    size: PoolSize
    predictions: Predictions
    labelled: np.ndarray  # (B,) int64
    labels: np.ndarray  # (B, K) uint8, of the labelled
    answers: Path | None = (
        None  # all labels as bits in a file, where arms use them as they come during the round
    )

    def answer(self, positions: list[int]) -> np.ndarray:
        """(n, K) uint8: the labels that an annotator would give."""
        assert self.answers is not None
        bits = np.load(self.answers, mmap_mode="r", allow_pickle=False)[positions]
        return np.unpackbits(bits, axis=1, count=self.size.classes)


def write_pool(size: PoolSize, folder: Path, shard: int = CHUNK) -> ShardedPool:
    """The pool of make_pool(size), its predictions as float16 shards in a folder; only CHUNK rows
    are in memory.

    shard: rows of a file; CHUNK is a multiple of it.
    """
    labelled, chunks = draw_pool(size)
    kept = np.empty((size.batch, size.classes), np.uint8)
    made = Predictions(str(folder), size.pool, size.classes, size.features, shard=shard).begin()
    answers = folder / "answers.bits" if hears_answers(size) else None
    if answers is not None:
        bits = np.lib.format.open_memmap(
            answers, "w+", np.uint8, (size.pool, -(-size.classes // 8))
        )
    for rows, probs, labels, features in chunks:
        for start in range(rows.start, rows.stop, shard):
            part = slice(start - rows.start, min(start + shard, rows.stop) - rows.start)
            made.write(start // shard, probs[part], None if features is None else features[part])
        here = (labelled >= rows.start) & (labelled < rows.stop)
        kept[here] = labels[labelled[here] - rows.start]
        if answers is not None:
            bits[rows] = np.packbits(labels, axis=1)
    return ShardedPool(size, made, labelled, kept, answers)


def hears_answers(size: PoolSize) -> bool:
    """Whether labels that come during the round change what some of its arms take."""
    return any(
        getattr(arm.strategy, "pending", "") == "revealed"
        for arm in make_arms(size.families, size.task)
    )


def experience(size: PoolSize) -> tuple[np.ndarray, np.ndarray]:
    """(weights (K,), labels (B, K) uint8 that the arms found in an earlier round).

    They come from the classes' shares and not from the pool: rounds over pools of any size have the
    same plan, so that what they take can be compared.
    """
    rng = np.random.default_rng(size.seed + 1)
    shares = prevalence(size.classes, size.multilabel)
    if size.multilabel:
        found = (rng.random((size.batch, size.classes)) < shares).astype(np.uint8)
    else:
        found = np.eye(size.classes, dtype=np.uint8)[rng.choice(size.classes, size.batch, p=shares)]
    summary = LabelSummary(size.task, 1, found.sum(0, dtype=np.float64), len(found))
    return Diversity().weights(summary), found
