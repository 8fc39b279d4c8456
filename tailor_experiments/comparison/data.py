"""The data of an experiment: scikit-learn's digits, a dataset by name, or any pool with known
labels.
"""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError, UnknownName
from tailor.pools import open_pool
from tailor.pools.arrays import Arrays
from tailor.pools.base import Pool
from tailor.task import MultiClass, MultiLabel, Task
from tailor_experiments.datasets.base import Dataset
from tailor_experiments.datasets.digits import load_digits
from tailor_experiments.datasets.features import load_features
from tailor_experiments.datasets.hugging import TESTS, splits
from tailor_experiments.datasets.parts import Part, Parts, assemble

#: of scikit-learn, which need no path
DIGITS = ("digits", "digits-multilabel")
#: features that were computed before (tailor_experiments.datasets.features)
FEATURES = "features"
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
    """The data of an experiment.

    data  the keys of [data] in its file: name, path, test, options
    """
    name = data.get("name")
    options = data.get("options", {})
    if name in DIGITS:
        return _load_digits(name, options)
    if name == FEATURES:
        return _load_features(data.get("path"), options)
    if name is not None:
        return _load_named(name, data.get("path"), options)
    # Without a name the path is any pool.
    return known_pool(data["path"], data.get("test"), **options)


def _load_features(path: str | None, options: dict[str, Any]) -> Dataset:
    if path is None:
        raise InputError(f"dataset {FEATURES!r} needs path: the folder of train.npz and test.npz")
    known_options = set(signature(load_features).parameters) - {"path"}
    _check_options(FEATURES, options, known_options)
    return load_features(path, **options)


def _check_options(name: str, options: dict[str, Any], known_options: set[str]) -> None:
    for option in options:
        if option not in known_options:
            raise UnknownName(f"option of dataset {name!r},", option, known_options)


def _load_digits(name: str, options: dict[str, Any]) -> Dataset:
    multilabel = name == "digits-multilabel"
    # A multi-label task has as many classes as there are SAYINGS.
    known_options = {"test"} if multilabel else {"test", "classes"}
    _check_options(name, options, known_options)
    return digits(multilabel, **options)


def _load_named(name: str, path: str | None, options: dict[str, Any]) -> Dataset:
    from tailor_experiments.datasets import ALIASES, PAPER, load, registry, resolve

    try:
        resolve(name)
    except UnknownName:
        # The loaders know only their own names: an error here must list all that may be given.
        known_names = {*DIGITS, FEATURES, *registry.names(), *PAPER, *ALIASES}
        raise UnknownName("dataset", name, known_names) from None
    if path is None:
        raise InputError(f"dataset {name!r} needs path: the folder that holds its files")
    return load(name, path, **options)


def digits(multilabel: bool = False, *, classes: int = 4, test: float = 0.25) -> Dataset:
    """scikit-learn's digits as vectors: classes 0 to K-2 and the rest as one, or what can be said
    of a digit.

    classes  K, of a multi-class task
    test     the share of the examples that is kept for testing, in [0, 1)
    """
    if not 2 <= classes <= 10:
        raise InputError(f"classes is {classes}: it must lie in 2 .. 10")
    if not 0 <= test < 1:
        raise InputError(f"test is {test}: it is the share kept for testing, in [0, 1)")
    pixels, target = load_digits()
    # Pixels run from 0 to 16.
    vectors = (pixels / 16).astype(np.float32)
    if multilabel:
        task, labels = _sayings_of(target)
    else:
        task, labels = _first_digits(target, classes)
    parts = _split_digits(vectors, labels, test)
    return assemble("digits-multilabel" if multilabel else "digits", task, parts)


def _split_digits(vectors: np.ndarray, labels: np.ndarray, test: float) -> Parts:
    """A random share for testing, and the others as the pool."""
    # Drawn with a seed of its own: the split is part of the data, the same in all trials.
    order = np.random.default_rng(0).permutation(len(vectors))
    test_size = round(test * len(vectors))
    in_pool = np.sort(order[test_size:])
    ids = [f"digit-{place:04d}" for place in in_pool]
    train = (Arrays(vectors[in_pool], ids=ids), labels[in_pool])
    if test_size == 0:
        return train, None
    in_test = np.sort(order[:test_size])
    return train, (Arrays(vectors[in_test]), labels[in_test])


def _sayings_of(target: np.ndarray) -> tuple[Task, np.ndarray]:
    """target (N,) digits -> the task, and labels (N, K) of what can be said of each."""
    columns = [np.isin(target, members) for members in SAYINGS.values()]
    labels = np.stack(columns, 1).astype(np.uint8)
    return MultiLabel(list(SAYINGS)), labels


def _first_digits(target: np.ndarray, classes: int) -> tuple[Task, np.ndarray]:
    """target (N,) digits -> the task, and labels (N, K) with all from K-1 on as one class."""
    names = [str(digit) for digit in range(classes - 1)]
    if classes == 10:
        names.append("9")
    else:
        names.append(f"{classes - 1} to 9")
    merged = np.minimum(target, classes - 1)
    one_hot = np.eye(classes, dtype=np.uint8)
    return MultiClass(names), one_hot[merged]


def known_pool(
    path: str,
    test: str | None = None,
    *,
    classes: list[str] | None = None,
    **options: Any,
) -> Dataset:
    """A pool that knows its labels; classes are found in them, in order of name, where they are not
    given.

    Of a folder of Parquet files with the splits "train" and "test" these two are the pool and the
    test set.

    test     the path of a test set
    options  of the pool, as open_pool takes them
    """
    pool_options = options
    test_options = options
    if test is None and "split" not in options:
        train_split, test_split = _official_splits(path)
        if train_split is not None:
            pool_options = {**options, "split": train_split}
        if test_split is not None:
            test = path
            test_options = {**options, "split": test_split}
    pool = open_pool(path, **pool_options)
    answers = _answers(pool, path)
    task = _task_of(answers, classes)
    train_part = (pool, _encoded(task, answers))
    test_part: Part | None = None
    if test is not None:
        test_pool = open_pool(test, **test_options)
        test_part = (test_pool, _encoded(task, _answers(test_pool, test)))
    return assemble(Path(path).name, task, (train_part, test_part))


def _encoded(task: Task, answers: list[Any]) -> np.ndarray:
    """(n, K) uint8"""
    return task.encode(answers).astype(np.uint8)


def _official_splits(path: str) -> tuple[str | None, str | None]:
    """The splits of a folder of Parquet files that are the pool and the test set."""
    if not Path(path).is_dir():
        return None, None
    names = splits(path)
    # Without a training split nobody has said which part is for testing.
    if "train" not in names:
        return None, None
    for split in TESTS:
        if split in names:
            return "train", split
    return "train", None


def _task_of(answers: list[Any], classes: list[str] | None) -> Task:
    """Multi-label where an answer is a list of classes."""
    names: set[str] = set()
    # One answer with several classes is enough: all others may happen to have just one.
    several = False
    for answer in answers:
        if isinstance(answer, (list, tuple)):
            several = True
            names.update(map(str, answer))
        else:
            names.add(str(answer))
    if not classes:
        # By name, so that the order of the examples makes no difference.
        classes = sorted(names)
    if several:
        return MultiLabel(classes)
    return MultiClass(classes)


def _answers(pool: Pool, path: str) -> list[Any]:
    """The known label of each example; all of them must have one."""
    known_labels = pool.labels()
    if known_labels is None:
        raise InputError(
            f"{path} has no known labels: an experiment needs them; name their column in options"
        )
    unlabelled = [example_id for example_id in pool.ids if example_id not in known_labels]
    if unlabelled:
        raise InputError(
            f"{path}: {len(unlabelled)} examples have no label, {unlabelled[0]!r} among them: "
            "leave them out"
        )
    return [known_labels[example_id] for example_id in pool.ids]
