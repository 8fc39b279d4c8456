"""The classes of a labelling task, and the forms in which a label may be given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailor.common.checks import check_array, check_list, check_text, shown
from tailor.common.plain_labels import plain_labels
from tailor.errors import InputError, UnknownName

#: |sum of a row of probabilities - 1| may be at most this, and so may what a probability is outside
#: [0, 1], by the precision (bytes a number) in which the row is stored.
SUM_TOLERANCE = {2: 2e-2, 4: 1e-3, 8: 1e-3}


@dataclass(frozen=True)
class Task(ABC):
    """The classes of a labelling task, in order: names, or how many there are.

    >>> task = MultiClass(["cat", "dog", "fox"])
    >>> task.label_rows(["fox", "cat"])
    array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """

    classes: tuple[str, ...]

    def __init__(self, classes: Sequence[str] | int) -> None:
        names = _names(classes)
        # The class is frozen.
        object.__setattr__(self, "classes", names)
        count = len(names)
        if count < self.fewest_classes:
            raise InputError(
                f"{self.kind} needs at least {self.fewest_classes} classes, got {count}: {names}"
            )
        for name in names:
            is_text = isinstance(name, str)
            if not is_text or not name:
                raise InputError(f"class names must be non-empty strings, got {name!r}")
        for name, times in Counter(names).items():
            if times > 1:
                raise InputError(f"class name {name!r} is given {times} times: names must differ")

    #: "multi-class" or "multi-label"
    kind = ""
    #: how a label may be given besides rows of 0 and 1, in words
    label_forms = ""
    fewest_classes = 1

    @property
    def size(self) -> int:
        """K, the number of classes."""
        return len(self.classes)

    def index(self, name: str) -> int:
        check_text(name, "class name")
        if name not in self.classes:
            raise UnknownName("class", name, self.classes)
        return self.classes.index(name)

    def label_rows(self, labels: Any) -> np.ndarray:
        """Labels in any form -> (n, K) float32 of 0 and 1, a new array.

        Multi-class: class names, class indices, or one-hot rows (n, K). Multi-label: lists of class
        names, one an example, or rows (n, K). In a list, an array, a torch tensor, a pandas Series,
        or a DataFrame whose columns have no names or those of the classes.

        Raises InputError for everything else.
        """
        plain = plain_labels(labels, self.classes)
        if isinstance(plain, list):
            return self.encode(plain)
        if plain.ndim == 2:
            return self.check_labels(plain)
        # Objects, texts and whole numbers: names or indices, one an example.
        may_be_classes = plain.dtype.kind in "OUiu"
        if may_be_classes and plain.ndim == 1:
            answers = plain.tolist()
            return self.encode(answers)
        raise InputError(
            f"labels are {plain.dtype} of shape {plain.shape}: give {self.label_forms}, or rows "
            f"(n, {self.size}) of 0 and 1"
        )

    def check_labels(self, labels: Any) -> np.ndarray:
        """labels (n, K) of 0 and 1, any dtype -> a float32 copy, or InputError."""
        array = check_array(labels, "labels")
        columns = None
        if array.ndim == 2:
            columns = array.shape[1]
        if columns != self.size:
            raise InputError(
                f"labels must have shape (n, {self.size}), one column a class, got {array.shape}; "
                "task.label_rows() makes them from class names or indices"
            )
        if array.dtype.kind not in "biuf":
            raise InputError(f"labels must be real numbers, got dtype {array.dtype}")
        is_right = (array == 0) | (array == 1)
        if not is_right.all():
            wrong_cells = np.argwhere(~is_right)
            row, column = wrong_cells[0]
            label = array[row, column]
            name = self.classes[column]
            raise InputError(f"label {label!r} in row {row}, class {name!r}: labels are 0 or 1")
        self._check_rows(array)
        return array.astype(np.float32)

    @abstractmethod
    def _check_rows(self, labels: np.ndarray) -> None: ...

    @abstractmethod
    def encode(self, answers: Sequence[Any]) -> np.ndarray:
        """Class names or indices, one entry an example -> labels (n, K) float32."""

    @abstractmethod
    def targets(self, labels: Any) -> np.ndarray:
        """Labels (n, K) of 0 and 1 -> what a classifier's fit() takes.

        Multi-class: (n,) int64 class indices. Multi-label: (n, K) int64.
        """

    @abstractmethod
    def predicted(self, probs: Any) -> Any:
        """probs (n, K), numpy or torch -> the model's own labels, (n, K) bool of the same
        library.
        """

    def _position(self, answer: Any) -> int:
        """The index of a class that is given by its name or by its index."""
        if isinstance(answer, str):
            return self.index(answer)
        if _is_whole(answer):
            index = int(answer)
            if 0 <= index < self.size:
                return index
        last = self.size - 1
        raise InputError(f"{answer!r} is neither a class name nor an index from 0 to {last}")


class MultiClass(Task):
    """Every example has exactly one class; a label is one-hot."""

    kind = "multi-class"
    label_forms = "class names or indices"
    fewest_classes = 2

    def _check_rows(self, labels: np.ndarray) -> None:
        sums = labels.sum(axis=1)
        wrong_rows = np.flatnonzero(sums != 1)
        if len(wrong_rows) == 0:
            return
        row = int(wrong_rows[0])
        count = int(sums[row])
        raise InputError(
            f"label in row {row} has {count} classes set: a multi-class label is "
            "one-hot (use MultiLabel where an example may have several classes or none)"
        )

    def encode(self, answers: Sequence[Any]) -> np.ndarray:
        answers = check_list(answers, "answers", "class names or indices")
        shape = (len(answers), self.size)
        labels = np.zeros(shape, np.float32)
        for row, answer in enumerate(answers):
            k = self._position(answer)
            labels[row, k] = 1
        return labels

    def targets(self, labels: Any) -> np.ndarray:
        checked = self.check_labels(labels)
        return checked.argmax(1)

    def predicted(self, probs: Any) -> Any:
        matrix = _check_matrix(probs)
        likeliest = matrix.argmax(1)[:, None]
        if isinstance(probs, np.ndarray):
            return np.arange(self.size) == likeliest
        import torch

        indices = torch.arange(self.size, device=probs.device)
        return indices == likeliest


class MultiLabel(Task):
    """Every example has any subset of the classes, the empty one too."""

    kind = "multi-label"
    label_forms = "lists of class names"

    def _check_rows(self, labels: np.ndarray) -> None:
        return

    def encode(self, answers: Sequence[Any]) -> np.ndarray:
        answers = check_list(answers, "answers", "lists of classes, one an example,")
        shape = (len(answers), self.size)
        labels = np.zeros(shape, np.float32)
        for row, subset in enumerate(answers):
            is_text = isinstance(subset, (str, bytes))
            if is_text or not isinstance(subset, Iterable):
                raise InputError(
                    f"answer {subset!r} in row {row}: a multi-label answer is a list of classes"
                )
            for answer in subset:
                k = self._position(answer)
                labels[row, k] = 1
        return labels

    def targets(self, labels: Any) -> np.ndarray:
        checked = self.check_labels(labels)
        return checked.astype(np.int64)

    def predicted(self, probs: Any) -> Any:
        matrix = _check_matrix(probs)
        return matrix > 0.5


def _names(classes: Any) -> tuple[Any, ...]:
    """The names that were given, or as many numbers as were asked for."""
    if _is_whole(classes):
        numbers = range(classes)
        return tuple(map(str, numbers))
    names = check_list(classes, "classes", "names (or how many there are)")
    return tuple(names)


def _is_whole(value: Any) -> bool:
    """Whether a value is a whole number. To Python a bool is one, too, but nobody means it."""
    if isinstance(value, bool):
        return False
    return isinstance(value, (int, np.integer))


def _check_matrix(probs: Any) -> Any:
    if getattr(probs, "ndim", None) != 2:
        raise InputError(f"probs is {shown(probs)}: an array or tensor (n, K) is needed")
    return probs
