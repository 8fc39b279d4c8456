"""Synthetic pools for measuring selection: predictions as a half-trained network would give
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from tailor.errors import UnknownName
from tailor.strategies import NARROW
from tailor.strategies.costs import PoolShape
from tailor.task import MultiClass, MultiLabel, Task

#: rows drawn at a time
CHUNK = 65536
#: factors that the labels and features of a multi-label pool share
FACTORS = 8


@dataclass(frozen=True)
class PoolSize:
    """One benchmark size: the shape of a round of the paper's experiments."""

    name: str
    pool: int  # N
    classes: int  # K
    multilabel: bool
    batch: int  # B, and as many labelled to begin with
    features: int  # d, 0 for none
    families: tuple[str, ...]
    seed: int
    cover: bool = False  # whether the arms propose, and what covers the pool best is taken

    @property
    def task(self) -> Task:
        if self.multilabel:
            return MultiLabel(self.classes)
        return MultiClass(self.classes)

    @property
    def shape(self) -> PoolShape:
        """What the cost of opening arms depends on."""
        return PoolShape(
            self.pool,
            self.classes,
            self.features,
            labelled=self.batch,
        )


_SOFTMAX = tuple(NARROW["multi-class"])
_SIGMOID = tuple(NARROW["multi-label"])
#: the sizes by name
SIZES = {
    size.name: size
    for size in (
        # What somebody who labels texts in two classes waits for.
        PoolSize("reviews", 5_000, 2, False, 20, 384, _SOFTMAX, 106),
        PoolSize("cifar10", 50_000, 2, False, 2_000, 512, _SOFTMAX, 103),
        PoolSize("kuzushiji", 23_236, 49, False, 1_000, 512, _SOFTMAX, 104),
        PoolSize("coco", 82_081, 80, True, 5_000, 0, _SIGMOID, 102),
        PoolSize("celeba", 162_770, 40, True, 10_000, 0, _SIGMOID, 101),
        PoolSize("imagenet", 1_281_167, 1_000, False, 20_000, 512, _SOFTMAX, 105),
    )
}


def find_size(name: str) -> PoolSize:
    """The size of that name, or raises UnknownName."""
    if name not in SIZES:
        raise UnknownName("size", name, SIZES)
    return SIZES[name]


@dataclass(frozen=True)
class SyntheticPool:
    """A pool in memory."""

    probs: np.ndarray  # (N, K) float32
    labels: np.ndarray  # (N, K) uint8, for the simulation only
    features: np.ndarray | None  # (N, d) float32, not negative
    labelled: np.ndarray  # (B,) int64


class PoolChunk(NamedTuple):
    """Some rows of a pool."""

    rows: slice
    probs: np.ndarray  # (n, K) float32
    labels: np.ndarray  # (n, K) uint8
    features: np.ndarray | None  # (n, d) float32


#: n -> probabilities (n, K), labels (n, K), and the centre (n, d) of each example's features
DrawRows = Callable[[int], tuple[np.ndarray, np.ndarray, np.ndarray]]


def prevalence(classes: int, multilabel: bool) -> np.ndarray:
    """(K,) the share of each class: a long tail, as in the dataset that a size is named after."""
    if multilabel and classes <= 40:
        return np.geomspace(0.83, 0.02, classes)
    if multilabel:
        shares = np.geomspace(0.15, 0.0015, classes)
        shares[0] = 0.55
        return shares
    if classes == 2:
        return np.array([0.1, 0.9])
    # ImageNet's classes are nearly balanced; smaller datasets have a longer tail.
    if classes >= 500:
        rarest = 0.56
    else:
        rarest = 0.05
    shares = np.geomspace(1.0, rarest, classes)
    return shares / shares.sum()


def make_pool(size: PoolSize) -> SyntheticPool:
    """A pool drawn from one seeded generator.

    Multi-class: the logit of the true class is raised by 6 (70% of examples), by 2 with more noise
    (20%), or that of the next class by 4 instead (10%: the model is fooled); half the log share of
    a class is added. Multi-label: labels are thresholds on 8 shared factors plus noise; the logit
    is 3 times the distance to the threshold plus noise, three times as strong for a quarter of the
    examples. Features are rectified Gaussians around a centre that goes with the class, or with the
    factors.
    """
    labelled, chunks = draw_pool(size)
    shape = (size.pool, size.classes)
    probs = np.empty(shape, np.float32)
    labels = np.zeros(shape, np.uint8)
    features = None
    if size.features:
        feature_shape = (size.pool, size.features)
        features = np.empty(feature_shape, np.float32)
    for chunk in chunks:
        rows = chunk.rows
        probs[rows] = chunk.probs
        labels[rows] = chunk.labels
        if features is not None:
            features[rows] = chunk.features
    return SyntheticPool(
        probs=probs,
        labels=labels,
        features=features,
        labelled=labelled,
    )


def draw_pool(size: PoolSize) -> tuple[np.ndarray, Iterator[PoolChunk]]:
    """The labelled positions (B,), and the rest of make_pool's pool CHUNK rows at a time."""
    rng = np.random.default_rng(size.seed)
    labelled = rng.choice(size.pool, size.batch, replace=False)
    # The chunks are drawn while they are read: the same generator goes on.
    chunks = _draw_chunks(size, rng)
    return labelled, chunks


def _draw_chunks(size: PoolSize, rng: np.random.Generator) -> Iterator[PoolChunk]:
    if size.multilabel:
        draw = _sigmoid_rows(size, rng)
    else:
        draw = _softmax_rows(size, rng)
    for start in range(0, size.pool, CHUNK):
        stop = min(start + CHUNK, size.pool)
        count = stop - start
        probs, labels, centre = draw(count)
        features = None
        if size.features:
            # Drawn after the labels: another order would make another pool of the same seed.
            noise = _normal(rng, count, size.features)
            features = np.maximum(centre + noise, 0)
        yield PoolChunk(
            rows=slice(start, stop),
            probs=probs,
            labels=labels,
            features=features,
        )


def _normal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """(rows, columns) float32 standard normal numbers."""
    return rng.standard_normal((rows, columns), dtype=np.float32)


def _softmax_rows(size: PoolSize, rng: np.random.Generator) -> DrawRows:
    shares = prevalence(size.classes, False)
    steps = np.cumsum(shares)
    # Rounding may leave the last step below 1, and then a number above it would have no class.
    steps[-1] = 1.0
    directions = _normal(rng, size.classes, size.features)
    centres = 1.5 * directions
    log_shares = np.log(shares)
    bias = (0.5 * log_shares).astype(np.float32)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        class_luck = rng.random(n)
        true_class = np.searchsorted(steps, class_luck, side="right")
        raised = _draw_raised(rng, true_class, size.classes)
        noise = _normal(rng, n, size.classes)
        logits = raised.noise_scale[:, None] * noise + bias
        every_row = np.arange(n)
        # One class in each row: an index by row and class adds to each cell once.
        logits[every_row, raised.classes] += raised.by
        probs = _softmax_in_place(logits)
        one_hot = np.eye(size.classes, dtype=np.uint8)
        return (
            probs,
            one_hot[true_class],
            centres[true_class],
        )

    return draw


class _Raised(NamedTuple):
    """Of each example: the class whose logit is raised, by how much, and the scale of the noise."""

    classes: np.ndarray  # (n,) int64
    by: np.ndarray  # (n,) float32
    noise_scale: np.ndarray  # (n,) float32


def _draw_raised(rng: np.random.Generator, true_class: np.ndarray, class_count: int) -> _Raised:
    """Whether the model is sure of each example, in doubt, or fooled, as make_pool() says."""
    n = len(true_class)
    luck = rng.random(n)
    is_sure = luck < 0.7
    is_fooled = luck >= 0.9
    is_doubtful = ~is_sure & ~is_fooled
    next_class = (true_class + 1) % class_count
    by = np.full(n, 4.0, np.float32)
    by[is_sure] = 6.0
    by[is_doubtful] = 2.0
    noise_scale = np.ones(n, np.float32)
    noise_scale[is_doubtful] = 1.5
    classes = np.where(is_fooled, next_class, true_class)
    return _Raised(classes=classes, by=by, noise_scale=noise_scale)


def _softmax_in_place(logits: np.ndarray) -> np.ndarray:
    """(n, K) -> (n, K), the same array: a chunk of a thousand classes takes 250 MiB."""
    # Less the largest, which changes nothing in a softmax and keeps exp() finite.
    largest = logits.max(1, keepdims=True)
    np.exp(logits - largest, out=logits)
    logits /= logits.sum(1, keepdims=True)
    return logits


def _sigmoid_rows(size: PoolSize, rng: np.random.Generator) -> DrawRows:
    mixing = _normal(rng, FACTORS, size.classes)
    mixing /= np.linalg.norm(mixing, axis=0)
    directions = _normal(rng, FACTORS, size.features)
    spread = 0.5 * directions
    shares = prevalence(size.classes, True)
    # A standard normal number is above its threshold as often as the class is there.
    standard_normal = NormalDist()
    thresholds = []
    for share in shares:
        quantile = standard_normal.inv_cdf(1 - share)
        thresholds.append(quantile)
    threshold = np.array(thresholds, np.float32)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        factors = _normal(rng, n, FACTORS)
        class_noise = _normal(rng, n, size.classes)
        luck = rng.random(n)
        noise_scale = np.ones(n, np.float32)
        noise_scale[luck >= 0.75] = 3.0
        # 0.6 and 0.8: the sum has variance 1 again.
        mixed = factors @ mixing
        shared_part = np.float32(0.6) * mixed
        class_part = np.float32(0.8) * class_noise
        latent = shared_part + class_part
        noise = _normal(rng, n, size.classes)
        distance = latent - threshold
        scaled_noise = noise_scale[:, None] * noise
        logits = 3 * distance + scaled_noise
        is_positive = latent > threshold
        return (
            1 / (1 + np.exp(-logits)),
            is_positive.astype(np.uint8),
            factors @ spread,
        )

    return draw
