"""A smaller pool of pictures from Parquet files, for trials with whole networks:

    python benchmarks/sample_pictures.py OUT TRAIN.parquet TEST.parquet [--rows N] [--test-rows N]
                                         [--label COLUMN] [--long-tail RATIO]

Writes OUT/train.parquet and OUT/test.parquet with the schema of the originals. --rows: a random
sample. --long-tail: the pool's largest class is so many times the smallest, as the dataset
"features" has it; the test set stays balanced as it was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tailor_experiments.datasets.features import long_tail_rows


def sample(table: pa.Table, rows: int | None) -> pa.Table:
    """So many rows at random, in their old order; all of them without a number."""
    if rows is None or rows >= len(table):
        return table
    order = np.random.default_rng(2).permutation(len(table))
    return table.take(np.sort(order[:rows]))


def with_long_tail(table: pa.Table, label: str, ratio: float) -> pa.Table:
    classes = table[label].to_numpy()
    one_hot = np.eye(classes.max() + 1, dtype=np.uint8)[classes]
    return table.take(long_tail_rows(one_hot, ratio, np.random.default_rng(0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--test-rows", type=int)
    parser.add_argument("--label", default="label")
    parser.add_argument("--long-tail", type=float)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    train = pq.read_table(options.train)
    if options.long_tail is not None:
        train = with_long_tail(train, options.label, options.long_tail)
    train = sample(train, options.rows)
    test = sample(pq.read_table(options.test), options.test_rows)
    for name, table in (("train", train), ("test", test)):
        pq.write_table(table, options.out / f"{name}.parquet", compression="zstd")
        print(f"{name}: {len(table)} rows")


if __name__ == "__main__":
    main()
