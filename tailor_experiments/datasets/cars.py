"""Stanford Cars from its development kit, or Parquet: the paper's ten labels, derived from the
class names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Pool
from tailor.task import MultiLabel
from tailor_experiments.datasets.base import Dataset, damaged, first_folder, need
from tailor_experiments.datasets.files import Files
from tailor_experiments.datasets.hugging import is_parquet, open_split, open_splits
from tailor_experiments.datasets.matlab import read_mat, records, scalar
from tailor_experiments.datasets.parts import assemble, split_in_two, with_subsets

WHERE = "https://ai.stanford.edu/~jkrause/cars/car_dataset.html"
#: the most frequent makes and body types, which the paper took
BRANDS = (
    "Audi",
    "BMW",
    "Chevrolet",
    "Dodge",
    "Ford",
)
TYPES = (
    "Convertible",
    "Coupe",
    "SUV",
    "Van",
)
#: cars up to this year have the tenth label
LAST_YEAR = 2009
LABELS = (*BRANDS, *TYPES, f"year<={LAST_YEAR}")
#: of the pictures, for training
SHARE = 0.8
#: folder of a part -> the file that lists its pictures
_PARTS = {
    "cars_train": "cars_train_annos.mat",
    "cars_test": "cars_test_annos_withlabels.mat",
}


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
        return _from_parquet(
            path,
            types,
            split,
            max_side,
        )
    root = first_folder(path, ("stanford_cars", "StanfordCars"))
    annotations = root / "cars_annos.mat"
    if annotations.is_file():
        names, files, classes = _whole(annotations)
    else:
        names, files, classes = _two_parts(root)
    pool = Files(root, files, max_side=max_side)
    labels_of_classes = label_matrix(names, types)
    return _drawn(pool, labels_of_classes[classes])


def label_matrix(names: Sequence[str], types: str = "paper") -> np.ndarray:
    """Class names, "Audi TTS Coupe 2012" -> (n, 10) uint8, the labels of each.

    >>> label_matrix(["Audi TTS Coupe 2012", "Dodge Sprinter Cargo Van 2009"]).tolist()
    [[1, 0, 0, 0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0, 1, 1]]
    """
    rows = [_labels_of(name, types) for name in names]
    labels = np.array(rows, np.uint8)
    return labels.reshape(-1, len(LABELS))


def _labels_of(name: str, types: str) -> list[bool]:
    """Whether each of LABELS is true of one class of cars."""
    words = name.split()
    # Names that are cut off would give labels without any error.
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
    return [*brands, *body_types, year <= LAST_YEAR]


def _drawn(pool: Pool, labels: np.ndarray) -> Dataset:
    """Four fifths for training, the others for testing."""
    parts = split_in_two((pool, labels), "cars", SHARE)
    return assemble("cars", MultiLabel(LABELS), parts)


def _names(path: Path) -> list[str]:
    """The classes by their number."""
    expected = "class_names, the 196 names"
    variables = read_mat(
        path,
        ("class_names",),
        expected,
        WHERE,
    )
    cells = variables["class_names"].reshape(-1)
    try:
        return [str(scalar(cell)) for cell in cells]
    except ValueError as problem:
        raise damaged(
            path,
            problem,
            expected,
            WHERE,
        ) from None


def _annotations(path: Path, file: str, names: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The file and the class (n,) of each picture. file: the field with the file's name."""
    expected = f"annotations with {file} and class"
    variables = read_mat(
        path,
        ("annotations",),
        expected,
        WHERE,
    )
    fields = (file, "class")
    rows = records(
        variables["annotations"],
        fields,
        path,
        WHERE,
    )
    files = [str(row[file]) for row in rows]
    numbers = [_class_number(row["class"]) for row in rows]
    classes = np.array(numbers)
    if len(rows) == 0 or classes.min() < 1 or classes.max() > len(names):
        raise damaged(
            path,
            "a class is missing or out of range",
            f"classes from 1 to {len(names)}",
            WHERE,
        )
    # MATLAB counts from 1.
    return files, classes - 1


def _class_number(value: Any) -> int:
    """0, which no class has, where it is not a number."""
    if isinstance(value, (int, float)):
        return int(value)
    return 0


def _whole(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    """Names of the classes, files and their classes, where one file lists all pictures."""
    names = _names(path)
    files, classes = _annotations(path, "relative_im_path", names)
    folder = Path(files[0]).parent
    need(
        path.parent / folder,
        "16,185 pictures",
        WHERE,
        folder=True,
    )
    return names, files, classes


def _two_parts(root: Path) -> tuple[list[str], list[str], np.ndarray]:
    """The same from the lists of the official training and test parts, one after the other."""
    kit = first_folder(root, ("devkit",))
    names = _names(kit / "cars_meta.mat")
    files: list[str] = []
    classes: list[np.ndarray] = []
    for part, listing in _PARTS.items():
        # The test part's labels are a download of their own, which may lie beside the kit.
        path = root / listing
        if not path.is_file():
            path = kit / listing
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
    path: str | os.PathLike[str],
    types: str,
    split: bool | None,
    max_side: int | None,
) -> Dataset:
    """The ten labels as they are, or the 196 classes by name; those official splits are put
    together first.
    """
    train, test = open_splits(path, max_side=max_side)
    names = train.names
    if names is None:
        raise InputError(
            f"the Parquet files in {path} do not name their classes: expected the ten labels or "
            "196 cars"
        )
    # As many names as there are labels: these are the labels.
    if len(names) != len(LABELS):
        return _from_class_names(
            path,
            names,
            types,
            max_side,
        )
    if split is None:
        split = test is None
    if split:
        labels = train.subsets(names)
        return _drawn(train.pool, labels)
    parts = with_subsets(train, test, names)
    return assemble("cars", MultiLabel(LABELS), parts)


def _from_class_names(
    path: str | os.PathLike[str],
    names: Sequence[str],
    types: str,
    max_side: int | None,
) -> Dataset:
    """All splits of a folder as one pool, which the paper's four fifths are drawn from."""
    split_name = "all" if Path(path).is_dir() else None
    whole = open_split(path, split_name, max_side=max_side)
    classes = whole.indices(names)
    labels_of_classes = label_matrix(names, types)
    return _drawn(whole.pool, labels_of_classes[classes])
