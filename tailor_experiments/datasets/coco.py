"""COCO 2014 from its instances JSON, or Parquet: which of 80 kinds of object a picture shows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.task import MultiLabel
from tailor_experiments.datasets.base import Dataset, damaged, first_folder, need
from tailor_experiments.datasets.files import Files
from tailor_experiments.datasets.hugging import is_parquet, open_splits

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
    names, pool, labels = _read(root, "train2014", max_side)
    if not _json(root, "val2014").is_file():
        return Dataset("coco", MultiLabel(names), pool, labels)
    others, test_pool, test_labels = _read(root, "val2014", max_side)
    if others != names:
        raise InputError(
            "instances_train2014.json and instances_val2014.json name other classes: get both "
            f"from {WHERE}"
        )
    return Dataset(
        "coco",
        MultiLabel(names),
        pool,
        labels,
        test_pool,
        test_labels,
    )


def _json(root: Path, part: str) -> Path:
    name = f"instances_{part}.json"
    path = root / name
    return path if path.is_file() else root / "annotations" / name


def _read(root: Path, part: str, max_side: int | None) -> tuple[list[str], Files, np.ndarray]:
    path = _json(root, part)
    need(path, f"the instances of {part}", WHERE)
    try:
        content: Any = json.loads(path.read_bytes())
        kinds = sorted((int(kind["id"]), str(kind["name"])) for kind in content["categories"])
        files = {int(image["id"]): str(image["file_name"]) for image in content["images"]}
        pairs = {
            (int(annotation["image_id"]), int(annotation["category_id"]))
            for annotation in content["annotations"]
        }
    except (ValueError, KeyError, TypeError) as problem:
        reason = f"no {problem}" if isinstance(problem, KeyError) else problem
        raise damaged(path, reason, _EXPECTED, WHERE) from None
    columns = {number: k for k, (number, _) in enumerate(kinds)}
    images = sorted({image for image, _ in pairs})
    rows = {image: row for row, image in enumerate(images)}
    if not images:
        raise damaged(path, "no annotation", _EXPECTED, WHERE)
    labels = np.zeros((len(images), len(kinds)), np.uint8)
    for image, kind in pairs:
        unlisted = None
        if image not in files:
            unlisted = f"image {image}"
        elif kind not in columns:
            unlisted = f"category {kind}"
        if unlisted is not None:
            raise damaged(
                path,
                f"an annotation of {unlisted}, which is not listed",
                _EXPECTED,
                WHERE,
            )
        labels[rows[image], columns[kind]] = 1
    folder = need(
        root / part,
        f"the pictures of {part}",
        WHERE,
        folder=True,
    )
    pictures = [files[image] for image in images]
    pool = Files(folder, pictures, max_side=max_side)
    names = [name for _, name in kinds]
    return names, pool, labels


def _from_parquet(path: str | os.PathLike[str], max_side: int | None) -> Dataset:
    train, test = open_splits(path, max_side=max_side)
    if train.names is None:
        raise InputError(
            f"the Parquet files in {path} do not name their classes: expected the 80 categories"
        )
    if test is None:
        return Dataset(
            "coco",
            MultiLabel(train.names),
            train.pool,
            train.subsets(train.names),
        )
    labels = train.subsets(train.names)
    return Dataset(
        "coco",
        MultiLabel(train.names),
        train.pool,
        labels,
        test.pool,
        test.subsets(train.names),
    )
