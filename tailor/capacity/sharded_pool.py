"""A synthetic pool in shards on disk, and what the selector knows when its round begins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tailor.bandits.rewards import Diversity, LabelSummary
from tailor.capacity.synthetic_pool import CHUNK, PoolChunk, PoolSize, draw_pool, prevalence
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
        # Mapped, not read: only the rows asked for come into memory.
        all_bits = np.load(self.answers, mmap_mode="r", allow_pickle=False)
        bits = all_bits[positions]
        return np.unpackbits(bits, axis=1, count=self.size.classes)


def write_pool(size: PoolSize, folder: Path, shard: int = CHUNK) -> ShardedPool:
    """The pool of make_pool(size), its predictions as float16 shards in a folder; only CHUNK rows
    are in memory.

    shard: rows of a file; CHUNK is a multiple of it.
    """
    labelled, chunks = draw_pool(size)
    labels = np.empty((size.batch, size.classes), np.uint8)
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
        bits = np.lib.format.open_memmap(
            answers,
            "w+",
            np.uint8,
            (size.pool, width),
        )
    for chunk in chunks:
        _write_chunk(predictions, chunk, shard)
        rows = chunk.rows
        in_chunk = (labelled >= rows.start) & (labelled < rows.stop)
        rows_in_chunk = labelled[in_chunk] - rows.start
        labels[in_chunk] = chunk.labels[rows_in_chunk]
        if answers is not None:
            bits[rows] = np.packbits(chunk.labels, axis=1)
    return ShardedPool(
        size,
        predictions,
        labelled,
        labels,
        answers,
    )


def _write_chunk(predictions: Predictions, chunk: PoolChunk, shard: int) -> None:
    """The shards of `shard` rows that the chunk consists of."""
    first = chunk.rows.start
    count = len(chunk.probs)
    # A chunk begins where a shard does: CHUNK is a multiple of its rows.
    first_number = first // shard
    for number, start in enumerate(range(0, count, shard), first_number):
        part = slice(start, start + shard)
        probs = chunk.probs[part]
        features = None
        if chunk.features is not None:
            features = chunk.features[part]
        predictions.write(number, probs, features)


def hears_answers(size: PoolSize) -> bool:
    """Whether labels that come during the round change what some of its arms take."""
    for family in size.families:
        strategy = make_strategy(family)
        if strategy.hears_answers:
            return True
    return False


def experience(size: PoolSize) -> tuple[np.ndarray, np.ndarray]:
    """(weights (K,), labels (B, K) uint8 that the arms found in an earlier round).

    They come from the classes' shares and not from the pool: rounds over pools of any size have the
    same plan, so that what they take can be compared.
    """
    rng = np.random.default_rng(size.seed + 1)
    shares = prevalence(size.classes, size.multilabel)
    if size.multilabel:
        draws = rng.random((size.batch, size.classes))
        is_positive = draws < shares
        labels = is_positive.astype(np.uint8)
    else:
        classes = rng.choice(size.classes, size.batch, p=shares)
        one_hot = np.eye(size.classes, dtype=np.uint8)
        labels = one_hot[classes]
    counts = labels.sum(0, dtype=np.float64)
    summary = LabelSummary(
        size.task,
        1,
        counts,
        len(labels),
    )
    weights = Diversity().weights(summary)
    return weights, labels
