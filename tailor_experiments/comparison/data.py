"""The data of an experiment: scikit-learn's digits, a dataset by name, or any pool with known
labels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError, UnknownName
from tailor.pools import open_pool
from tailor.pools.arrays import Arrays
from tailor.pools.base import Pool
from tailor.task import MultiClass, MultiLabel, Task
from tailor_experiments.datasets.base import Dataset
from tailor_experiments.datasets.hugging import TESTS, splits

DIGITS = ("digits", "digits-multilabel")
#: What can be said of a digit: from every second one to one in ten.
SAYINGS: dict[str, tuple[int, ...]] = {
    "even": (0, 2, 4, 6, 8),
    "prime": (2, 3, 5, 7),
    "with a loop": (0, 6, 8, 9),
    "above seven": (8, 9),
    "one or seven": (1, 7),
    "zero": (0,),
}


def load_data(data: dict[str, Any]) -> Dataset:
    """data: the keys of [data]."""
    name = data.get("name")
    options = data.get("options", {})
    if name in DIGITS:
        known = {"test"} if name == "digits-multilabel" else {"test", "classes"}
        for option in options:
            if option not in known:
                raise UnknownName(f"option of dataset {name!r},", option, known)
        return digits(name == "digits-multilabel", **options)
    if name is not None:
        from tailor_experiments.datasets import ALIASES, PAPER, load, registry, resolve

        try:
            resolve(name)
        except UnknownName:
            raise UnknownName(
                "dataset", name, {*DIGITS, *registry.names(), *PAPER, *ALIASES}
            ) from None
        if "path" not in data:
            raise InputError(f"dataset {name!r} needs path: the folder that holds its files")
        return load(name, data["path"], **options)
    return known_pool(data["path"], data.get("test"), **options)


def digits(multilabel: bool = False, *, classes: int = 4, test: float = 0.25) -> Dataset:
    """scikit-learn's digits as vectors: classes 0 to K-2 and the rest as one, or what can be said
    of a digit.
    """
    from sklearn.datasets import load_digits

    if not 2 <= classes <= 10:
        raise InputError(f"classes is {classes}: it must lie in 2 .. 10")
    if not 0 <= test < 1:
        raise InputError(f"test is {test}: it is the share kept for testing, in [0, 1)")
    found = load_digits()
    values = (found.data / 16).astype(np.float32)
    target = found.target
    if multilabel:
        task: Task = MultiLabel(list(SAYINGS))
        labels = np.stack([np.isin(target, members) for members in SAYINGS.values()], 1).astype(
            np.uint8
        )
    else:
        rest = [f"{classes - 1} to 9"] if classes < 10 else ["9"]
        task = MultiClass([*(str(k) for k in range(classes - 1)), *rest])
        labels = np.eye(classes, dtype=np.uint8)[np.minimum(target, classes - 1)]
    order = np.random.default_rng(0).permutation(len(target))
    cut = round(test * len(target))
    kept = np.sort(order[cut:])
    apart = np.sort(order[:cut])
    pool = Arrays(values[kept], ids=[f"digit-{i:04d}" for i in kept])
    name = "digits-multilabel" if multilabel else "digits"
    if cut == 0:
        return Dataset(name, task, pool, labels[kept])
    return Dataset(name, task, pool, labels[kept], Arrays(values[apart]), labels[apart])


def known_pool(
    path: str, test: str | None = None, *, classes: list[str] | None = None, **options: Any
) -> Dataset:
    """A pool that knows its labels; classes are found in them, in order of name, where they are not
    given.

    Of a folder of Parquet files with the splits "train" and "test" these two are the pool and the
    test set.
    """
    found = (
        splits(path) if test is None and "split" not in options and Path(path).is_dir() else set()
    )
    own = {**options, "split": "train"} if "train" in found else options
    pool = open_pool(path, **own)
    answers = _answers(pool, path)
    many = any(isinstance(a, (list, tuple)) for a in answers)
    flat = {str(c) for a in answers for c in (a if isinstance(a, (list, tuple)) else [a])}
    names = classes or sorted(flat)
    task: Task = MultiLabel(names) if many else MultiClass(names)
    labels = task.encode(answers).astype(np.uint8)
    name = Path(path).name
    second = next((split for split in TESTS if split in found), None) if "train" in found else None
    if test is None and second is None:
        return Dataset(name, task, pool, labels)
    apart = (
        open_pool(test, **options)
        if test is not None
        else open_pool(path, **{**options, "split": second})
    )
    return Dataset(
        name, task, pool, labels, apart, task.encode(_answers(apart, test or path)).astype(np.uint8)
    )


def _answers(pool: Pool, path: str) -> list[Any]:
    known = pool.labels()
    if known is None:
        raise InputError(
            f"{path} has no known labels: an experiment needs them; name their column in options"
        )
    lacking = [one for one in pool.ids if one not in known]
    if lacking:
        raise InputError(
            f"{path}: {len(lacking)} examples have no label, {lacking[0]!r} among them: leave "
            "them out"
        )
    return [known[one] for one in pool.ids]
