"""Synthetic pools for measuring selection: predictions as a half-trained network would give
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tailor.errors import UnknownName
from tailor.task import MultiClass, MultiLabel, Task

#: rows drawn at a time
CHUNK = 65536


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

    @property
    def task(self) -> Task:
        return MultiLabel(self.classes) if self.multilabel else MultiClass(self.classes)


_SOFTMAX = ("galaxy", "confidence", "badge")
_SIGMOID = ("emal", "uncertainty", "galaxy")
SIZES = {
    size.name: size
    for size in (
        PoolSize("cifar10", 50_000, 2, False, 2_000, 512, _SOFTMAX, 103),
        PoolSize("kuzushiji", 23_236, 49, False, 1_000, 512, _SOFTMAX, 104),
        PoolSize("coco", 82_081, 80, True, 5_000, 0, _SIGMOID, 102),
        PoolSize("celeba", 162_770, 40, True, 10_000, 0, _SIGMOID, 101),
        PoolSize("imagenet", 1_281_167, 1_000, False, 20_000, 512, _SOFTMAX, 105),
    )
}


def find_size(name: str) -> PoolSize:
    if name not in SIZES:
        raise UnknownName("size", name, SIZES)
    return SIZES[name]


@dataclass(frozen=True)
class SyntheticPool:
    probs: np.ndarray  # (N, K) float32
    labels: np.ndarray  # (N, K) uint8, for the simulation only
    features: np.ndarray | None  # (N, d) float32, not negative
    labelled: np.ndarray  # (B,) int64


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
    shares = np.geomspace(1.0, 0.56 if classes >= 500 else 0.05, classes)
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
    probs = np.empty((size.pool, size.classes), np.float32)
    labels = np.zeros((size.pool, size.classes), np.uint8)
    features = np.empty((size.pool, size.features), np.float32) if size.features else None
    for rows, chunk_probs, chunk_labels, chunk_features in chunks:
        probs[rows], labels[rows] = chunk_probs, chunk_labels
        if features is not None:
            features[rows] = chunk_features
    return SyntheticPool(probs, labels, features, labelled)


#: rows, probabilities (n, K) float32, labels (n, K) uint8, features (n, d) float32 or None
Chunk = tuple[slice, np.ndarray, np.ndarray, np.ndarray | None]


def draw_pool(size: PoolSize) -> tuple[np.ndarray, Iterator[Chunk]]:
    """The labelled positions (B,), and the rest of make_pool's pool CHUNK rows at a time."""
    rng = np.random.default_rng(size.seed)
    labelled = rng.choice(size.pool, size.batch, replace=False)

    def chunks() -> Iterator[Chunk]:
        draw = (_sigmoid_chunks if size.multilabel else _softmax_chunks)(size, rng)
        for start in range(0, size.pool, CHUNK):
            rows = slice(start, min(start + CHUNK, size.pool))
            probs, labels, centre = draw(rows.stop - rows.start)
            features = None
            if size.features:
                noise = rng.standard_normal((len(centre), size.features), dtype=np.float32)
                features = np.maximum(centre + noise, 0)
            yield rows, probs, labels, features

    return labelled, chunks()


def _softmax_chunks(size: PoolSize, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    shares = prevalence(size.classes, False)
    steps = np.cumsum(shares)
    steps[-1] = 1.0
    centres = 1.5 * rng.standard_normal((size.classes, size.features), dtype=np.float32)
    bias = (0.5 * np.log(shares)).astype(np.float32)

    def chunk(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        true = np.searchsorted(steps, rng.random(n), side="right")
        luck = rng.random(n)
        raised = np.where(luck < 0.9, true, (true + 1) % size.classes)
        by = np.select([luck < 0.7, luck < 0.9], [6.0, 2.0], 4.0).astype(np.float32)
        noise = np.where((luck >= 0.7) & (luck < 0.9), 1.5, 1.0).astype(np.float32)
        logits = noise[:, None] * rng.standard_normal((n, size.classes), dtype=np.float32) + bias
        logits[np.arange(n), raised] += by
        np.exp(logits - logits.max(1, keepdims=True), out=logits)
        logits /= logits.sum(1, keepdims=True)
        return logits, np.eye(size.classes, dtype=np.uint8)[true], centres[true]

    return chunk


def _sigmoid_chunks(size: PoolSize, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    mixing = rng.standard_normal((8, size.classes), dtype=np.float32)
    mixing /= np.linalg.norm(mixing, axis=0)
    spread = 0.5 * rng.standard_normal((8, size.features), dtype=np.float32)
    edge = np.array(
        [NormalDist().inv_cdf(1 - p) for p in prevalence(size.classes, True)], np.float32
    )

    def chunk(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        factors = rng.standard_normal((n, 8), dtype=np.float32)
        own = rng.standard_normal((n, size.classes), dtype=np.float32)
        noise = np.where(rng.random(n) < 0.75, 1.0, 3.0).astype(np.float32)[:, None]
        latent = np.float32(0.6) * (factors @ mixing) + np.float32(0.8) * own
        logits = 3 * (latent - edge) + noise * rng.standard_normal(
            (n, size.classes), dtype=np.float32
        )
        return 1 / (1 + np.exp(-logits)), (latent > edge).astype(np.uint8), factors @ spread

    return chunk
