"""Features of pictures in Parquet files, with their labels, for experiments without the pictures.

    python benchmarks/embed.py OUT TRAIN.parquet TEST.parquet [--label COLUMN] [--rows N]
                               [--components D] [--device cpu]

Writes OUT/train.npz and OUT/test.npz as the dataset "features" reads them: `x` (N, d) int8 with the
`scale` (d,) of each feature, `y` and `classes`. --rows: a random sample of the pictures, a fifth as
many of the test set. --components: the first D principal components of the standardised features
of the training pictures, so that trials take less time. The backbone is EfficientNet-Lite0, as the
probe's default has it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from tailor.models.backbones import make_backbone
from tailor.pools import open_pool

BATCH = 64


def embed(
    path: Path,
    rows: int | None,
    device: str,
) -> tuple[np.ndarray, np.ndarray]:
    """(positions (n,), features (n, d) float32) of the pictures in a file, or of a sample."""
    pool = open_pool(path)
    backbone = make_backbone("efficientnet-lite0", pool, device)
    positions = np.arange(len(pool))
    if rows is not None:
        order = np.random.default_rng(0).permutation(len(pool))
        positions = np.sort(order[:rows])
    features = []
    for start in range(0, len(positions), BATCH):
        examples = pool.read(positions[start : start + BATCH].tolist())
        features.append(np.asarray(backbone.embed(examples), np.float32))
    return positions, np.concatenate(features)


def read_labels(path: Path, column: str) -> tuple[list, list[str]]:
    """The labels of a file as they stand there, and the class names in its metadata, if any."""
    import json

    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=[column])
    names: list[str] = []
    metadata = table.schema.metadata or {}
    if b"huggingface" in metadata:
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        feature = features.get(column, {})
        feature = feature.get("feature", feature)
        names = feature.get("names", [])
    return table[column].to_pylist(), names


def write(path: Path, features: np.ndarray, labels: list, names: list[str]) -> None:
    """Features to the precision of int8, which is more than a linear head can tell apart."""
    scale = np.abs(features).max(0) / 127
    scale[scale == 0] = 1
    if isinstance(labels[0], list):
        y = np.zeros((len(labels), len(names)), np.uint8)
        for row, classes in enumerate(labels):
            y[row, classes] = 1
    else:
        y = np.array(labels, np.int64)
    np.savez(
        path,
        x=np.round(features / scale).astype(np.int8),
        scale=scale.astype(np.float32),
        y=y,
        classes=np.array(names),
    )


class Components:
    """The first principal components of standardised features, turned at random.

    The probe standardises what it reads. Principal components as they are would lose their lengths
    by that, and with them all distances; after a random turn every one has about the same length.
    """

    def __init__(self, features: np.ndarray, count: int) -> None:
        """features: (N, d) of the pool, whose mean and deviation count for the test set too."""
        self.mean = features.mean(0)
        deviation = features.std(0)
        self.deviation = np.where(deviation > 0, deviation, 1)
        standardised = (features - self.mean) / self.deviation
        covariance = standardised.T @ standardised / len(features)
        _, vectors = np.linalg.eigh(covariance)  # the largest come last
        gaussian = np.random.default_rng(0).standard_normal((count, count))
        turn, _ = np.linalg.qr(gaussian)
        self.directions = vectors[:, -count:] @ turn

    def of(self, features: np.ndarray) -> np.ndarray:
        """(n, count) float32 of features (n, d)."""
        standardised = (features - self.mean) / self.deviation
        return (standardised @ self.directions).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--label", default="label")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--components", type=int)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for split, path in (("train", options.train), ("test", options.test)):
        rows = options.rows
        if rows is not None and split == "test":
            rows //= 5
        labels, names = read_labels(path, options.label)
        positions, features = embed(path, rows, options.device)
        chosen = [labels[position] for position in positions]
        if options.components is not None:
            if split == "train":
                components = Components(features, options.components)
            features = components.of(features)
        if not names:
            names = [str(number) for number in range(max(labels) + 1)]
        write(options.out / f"{split}.npz", features, chosen, names)
        print(f"{split}: {features.shape[0]} rows of {features.shape[1]} features")


if __name__ == "__main__":
    main()
