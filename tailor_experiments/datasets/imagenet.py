"""ImageNet-1k from its folders and the development kit, or Parquet."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor_experiments.datasets.base import Dataset, checked_classes, damaged, first_folder, need
from tailor_experiments.datasets.files import Files
from tailor_experiments.datasets.hugging import is_parquet
from tailor_experiments.datasets.matlab import read_mat, records
from tailor_experiments.datasets.multiclass import build, from_parquet
from tailor_experiments.datasets.parts import Part

WHERE = "https://image-net.org/challenges/LSVRC/2012/ (an account is needed)"
SIZE = 1000
#: folders that may hold each, the official one first
_KIT = ("ILSVRC2012_devkit_t12", "devkit", ".")
_TRAIN = ("train", "ILSVRC2012_img_train")
_VALIDATION = ("val", "ILSVRC2012_img_val", "validation")
_SYNSETS = "synsets with ILSVRC2012_ID, WNID, words and num_children"


def imagenet(path: str | os.PathLike[str], *, max_side: int | None = None) -> Dataset:
    """train/n01440764/*.JPEG, the kit's data/meta.mat for the classes, val/ with the kit's ground
    truth for the test.

    Classes are in the order of the kit (ILSVRC2012_ID). The validation pictures may lie flat, as
    they come, or in folders by class; without a folder val there is no test set.
    """
    if is_parquet(path):
        return _from_parquet(path, max_side)
    root = first_folder(path, ("imagenet", "ILSVRC2012"))
    kit = _find_kit(root)
    codes, names = _classes(kit / "data" / "meta.mat")
    train_folder = _first_of(root, _TRAIN) or root / _TRAIN[0]
    need(
        train_folder,
        "a folder for each class, n01440764",
        WHERE,
        folder=True,
    )
    train = _by_folder(train_folder, codes, max_side)
    test: Part | None = None
    test_folder = _first_of(root, _VALIDATION)
    if test_folder is not None:
        test = _validation(
            test_folder,
            kit,
            codes,
            max_side,
        )
    return build(
        "imagenet",
        names,
        len(names),
        train,
        test,
    )


def _from_parquet(path: str | os.PathLike[str], max_side: int | None) -> Dataset:
    names = [f"class {number}" for number in range(SIZE)]
    return from_parquet(
        "imagenet",
        path,
        names,
        SIZE,
        max_side=max_side,
        # The classes of the test split are not published.
        tests=("validation", "valid", "val"),
    )


def _find_kit(root: Path) -> Path:
    """The folder of the development kit, or where it should be."""
    for name in _KIT:
        kit = root / name
        if (kit / "data" / "meta.mat").is_file():
            return kit
    return root / _KIT[0]


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
    leaves = _leaves(path)
    numbers = [number for number, _, _ in leaves]
    from_one = list(range(1, len(leaves) + 1))
    if numbers != from_one or len(leaves) < 2:
        raise damaged(
            path,
            "the classes are not numbered from 1 without gaps",
            _SYNSETS,
            WHERE,
        )
    codes = [str(code) for _, code, _ in leaves]
    # A synset has several words, "tench, Tinca tinca": the first is the common one.
    first_words = [str(words).split(",")[0].strip() for _, _, words in leaves]
    return codes, _unique_names(first_words, codes)


def _leaves(path: Path) -> list[tuple[int, Any, Any]]:
    """(number, code, words) of the synsets without children, by number."""
    variables = read_mat(
        path,
        ("synsets",),
        f"the development kit's {_SYNSETS}",
        WHERE,
    )
    rows = records(
        variables["synsets"],
        ("ILSVRC2012_ID", "WNID", "words", "num_children"),
        path,
        WHERE,
    )
    leaves = []
    try:
        for row in rows:
            if not row["num_children"]:
                number = int(row["ILSVRC2012_ID"])
                leaves.append((number, row["WNID"], row["words"]))
        return sorted(leaves)
    except (TypeError, ValueError) as problem:
        raise damaged(
            path,
            problem,
            _SYNSETS,
            WHERE,
        ) from None


def _unique_names(names: list[str], codes: list[str]) -> tuple[str, ...]:
    """With the code behind a name that several have: two classes are called "crane"."""
    counts = Counter(names)
    unique = []
    for name, code in zip(names, codes):
        if counts[name] > 1:
            unique.append(f"{name} ({code})")
        else:
            unique.append(name)
    return tuple(unique)


def _pictures(folder: Path) -> list[str]:
    """Names of the pictures in a folder, sorted."""
    names = []
    for name in os.listdir(folder):
        if name.lower().endswith((".jpeg", ".jpg")):
            names.append(name)
    return sorted(names)


def _by_folder(root: Path, codes: list[str], max_side: int | None) -> Part:
    """Pictures that lie in a folder for each class."""
    files: list[str] = []
    counts: list[int] = []
    for code in codes:
        names = _pictures_of_class(root / code)
        files += [f"{code}/{name}" for name in names]
        counts.append(len(names))
    numbers = np.arange(len(codes))
    classes = np.repeat(numbers, counts)
    return Files(root, files, max_side=max_side), classes


def _pictures_of_class(folder: Path) -> list[str]:
    need(
        folder,
        "the pictures of one class",
        WHERE,
        folder=True,
    )
    names = _pictures(folder)
    if not names:
        raise InputError(
            f"missing pictures in {folder}: expected .JPEG files; get them from {WHERE}"
        )
    return names


def _validation(
    root: Path,
    kit: Path,
    codes: list[str],
    max_side: int | None,
) -> Part:
    # Many sort the validation pictures into folders as the training pictures are.
    if (root / codes[0]).is_dir():
        return _by_folder(root, codes, max_side)
    truth = kit / "data" / "ILSVRC2012_validation_ground_truth.txt"
    numbers = _ground_truth(truth)
    # Sorted by name, which has the picture's number: line n of the truth is picture n's.
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


def _ground_truth(path: Path) -> np.ndarray:
    """(n,) int64, the number of each validation picture's class, from 1."""
    need(path, "the class of each validation picture, one number a line", WHERE)
    try:
        lines = path.read_text(encoding="ascii").split()
        return np.array(lines, dtype=np.int64)
    except ValueError as problem:
        raise damaged(
            path,
            problem,
            "one number a line",
            WHERE,
        ) from None
