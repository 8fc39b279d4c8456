"""Caltech-256 from its folders, or Parquet: the training four fifths of a fixed split."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tailor.errors import InputError
from tailor_experiments.datasets.base import Dataset, first_folder, merge_classes
from tailor_experiments.datasets.files import Files
from tailor_experiments.datasets.hugging import is_parquet, open_splits
from tailor_experiments.datasets.multiclass import build
from tailor_experiments.datasets.parts import Part, Parts, rows_of, split_in_two, with_classes

WHERE = "https://data.caltech.edu/records/nyy15-4j048 (256_ObjectCategories.tar)"
#: of the pictures, for training: the paper's N
SHARE = 0.8
Names = list[str]
#: in the name of the class of pictures that show none of the objects
_CLUTTER = "clutter"
#: the folder of a class, as 001.ak47
_NUMBERED = re.compile(r"[0-9]{3}\.")


def caltech256(
    path: str | os.PathLike[str],
    *,
    clutter: str = "merge",
    split: bool | None = None,
    max_side: int | None = None,
) -> Dataset:
    """Folders 001.ak47 to 257.clutter of 256_ObjectCategories: 30,607 pictures.

    The paper has K = 256 and N = 24,486, four fifths of all 30,607: the clutter is in the pool, and
    the K-class rule (the first 255 folders are kept, the rest are one class) puts it together with
    256.toad.

    clutter  "merge": as above; "drop": the 256 object classes alone; "keep": 257 classes
    split    draw the four fifths; by itself done unless Parquet files bring a test split of their
             own
    """
    if clutter not in ("merge", "drop", "keep"):
        raise InputError(f"clutter is {clutter!r}: give 'merge', 'drop' or 'keep'")
    if is_parquet(path):
        parts, all_names = _from_parquet(path, max_side)
    else:
        parts, all_names = _folders(path, max_side)
    (train, test), names = _without_clutter(parts, all_names, clutter)
    if split is None:
        split = test is None
    if split and test is not None:
        raise InputError(f"{path} is split already: leave split=True out")
    if split:
        train, test = split_in_two(train, "caltech256", SHARE)
    return build(
        "caltech256",
        names,
        len(names),
        train,
        test,
    )


def _from_parquet(path: str | os.PathLike[str], max_side: int | None) -> tuple[Parts, Names]:
    train, test = open_splits(path, max_side=max_side)
    names = train.names
    if names is None:
        raise InputError(
            f"the Parquet files in {path} do not name their classes: expected the folders' names"
        )
    return with_classes(train, test, names), names


def _folders(path: str | os.PathLike[str], max_side: int | None) -> tuple[Parts, Names]:
    """All pictures as one part, each in the class of its folder."""
    root = first_folder(path, ("256_ObjectCategories", "caltech256/256_ObjectCategories"))
    folders = _class_folders(root)
    files: list[str] = []
    classes: list[int] = []
    for number, folder in enumerate(folders):
        pictures = _pictures(folder)
        files += pictures
        classes += [number] * len(pictures)
    pool = Files(root, files, max_side=max_side)
    names = [folder.name for folder in folders]
    train = (pool, np.array(classes))
    return (train, None), names


def _pictures(folder: Path) -> list[str]:
    """Those that lie directly in a class's folder, as FOLDER/NAME; some folders of the archive
    hold strays deeper down.
    """
    pictures = []
    for name in os.listdir(folder):
        if Path(name).suffix.lower() == ".jpg":
            pictures.append(f"{folder.name}/{name}")
    if not pictures:
        raise InputError(
            f"missing pictures in {folder}: expected .jpg files; get them from {WHERE}"
        )
    # A folder is listed in whatever order the disk has it.
    return sorted(pictures)


def _class_folders(root: Path) -> list[Path]:
    """Those of all classes, in order; none may be missing."""
    folders = []
    for entry in sorted(root.iterdir()):
        if entry.is_dir() and _NUMBERED.match(entry.name):
            folders.append(entry)
    if not folders:
        raise InputError(
            f"missing folders 001.ak47 to 257.clutter in {root}: get them from {WHERE}"
        )
    gaps = _missing_numbers(folders)
    if gaps:
        first_gap = root / f"{gaps[0]:03d}.*"
        raise InputError(f"missing folder {first_gap} ({len(gaps)} in all): get it from {WHERE}")
    return folders


def _missing_numbers(folders: Sequence[Path]) -> list[int]:
    """Numbers from 1 to 257, or to the last folder's, that no folder begins with."""
    numbers = {int(folder.name[:3]) for folder in folders}
    last = max(257, *numbers)
    return sorted(set(range(1, last + 1)) - numbers)


def _without_clutter(parts: Parts, names: Sequence[str], rule: str) -> tuple[Parts, Names]:
    """The rule for the clutter, which is the last class; data without it stay as they are."""
    last = len(names) - 1
    if rule == "keep" or _CLUTTER not in names[last].lower():
        return parts, list(names)
    train, test = parts
    change = _drop_class if rule == "drop" else _merge_class
    changed_test: Part | None = None
    if test is not None:
        changed_test = change(test, names)
    changed = (change(train, names), changed_test)
    if rule == "drop":
        return changed, list(names[:last])
    merged_name = f"{names[last - 1]} or {_CLUTTER}"
    return changed, [*names[: last - 1], merged_name]


def _drop_class(part: Part, names: Sequence[str]) -> Part:
    """Without the examples of the last class."""
    _, classes = part
    last = len(names) - 1
    rows = np.flatnonzero(classes != last)
    return rows_of(part, rows)


def _merge_class(part: Part, names: Sequence[str]) -> Part:
    """With the examples of the last class in the one before it."""
    pool, classes = part
    last = len(names) - 1
    merged, _ = merge_classes(classes, names, last)
    return pool, merged
