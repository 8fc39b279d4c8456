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
        train, test = open_splits(path, max_side=max_side)
        if train.names is None:
            raise InputError(
                f"the Parquet files in {path} do not name their classes: expected the folders' "
                "names"
            )
        parts = [(train.pool, train.indices(train.names))]
        if test is not None:
            parts.append((test.pool, test.indices(train.names)))
        parts, names = _without_clutter(parts, train.names, clutter)
        split = len(parts) == 1 if split is None else split
    else:
        pool, classes, folder_names = _folders(path, max_side)
        parts, names = _without_clutter([(pool, classes)], folder_names, clutter)
        split = True if split is None else split
    if not split:
        test_part = parts[1] if len(parts) > 1 else None
        return build("caltech256", names, len(names), parts[0], test_part)
    if len(parts) > 1:
        raise InputError(f"{path} is split already: leave split=True out")
    pool, classes = parts[0]
    chosen, rest = fixed_split(pool.ids, "caltech256", SHARE)
    train_part = (Subset(pool, chosen), classes[chosen])
    test_part = (Subset(pool, rest), classes[rest]) if len(rest) else None
    return build(
        "caltech256",
        names,
        len(names),
        train_part,
        test_part,
    )


def _folders(
    path: str | os.PathLike[str], max_side: int | None
) -> tuple[Pool, np.ndarray, list[str]]:
    """Pictures that lie directly in a class's folder; some folders of the archive hold strays
    deeper down.
    """
    root = first_folder(path, ("256_ObjectCategories", "caltech256/256_ObjectCategories"))
    folders = sorted(
        entry for entry in root.iterdir() if entry.is_dir() and _NUMBERED.match(entry.name)
    )
    if not folders:
        raise InputError(
            f"missing folders 001.ak47 to 257.clutter in {root}: get them from {WHERE}"
        )
    numbers = {int(folder.name[:3]) for folder in folders}
    gaps = sorted(set(range(1, max(257, *numbers) + 1)) - numbers)
    if gaps:
        raise InputError(
            f"missing folder {root / f'{gaps[0]:03d}.*'} ({len(gaps)} in all): get it from {WHERE}"
        )
    files: list[str] = []
    classes: list[int] = []
    for k, folder in enumerate(folders):
        pictures = sorted(
            name for name in os.listdir(folder) if Path(name).suffix.lower() == ".jpg"
        )
        if not pictures:
            raise InputError(
                f"missing pictures in {folder}: expected .jpg files; get them from {WHERE}"
            )
        files += [f"{folder.name}/{name}" for name in pictures]
        classes += [k] * len(pictures)
    pool = Files(root, files, max_side=max_side)
    return pool, np.array(classes), [folder.name for folder in folders]


def _without_clutter(
    parts: Sequence[tuple[Pool, np.ndarray]], names: Sequence[str], rule: str
) -> tuple[list[tuple[Pool, np.ndarray]], list[str]]:
    """The rule for the clutter, which is the last class; data without it stay as they are."""
    last = len(names) - 1
    if rule == "keep" or _CLUTTER not in names[last].lower():
        return list(parts), list(names)
    if rule == "drop":
        without: list[tuple[Pool, np.ndarray]] = []
        for pool, classes in parts:
            rows = np.flatnonzero(classes != last)
            without.append((Subset(pool, rows), classes[rows]))
        return without, list(names[:last])
    merged = [(pool, merge_classes(classes, names, last)[0]) for pool, classes in parts]
    return merged, [*names[: last - 1], f"{names[last - 1]} or {_CLUTTER}"]
