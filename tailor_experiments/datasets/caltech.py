"""Caltech-256 from its folders, or Parquet: the training four fifths of a fixed split."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Pool
from tailor_experiments.datasets.base import Dataset, first_folder, fixed_split, merge_classes
from tailor_experiments.datasets.files import Files, Subset
from tailor_experiments.datasets.hugging import is_parquet, open_splits
from tailor_experiments.datasets.multiclass import build

WHERE = "https://data.caltech.edu/records/nyy15-4j048 (256_ObjectCategories.tar)"
SHARE = 0.8
#: examples, and their classes (n,)
Part = tuple[Pool, np.ndarray]
Names = list[str]
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
    parts, names = _without_clutter(parts, all_names, clutter)
    train = parts[0]
    test = parts[1] if len(parts) > 1 else None
    if split is None:
        split = test is None
    if not split:
        return build("caltech256", names, len(names), train, test)
    if test is not None:
        raise InputError(f"{path} is split already: leave split=True out")
    pool, classes = train
    in_train, in_test = fixed_split(pool.ids, "caltech256", SHARE)
    train = (Subset(pool, in_train), classes[in_train])
    if len(in_test):
        test = (Subset(pool, in_test), classes[in_test])
    return build("caltech256", names, len(names), train, test)


def _from_parquet(path: str | os.PathLike[str], max_side: int | None) -> tuple[list[Part], Names]:
    """The training part and, where there is one, the test part."""
    train, test = open_splits(path, max_side=max_side)
    names = train.names
    if names is None:
        raise InputError(
            f"the Parquet files in {path} do not name their classes: expected the folders' names"
        )
    parts = [(train.pool, train.indices(names))]
    if test is not None:
        parts.append((test.pool, test.indices(names)))
    return parts, names


def _folders(path: str | os.PathLike[str], max_side: int | None) -> tuple[list[Part], Names]:
    """Pictures that lie directly in a class's folder; some folders of the archive hold strays
    deeper down.
    """
    root = first_folder(path, ("256_ObjectCategories", "caltech256/256_ObjectCategories"))
    folders = _class_folders(root)
    files: list[str] = []
    classes: list[int] = []
    for k, folder in enumerate(folders):
        pictures = []
        for name in os.listdir(folder):
            if Path(name).suffix.lower() == ".jpg":
                pictures.append(f"{folder.name}/{name}")
        if not pictures:
            raise InputError(
                f"missing pictures in {folder}: expected .jpg files; get them from {WHERE}"
            )
        files += sorted(pictures)
        classes += [k] * len(pictures)
    pool = Files(root, files, max_side=max_side)
    names = [folder.name for folder in folders]
    return [(pool, np.array(classes))], names


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
    numbers = {int(folder.name[:3]) for folder in folders}
    last = max(257, *numbers)
    gaps = [number for number in range(1, last + 1) if number not in numbers]
    if gaps:
        first_gap = root / f"{gaps[0]:03d}.*"
        raise InputError(f"missing folder {first_gap} ({len(gaps)} in all): get it from {WHERE}")
    return folders


def _without_clutter(
    parts: Sequence[Part],
    names: Sequence[str],
    rule: str,
) -> tuple[list[Part], Names]:
    """The rule for the clutter, which is the last class; data without it stay as they are."""
    last = len(names) - 1
    if rule == "keep" or _CLUTTER not in names[last].lower():
        return list(parts), list(names)
    changed: list[Part] = []
    if rule == "drop":
        for pool, classes in parts:
            rows = np.flatnonzero(classes != last)
            changed.append((Subset(pool, rows), classes[rows]))
        return changed, list(names[:last])
    for pool, classes in parts:
        merged, _ = merge_classes(classes, names, last)
        changed.append((pool, merged))
    merged_name = f"{names[last - 1]} or {_CLUTTER}"
    return changed, [*names[: last - 1], merged_name]
