"""A synthetic pool in shards on disk, and what the selector knows when its round begins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tailor.bandits.rewards import Diversity, LabelSummary
from tailor.capacity.synthetic_pool import CHUNK, PoolSize, draw_pool, prevalence
from tailor.compute import Predictions
from tailor.strategies import make_strategy


@dataclass(frozen=True)
class ShardedPool:
    """A pool on disk. Of the labels only what the round needs is kept."""

    size: PoolSize
    predictions: Predictions
    labelled: np.ndarray  # (B,) int64
    labels: np.ndarray  # (B, K) uint8, of the labelled
    #: a file of all labels as bits, where arms use them as they come during the round
    answers: Path | None = None

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
    known_labels = np.empty((size.batch, size.classes), np.uint8)
    predictions = Predictions(
        str(folder),
        size.pool,
        size.classes,
        size.features,
        shard=shard,
    ).begin()
    answers: Path | None = None
    if hears_answers(size):
        answers = folder / "answers.bits"
        width = -(-size.classes // 8)
        bits = np.lib.format.open_memmap(answers, "w+", np.uint8, (size.pool, width))
    for chunk in chunks:
        first = chunk.rows.start
        for start in range(first, chunk.rows.stop, shard):
            stop = min(start + shard, chunk.rows.stop)
            part = slice(start - first, stop - first)
            features = None if chunk.features is None else chunk.features[part]
            predictions.write(start // shard, chunk.probs[part], features)
        in_chunk = (labelled >= first) & (labelled < chunk.rows.stop)
        known_labels[in_chunk] = chunk.labels[labelled[in_chunk] - first]
        if answers is not None:
            bits[chunk.rows] = np.packbits(chunk.labels, axis=1)
    return ShardedPool(size, predictions, labelled, known_labels, answers)


def hears_answers(size: PoolSize) -> bool:
    """Whether labels that come during the round change what some of its arms take."""
    return any(make_strategy(family).hears_answers for family in size.families)


def experience(size: PoolSize) -> tuple[np.ndarray, np.ndarray]:
    """(weights (K,), labels (B, K) uint8 that the arms found in an earlier round).

    They come from the classes' shares and not from the pool: rounds over pools of any size have the
    same plan, so that what they take can be compared.
    """
    rng = np.random.default_rng(size.seed + 1)
    shares = prevalence(size.classes, size.multilabel)
    if size.multilabel:
        draws = rng.random((size.batch, size.classes))
        labels = (draws < shares).astype(np.uint8)
    else:
        classes = rng.choice(size.classes, size.batch, p=shares)
        labels = np.eye(size.classes, dtype=np.uint8)[classes]
    counts = labels.sum(0, dtype=np.float64)
    summary = LabelSummary(size.task, 1, counts, len(labels))
    return Diversity().weights(summary), labels
