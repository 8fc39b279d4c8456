"""ImageNet-1k from its folders and the development kit, or Parquet."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np

from tailor.errors import InputError
from tailor_experiments.datasets.base import Dataset, checked_classes, damaged, first_folder, need
from tailor_experiments.datasets.files import Files
from tailor_experiments.datasets.hugging import is_parquet
from tailor_experiments.datasets.matlab import read_mat, records
from tailor_experiments.datasets.multiclass import build, from_parquet

WHERE = "https://image-net.org/challenges/LSVRC/2012/ (an account is needed)"
SIZE = 1000
_KIT = ("ILSVRC2012_devkit_t12", "devkit", ".")
_TRAIN = ("train", "ILSVRC2012_img_train")
_VALIDATION = ("val", "ILSVRC2012_img_val", "validation")


def imagenet(path: str | os.PathLike[str], *, max_side: int | None = None) -> Dataset:
    """train/n01440764/*.JPEG, the kit's data/meta.mat for the classes, val/ with the kit's ground
    truth for the test.

    Classes are in the order of the kit (ILSVRC2012_ID). The validation pictures may lie flat, as
    they come, or in folders by class; without a folder val there is no test set.
    """
    if is_parquet(path):
        names = tuple(f"class {k}" for k in range(SIZE))
        tests = ("validation", "valid", "val")  # the classes of the test split are not published
        return from_parquet(
            "imagenet",
            path,
            names,
            SIZE,
            max_side=max_side,
            tests=tests,
        )
    root = first_folder(path, ("imagenet", "ILSVRC2012"))
    kits = [root / name for name in _KIT if (root / name / "data" / "meta.mat").is_file()]
    kit = kits[0] if kits else root / _KIT[0]
    codes, names = _classes(kit / "data" / "meta.mat")
    train_folder = _first_of(root, _TRAIN)
    if train_folder is None:
        train_folder = need(
            root / _TRAIN[0],
            "a folder for each class, n01440764",
            WHERE,
            folder=True,
        )
    train = _by_folder(train_folder, codes, max_side)
    validation = _first_of(root, _VALIDATION)
    test = None if validation is None else _validation(validation, kit, codes, max_side)
    return build("imagenet", names, len(names), train, test)


def _first_of(root: Path, names: tuple[str, ...]) -> Path | None:
    """The first folder of these names that is there."""
    for name in names:
        if (root / name).is_dir():
            return root / name
    return None


def _classes(path: Path) -> tuple[list[str], tuple[str, ...]]:
    """Codes ("n01440764") and names in the order of their number; synsets with children are no
    classes.
    """
    expected = "synsets with ILSVRC2012_ID, WNID, words and num_children"
    synsets = read_mat(
        path,
        ("synsets",),
        f"the development kit's {expected}",
        WHERE,
    )["synsets"]
    rows = records(
        synsets,
        ("ILSVRC2012_ID", "WNID", "words", "num_children"),
        path,
        WHERE,
    )
    try:
        leaves = sorted(
            (int(row["ILSVRC2012_ID"]), row["WNID"], row["words"])
            for row in rows
            if not row["num_children"]
        )
    except (TypeError, ValueError) as problem:
        raise damaged(path, problem, expected, WHERE) from None
    if [number for number, _, _ in leaves] != list(range(1, len(leaves) + 1)) or len(leaves) < 2:
        raise damaged(
            path,
            "the classes are not numbered from 1 without gaps",
            expected,
            WHERE,
        )
    first_words = [str(words).split(",")[0].strip() for _, _, words in leaves]
    codes = [str(code) for _, code, _ in leaves]
    # Two classes are called "crane".
    counts = Counter(first_words)
    names = [
        f"{name} ({code})" if counts[name] > 1 else name for name, code in zip(first_words, codes)
    ]
    return codes, tuple(names)


def _pictures(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    return sorted(name for name in names if name.lower().endswith((".jpeg", ".jpg")))


def _by_folder(root: Path, codes: list[str], max_side: int | None) -> tuple[Files, np.ndarray]:
    names: list[str] = []
    counts: list[int] = []
    for code in codes:
        need(
            root / code,
            "the pictures of one class",
            WHERE,
            folder=True,
        )
        pictures = _pictures(root / code)
        if not pictures:
            raise InputError(
                f"missing pictures in {root / code}: expected .JPEG files; get them from {WHERE}"
            )
        names += [f"{code}/{picture}" for picture in pictures]
        counts.append(len(pictures))
    classes = np.repeat(np.arange(len(codes)), counts)
    return Files(root, names, max_side=max_side), classes


def _validation(
    root: Path, kit: Path, codes: list[str], max_side: int | None
) -> tuple[Files, np.ndarray]:
    if (root / codes[0]).is_dir():
        return _by_folder(root, codes, max_side)
    truth = kit / "data" / "ILSVRC2012_validation_ground_truth.txt"
    need(truth, "the class of each validation picture, one number a line", WHERE)
    try:
        numbers = np.array(truth.read_text(encoding="ascii").split(), dtype=np.int64)
    except ValueError as problem:
        raise damaged(truth, problem, "one number a line", WHERE) from None
    names = _pictures(root)
    if not names:
        raise InputError(
            f"missing pictures in {root}: expected ILSVRC2012_val_*.JPEG; get them from {WHERE}"
        )
    classes = checked_classes(
        numbers - 1,
        len(codes),
        len(names),
        truth,
        WHERE,
    )
    return Files(root, names, max_side=max_side), classes
