"""CelebA from its attribute and partition texts, or Parquet: 40 attributes, multi-label."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools import open_pool
from tailor.task import MultiLabel
from tailor_experiments.datasets.base import Dataset, damaged, first_folder, need
from tailor_experiments.datasets.files import Files
from tailor_experiments.datasets.hugging import Split, column_names, is_parquet, open_splits

WHERE = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html (aligned and cropped images, Anno, Eval)"
ATTRIBUTES = (
    "5_o_Clock_Shadow",
    "Arched_Eyebrows",
    "Attractive",
    "Bags_Under_Eyes",
    "Bald",
    "Bangs",
    "Big_Lips",
    "Big_Nose",
    "Black_Hair",
    "Blond_Hair",
    "Blurry",
    "Brown_Hair",
    "Bushy_Eyebrows",
    "Chubby",
    "Double_Chin",
    "Eyeglasses",
    "Goatee",
    "Gray_Hair",
    "Heavy_Makeup",
    "High_Cheekbones",
    "Male",
    "Mouth_Slightly_Open",
    "Mustache",
    "Narrow_Eyes",
    "No_Beard",
    "Oval_Face",
    "Pale_Skin",
    "Pointy_Nose",
    "Receding_Hairline",
    "Rosy_Cheeks",
    "Sideburns",
    "Smiling",
    "Straight_Hair",
    "Wavy_Hair",
    "Wearing_Earrings",
    "Wearing_Hat",
    "Wearing_Lipstick",
    "Wearing_Necklace",
    "Wearing_Necktie",
    "Young",
)
#: numbers of partitions; 1 is the validation set
_TRAIN = 0
_TEST = 2


def celeba(path: str | os.PathLike[str], *, max_side: int | None = None) -> Dataset:
    """list_attr_celeba.txt, list_eval_partition.txt (also inside Anno and Eval) and
    img_align_celeba.

    The pool is partition 0, the test set partition 2. Parquet has the attributes as 40 columns, or
    as one of lists.
    """
    if is_parquet(path):
        return _from_parquet(path, max_side)
    root = first_folder(path, ("celeba", "CelebA"))
    names, files, labels = _attributes(_find(root, "Anno", "list_attr_celeba.txt"))
    parts = _partitions(_find(root, "Eval", "list_eval_partition.txt"))
    for file in files:
        if file not in parts:
            raise InputError(
                f"{file} has attributes and no line in list_eval_partition.txt: get both from "
                f"{WHERE}"
            )
    folder = _picture_folder(root)
    part = np.array([parts[file] for file in files])
    train = np.flatnonzero(part == _TRAIN)
    test = np.flatnonzero(part == _TEST)
    if len(train) == 0:
        raise InputError(
            f"list_eval_partition.txt puts no picture into partition 0: get it again from {WHERE}"
        )
    task = MultiLabel(names)
    train_files = [files[i] for i in train]
    pool = Files(folder, train_files, max_side=max_side)
    if len(test) == 0:
        return Dataset("celeba", task, pool, labels[train])
    test_files = [files[i] for i in test]
    return Dataset(
        "celeba",
        task,
        pool,
        labels[train],
        Files(folder, test_files, max_side=max_side),
        labels[test],
    )


def _picture_folder(root: Path) -> Path:
    name = "img_align_celeba"
    folder = root / "Img" / name
    if (root / name).is_dir() or not folder.is_dir():
        folder = need(
            root / name,
            "202,599 pictures, 000001.jpg and on",
            WHERE,
            folder=True,
        )
    # Some archives have the folder twice.
    return first_folder(folder, (name,))


def _find(root: Path, inside: str, name: str) -> Path:
    path = root / inside / name
    return path if path.is_file() else root / name


def _attributes(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    """Line 1 the count, line 2 the names, then a file and its values, 1 or -1, a line."""
    expected = "a count, 40 names, then a file with 40 values of 1 or -1 a line"
    need(path, expected, WHERE)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        count = int(lines[0])
        names = lines[1].split()
    except (ValueError, IndexError) as problem:
        raise damaged(path, problem, expected, WHERE) from None
    rows = [line for line in lines[2:] if line.strip()]
    if len(rows) != count:
        raise damaged(
            path,
            f"{len(rows)} lines of {count}",
            expected,
            WHERE,
        )
    files: list[str] = []
    labels = np.empty((count, len(names)), np.uint8)
    for number, line in enumerate(rows):
        file, *values = line.split()
        if len(values) != len(names) or not {"1", "-1"}.issuperset(values):
            raise damaged(
                path,
                f"line {number + 3}: {line[:40]!r}",
                expected,
                WHERE,
            )
        files.append(file)
        labels[number] = [value == "1" for value in values]
    return names, files, labels


def _partitions(path: Path) -> dict[str, int]:
    expected = "a file and its partition (0, 1 or 2) a line"
    need(path, expected, WHERE)
    partitions: dict[str, int] = {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        file, _, part = line.strip().partition(" ")
        if part.strip() not in ("0", "1", "2"):
            raise damaged(
                path,
                f"line {number}: {line[:40]!r}",
                expected,
                WHERE,
            )
        partitions[file] = int(part)
    return partitions


def _from_parquet(path: str | os.PathLike[str], max_side: int | None) -> Dataset:
    if set(ATTRIBUTES) <= set(column_names(path)):
        return _from_columns(path, max_side)
    train, test = open_splits(path, max_side=max_side, tests=("test",))
    names = train.names or list(ATTRIBUTES)
    task = MultiLabel(names)
    labels = train.subsets(names)
    if test is None:
        return Dataset("celeba", task, train.pool, labels)
    return Dataset(
        "celeba",
        task,
        train.pool,
        labels,
        test.pool,
        test.subsets(names),
    )


def _from_columns(path: str | os.PathLike[str], max_side: int | None) -> Dataset:
    """One column of booleans (or 1 and -1) an attribute."""
    first = ATTRIBUTES[0]
    train, test = open_splits(
        path,
        label=first,
        max_side=max_side,
        tests=("test",),
    )

    task = MultiLabel(ATTRIBUTES)
    train_options = {} if Path(path).is_file() else {"split": "train"}
    labels = _column_labels(path, train, train_options)
    if test is None:
        return Dataset("celeba", task, train.pool, labels)
    return Dataset(
        "celeba",
        task,
        train.pool,
        labels,
        test.pool,
        _column_labels(path, test, {"split": "test"}),
    )


def _column_labels(
    path: str | os.PathLike[str],
    split: Split,
    options: dict[str, Any],
) -> np.ndarray:
    """(n, 40) uint8. options: of open_pool, for this split."""
    labels = np.empty((len(split.pool), len(ATTRIBUTES)), np.uint8)
    for k, attribute in enumerate(ATTRIBUTES):
        pool = open_pool(path, kind="parquet", label=attribute, **options)
        values = pool.labels() or {}
        for row, example_id in enumerate(split.pool.ids):
            value = values.get(example_id)
            labels[row, k] = value in ("true", "1", "True")
    return labels
