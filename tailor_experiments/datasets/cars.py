"""Stanford Cars from its development kit, or Parquet: the paper's ten labels, derived from the
class names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Pool
from tailor.task import MultiLabel
from tailor_experiments.datasets.base import Dataset, damaged, first_folder, fixed_split, need
from tailor_experiments.datasets.files import Files, Subset
from tailor_experiments.datasets.hugging import is_parquet, open_split, open_splits
from tailor_experiments.datasets.matlab import read_mat, records, scalar

WHERE = "https://ai.stanford.edu/~jkrause/cars/car_dataset.html"
BRANDS = ("Audi", "BMW", "Chevrolet", "Dodge", "Ford")
TYPES = ("Convertible", "Coupe", "SUV", "Van")
LAST_YEAR = 2009
LABELS = (*BRANDS, *TYPES, f"year<={LAST_YEAR}")
SHARE = 0.8


def cars(
    path: str | os.PathLike[str],
    *,
    types: str = "paper",
    split: bool | None = None,
    max_side: int | None = None,
) -> Dataset:
    """All 16,185 pictures; the pool is the training four fifths of a fixed split, 12,948.

    Either cars_annos.mat with the folder car_ims; or cars_train_annos.mat and
    cars_test_annos_withlabels.mat with cars_train and cars_test. Class names are in cars_meta.mat,
    or in cars_annos.mat.

    types  "paper": the type's word anywhere in the name, inside a longer word too ("Vantage" is
           then a Van, "Minivan" is not), which is what gives the paper's imbalance; "words": only
           as a word of its own
    split  draw the four fifths; by itself done unless Parquet files bring the ten labels and a test
           split
    """
    if types not in ("paper", "words"):
        raise InputError(f"types is {types!r}: give 'paper' or 'words'")
    if is_parquet(path):
        return _from_parquet(path, types, split, max_side)
    root = first_folder(path, ("stanford_cars", "StanfordCars"))
    annotations = root / "cars_annos.mat"
    if annotations.is_file():
        names, files, classes = _whole(annotations)
    else:
        names, files, classes = _two_parts(root, first_folder(root, ("devkit",)))
    pool = Files(root, files, max_side=max_side)
    labels_of_classes = label_matrix(names, types)
    return _drawn(pool, labels_of_classes[classes])


def label_matrix(names: Sequence[str], types: str = "paper") -> np.ndarray:
    """Class names, "Audi TTS Coupe 2012" -> (n, 10) uint8, the labels of each.

    >>> label_matrix(["Audi TTS Coupe 2012", "Dodge Sprinter Cargo Van 2009"]).tolist()
    [[1, 0, 0, 0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0, 1, 1]]
    """
    labels = np.zeros((len(names), len(LABELS)), np.uint8)
    for row, name in enumerate(names):
        words = name.split()
        if len(words) < 2 or not words[-1].isdecimal():
            raise InputError(
                f"class name {name!r} does not end in a year: expected make, model, type and year"
            )
        make = words[0]
        year = int(words[-1])
        # The paper's way: "Van" is in "Vantage" too.
        searched = words if types == "words" else name
        brands = [make == brand for brand in BRANDS]
        body_types = [body_type in searched for body_type in TYPES]
        labels[row] = [*brands, *body_types, year <= LAST_YEAR]
    return labels


def _drawn(pool: Pool, labels: np.ndarray) -> Dataset:
    in_train, in_test = fixed_split(pool.ids, "cars", SHARE)
    train = Subset(pool, in_train)
    task = MultiLabel(LABELS)
    if len(in_test) == 0:
        return Dataset("cars", task, train, labels[in_train])
    return Dataset(
        "cars",
        task,
        train,
        labels[in_train],
        Subset(pool, in_test),
        labels[in_test],
    )


def _names(path: Path) -> list[str]:
    expected = "class_names, the 196 names"
    content = read_mat(path, ("class_names",), expected, WHERE)
    cells = content["class_names"].reshape(-1)
    try:
        return [str(scalar(cell)) for cell in cells]
    except ValueError as problem:
        raise damaged(path, problem, expected, WHERE) from None


def _annotations(path: Path, file: str, names: Sequence[str]) -> tuple[list[str], np.ndarray]:
    expected = f"annotations with {file} and class"
    content = read_mat(path, ("annotations",), expected, WHERE)
    rows = records(content["annotations"], (file, "class"), path, WHERE)
    files = []
    numbers = []
    for row in rows:
        number = row["class"]
        if not isinstance(number, (int, float)):
            number = 0  # out of range
        numbers.append(int(number))
        files.append(str(row[file]))
    classes = np.array(numbers)
    if len(rows) == 0 or classes.min() < 1 or classes.max() > len(names):
        raise damaged(
            path,
            "a class is missing or out of range",
            f"classes from 1 to {len(names)}",
            WHERE,
        )
    return files, classes - 1


def _whole(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    names = _names(path)
    files, classes = _annotations(path, "relative_im_path", names)
    need(
        path.parent / Path(files[0]).parent,
        "16,185 pictures",
        WHERE,
        folder=True,
    )
    return names, files, classes


def _two_parts(root: Path, kit: Path) -> tuple[list[str], list[str], np.ndarray]:
    names = _names(kit / "cars_meta.mat")
    files: list[str] = []
    classes: list[np.ndarray] = []
    for part, name in (
        ("cars_train", "cars_train_annos.mat"),
        ("cars_test", "cars_test_annos_withlabels.mat"),
    ):
        path = root / name if (root / name).is_file() else kit / name
        part_files, part_classes = _annotations(path, "fname", names)
        need(
            root / part,
            "the pictures of this part",
            WHERE,
            folder=True,
        )
        files += [f"{part}/{file}" for file in part_files]
        classes.append(part_classes)
    return names, files, np.concatenate(classes)


def _from_parquet(
    path: str | os.PathLike[str], types: str, split: bool | None, max_side: int | None
) -> Dataset:
    """The ten labels as they are, or the 196 classes by name; those official splits are put
    together first.
    """
    train, test = open_splits(path, max_side=max_side)
    if train.names is None:
        raise InputError(
            f"the Parquet files in {path} do not name their classes: expected the ten labels or "
            "196 cars"
        )
    if len(train.names) != len(LABELS):
        split_name = "all" if Path(path).is_dir() else None
        whole = open_split(path, split_name, max_side=max_side)
        classes = whole.indices(train.names)
        labels_of_classes = label_matrix(train.names, types)
        return _drawn(whole.pool, labels_of_classes[classes])
    labels = train.subsets(train.names)
    if split or (split is None and test is None):
        return _drawn(train.pool, labels)
    if test is None:
        return Dataset("cars", MultiLabel(LABELS), train.pool, labels)
    return Dataset(
        "cars",
        MultiLabel(LABELS),
        train.pool,
        labels,
        test.pool,
        test.subsets(train.names),
    )
