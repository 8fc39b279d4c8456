"""CelebA from its attribute and partition texts, or Parquet: 40 attributes, multi-label."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools import open_pool
from tailor.task import MultiLabel
from tailor_experiments.datasets.base import Dataset, damaged, first_folder, need
from tailor_experiments.datasets.files import Files
from tailor_experiments.datasets.hugging import Split, column_names, is_parquet, open_splits
from tailor_experiments.datasets.parts import Part, assemble, with_subsets

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
_VALUES = "a count, 40 names, then a file with 40 values of 1 or -1 a line"
#: how a pool gives a column's true, whether it is stored as a boolean, a number or a text
_POSITIVE = ("true", "1", "True")


def celeba(path: str | os.PathLike[str], *, max_side: int | None = None) -> Dataset:
    """list_attr_celeba.txt, list_eval_partition.txt (also inside Anno and Eval) and
    img_align_celeba.

    The pool is partition 0, the test set partition 2. Parquet has the attributes as 40 columns, or
    as one of lists.
    """
    if is_parquet(path):
        return _from_parquet(path, max_side)
    root = first_folder(path, ("celeba", "CelebA"))
    attributes = _find(root, "Anno", "list_attr_celeba.txt")
    names, files, labels = _attributes(attributes)
    listing = _find(root, "Eval", "list_eval_partition.txt")
    partition = _partition_of_each(files, _partitions(listing))
    folder = _picture_folder(root)
    in_train = np.flatnonzero(partition == _TRAIN)
    in_test = np.flatnonzero(partition == _TEST)
    if len(in_train) == 0:
        raise InputError(
            f"list_eval_partition.txt puts no picture into partition 0: get it again from {WHERE}"
        )
    pictures = _Pictures(
        folder,
        files,
        labels,
        max_side,
    )
    train = pictures.part(in_train)
    test: Part | None = None
    if len(in_test):
        test = pictures.part(in_test)
    return assemble("celeba", MultiLabel(names), (train, test))


@dataclass(frozen=True)
class _Pictures:
    """All pictures with their attributes, in the order of the attributes' file."""

    folder: Path
    files: list[str]
    labels: np.ndarray
    max_side: int | None

    def part(self, rows: np.ndarray) -> Part:
        """Those in some rows."""
        names = [self.files[row] for row in rows]
        pool = Files(self.folder, names, max_side=self.max_side)
        return pool, self.labels[rows]


def _partition_of_each(files: list[str], partitions: dict[str, int]) -> np.ndarray:
    """(n,) the number of each file's partition; one without any is an error."""
    numbers = []
    for file in files:
        if file not in partitions:
            raise InputError(
                f"{file} has attributes and no line in list_eval_partition.txt: get both from "
                f"{WHERE}"
            )
        numbers.append(partitions[file])
    return np.array(numbers)


def _picture_folder(root: Path) -> Path:
    """The folder of the pictures, directly in root or inside Img."""
    name = "img_align_celeba"
    folder = root / name
    inside = root / "Img" / name
    if not folder.is_dir() and inside.is_dir():
        folder = inside
    need(
        folder,
        "202,599 pictures, 000001.jpg and on",
        WHERE,
        folder=True,
    )
    # Some archives have the folder twice.
    return first_folder(folder, (name,))


def _find(root: Path, inside: str, name: str) -> Path:
    # As the site has it; archives that others publish have all files in one folder.
    path = root / inside / name
    return path if path.is_file() else root / name


def _attributes(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    """Line 1 the count, line 2 the names, then a file and its values, 1 or -1, a line."""
    need(path, _VALUES, WHERE)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        count = int(lines[0])
        names = lines[1].split()
    except (ValueError, IndexError) as problem:
        raise damaged(
            path,
            problem,
            _VALUES,
            WHERE,
        ) from None
    rows = [line for line in lines[2:] if line.strip()]
    # A download that broke off ends between two lines as often as not.
    if len(rows) != count:
        broken_off = f"{len(rows)} lines of {count}"
        raise damaged(
            path,
            broken_off,
            _VALUES,
            WHERE,
        )
    files, labels = _values(rows, len(names), path)
    return names, files, labels


def _values(rows: list[str], count: int, path: Path) -> tuple[list[str], np.ndarray]:
    """The file and the labels of each line. count: of attributes."""
    files: list[str] = []
    labels = np.empty((len(rows), count), np.uint8)
    for number, line in enumerate(rows):
        file, *values = line.split()
        if not _are_attributes(values, count):
            # Two lines stand before these, and lines are counted from 1.
            raise _bad_line(
                path,
                number + 3,
                line,
                _VALUES,
            )
        files.append(file)
        labels[number] = [value == "1" for value in values]
    return files, labels


def _are_attributes(values: list[str], count: int) -> bool:
    """Whether there are so many, each 1 or -1."""
    if len(values) != count:
        return False
    return {"1", "-1"}.issuperset(values)


def _bad_line(
    path: Path,
    number: int,
    line: str,
    expected: str,
) -> InputError:
    problem = f"line {number}: {line[:40]!r}"
    return damaged(
        path,
        problem,
        expected,
        WHERE,
    )


def _partitions(path: Path) -> dict[str, int]:
    """file -> the number of its partition"""
    expected = "a file and its partition (0, 1 or 2) a line"
    need(path, expected, WHERE)
    text = path.read_text(encoding="utf-8", errors="replace")
    partitions: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        file, _, part = line.strip().partition(" ")
        # int() alone would take 3, and -1.
        if part.strip() not in ("0", "1", "2"):
            raise _bad_line(
                path,
                number,
                line,
                expected,
            )
        partitions[file] = int(part)
    return partitions


def _from_parquet(path: str | os.PathLike[str], max_side: int | None) -> Dataset:
    # The two layouts that the dataset is published in.
    if set(ATTRIBUTES) <= set(column_names(path)):
        return _from_columns(path, max_side)
    train, test = open_splits(path, max_side=max_side, tests=("test",))
    names = train.names or list(ATTRIBUTES)
    parts = with_subsets(train, test, names)
    return assemble("celeba", MultiLabel(names), parts)


def _from_columns(path: str | os.PathLike[str], max_side: int | None) -> Dataset:
    """One column of booleans (or 1 and -1) an attribute."""
    # A split has one column of labels; the others are read by _column_labels().
    first = ATTRIBUTES[0]
    train, test = open_splits(
        path,
        label=first,
        max_side=max_side,
        tests=("test",),
    )
    # A single file has no splits to choose from.
    train_options = {} if Path(path).is_file() else {"split": "train"}
    train_part = (train.pool, _column_labels(path, train, train_options))
    test_part: Part | None = None
    if test is not None:
        test_part = (test.pool, _column_labels(path, test, {"split": "test"}))
    return assemble("celeba", MultiLabel(ATTRIBUTES), (train_part, test_part))


def _column_labels(
    path: str | os.PathLike[str], split: Split, options: dict[str, Any]
) -> np.ndarray:
    """(n, 40) uint8. options: of open_pool, for this split."""
    labels = np.empty((len(split.pool), len(ATTRIBUTES)), np.uint8)
    for column, attribute in enumerate(ATTRIBUTES):
        pool = open_pool(
            path,
            kind="parquet",
            label=attribute,
            **options,
        )
        values = pool.labels() or {}
        for row, example_id in enumerate(split.pool.ids):
            value = values.get(example_id)
            labels[row, column] = value in _POSITIVE
    return labels
