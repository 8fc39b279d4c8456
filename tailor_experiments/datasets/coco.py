"""COCO 2014 from its instances JSON, or Parquet: which of 80 kinds of object a picture shows."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.task import MultiLabel
from tailor_experiments.datasets.base import Dataset, damaged, first_folder, need
from tailor_experiments.datasets.files import Files
from tailor_experiments.datasets.hugging import is_parquet, open_splits
from tailor_experiments.datasets.parts import Part, assemble, with_subsets

WHERE = "https://cocodataset.org/#download (2014 Train images, 2014 Train/Val annotations)"
_EXPECTED = "JSON with the lists images, annotations and categories"


def coco(path: str | os.PathLike[str], *, max_side: int | None = None) -> Dataset:
    """annotations/instances_train2014.json with the folder train2014, and the same for val2014 as
    the test set.

    A picture without any annotation is left out: 82,081 of 82,783 remain, the paper's N. A label is
    positive where an object of that kind is annotated, crowds too. Categories are in the order of
    their ids.
    """
    if is_parquet(path):
        return _from_parquet(path, max_side)
    root = first_folder(path, ("coco", "COCO", "coco2014"))
    names, train = _read(root, "train2014", max_side)
    test: Part | None = None
    if _json(root, "val2014").is_file():
        test_names, test = _read(root, "val2014", max_side)
        # Columns of both parts must mean the same.
        if test_names != names:
            raise InputError(
                "instances_train2014.json and instances_val2014.json name other classes: get both "
                f"from {WHERE}"
            )
    return assemble("coco", MultiLabel(names), (train, test))


def _json(root: Path, part: str) -> Path:
    """Where the instances of a part are, or should be."""
    name = f"instances_{part}.json"
    path = root / name
    if path.is_file():
        return path
    return root / "annotations" / name


def _read(root: Path, part: str, max_side: int | None) -> tuple[list[str], Part]:
    """The names of the categories, and the pictures of a part with their labels."""
    path = _json(root, part)
    need(path, f"the instances of {part}", WHERE)
    instances = _read_instances(path)
    images = instances.annotated_images()
    if not images:
        raise damaged(
            path,
            "no annotation",
            _EXPECTED,
            WHERE,
        )
    labels = _labels(instances, images, path)
    folder = need(
        root / part,
        f"the pictures of {part}",
        WHERE,
        folder=True,
    )
    # In the order of the labels' rows.
    pictures = [instances.files[image] for image in images]
    pool = Files(folder, pictures, max_side=max_side)
    names = [name for _, name in instances.kinds]
    return names, (pool, labels)


@dataclass(frozen=True)
class _Instances:
    """What an instances file says.

    kinds  (id, name) of every category, by id
    files  id of an image -> its file's name
    pairs  (id of an image, id of a category) of every annotation, each pair once
    """

    kinds: list[tuple[int, str]]
    files: dict[int, str]
    pairs: set[tuple[int, int]]

    def annotated_images(self) -> list[int]:
        return sorted({image for image, _ in self.pairs})


def _read_instances(path: Path) -> _Instances:
    try:
        content: Any = json.loads(path.read_bytes())
        return _Instances(
            _kinds(content["categories"]), _files(content["images"]), _pairs(content["annotations"])
        )
    except KeyError as problem:
        # The text of a KeyError is the key, and nothing else.
        raise damaged(
            path,
            f"no {problem}",
            _EXPECTED,
            WHERE,
        ) from None
    except (ValueError, TypeError) as problem:
        raise damaged(
            path,
            problem,
            _EXPECTED,
            WHERE,
        ) from None


def _kinds(categories: Any) -> list[tuple[int, str]]:
    kinds = []
    for category in categories:
        number = int(category["id"])
        name = str(category["name"])
        kinds.append((number, name))
    # By id, which is the published order; the file's own may be any.
    return sorted(kinds)


def _files(images: Any) -> dict[int, str]:
    files = {}
    for image in images:
        number = int(image["id"])
        files[number] = str(image["file_name"])
    return files


def _pairs(annotations: Any) -> set[tuple[int, int]]:
    pairs = set()
    for annotation in annotations:
        image = int(annotation["image_id"])
        kind = int(annotation["category_id"])
        pairs.add((image, kind))
    return pairs


def _labels(instances: _Instances, images: list[int], path: Path) -> np.ndarray:
    """(n, K) uint8, in the order of images."""
    # Ids have gaps: they are neither rows nor columns.
    rows = {image: row for row, image in enumerate(images)}
    columns = {number: column for column, (number, _) in enumerate(instances.kinds)}
    labels = np.zeros((len(images), len(columns)), np.uint8)
    for image, kind in instances.pairs:
        if image not in instances.files:
            raise _unlisted(path, f"image {image}")
        if kind not in columns:
            raise _unlisted(path, f"category {kind}")
        labels[rows[image], columns[kind]] = 1
    return labels


def _unlisted(path: Path, what: str) -> InputError:
    problem = f"an annotation of {what}, which is not listed"
    return damaged(
        path,
        problem,
        _EXPECTED,
        WHERE,
    )


def _from_parquet(path: str | os.PathLike[str], max_side: int | None) -> Dataset:
    train, test = open_splits(path, max_side=max_side)
    names = train.names
    if names is None:
        raise InputError(
            f"the Parquet files in {path} do not name their classes: expected the 80 categories"
        )
    parts = with_subsets(train, test, names)
    return assemble("coco", MultiLabel(names), parts)
