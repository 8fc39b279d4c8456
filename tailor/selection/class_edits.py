"""A change of the class list in the middle of a run, and what becomes of everything that has a
column a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailor.errors import InputError
from tailor.task import MultiClass, Task


@dataclass(frozen=True)
class ClassEdit:
    """From one class list to another: the old class k is now the class place[k]; several may have
    become one.

    >>> change = merged(MultiClass(["cat", "puppy", "dog"]), "puppy", "dog")
    >>> change.after.classes, change.place
    (('cat', 'dog'), (0, 1, 1))
    """

    before: Task
    after: Task
    place: tuple[int, ...]  # (K,)

    def __post_init__(self) -> None:
        is_known = all(0 <= k < self.after.size for k in self.place)
        if len(self.place) != self.before.size or not is_known:
            raise InputError(
                f"places {self.place} do not lead from {self.before.size} classes to "
                f"{self.after.size}"
            )

    @property
    def only_names(self) -> bool:
        """Whether every class stays where it was, alone."""
        unmoved = tuple(range(self.after.size))
        return self.before.size == self.after.size and self.place == unmoved

    def labels(self, labels: np.ndarray) -> np.ndarray:
        """(n, K) of 0 and 1 -> (n, K'): a class that several became is there where one of them
        was.
        """
        return self._join_columns(labels, np.maximum)

    def shares(self, rows: np.ndarray) -> np.ndarray:
        """(n, K) probabilities -> (n, K'). A new class gets 0: nobody knew of it."""
        join = np.add if isinstance(self.after, MultiClass) else np.maximum
        return self._join_columns(rows, join)

    def weights(self, v: np.ndarray) -> np.ndarray:
        """v (K,) -> (K',), in [-1/K', 1/K'] again. A new class is worth the most, as one that was
        never found.
        """
        if self.only_names:
            return v.copy()  # to the last bit
        scaled = v * self.before.size / self.after.size
        total = np.zeros(self.after.size)
        np.add.at(total, list(self.place), scaled)
        members = np.bincount(self.place, minlength=self.after.size)
        mean = total / np.maximum(members, 1)
        return np.where(members > 0, mean, 1 / self.after.size)

    def indices(self, classes: Sequence[int]) -> list[int]:
        """Class indices of before -> those of after, ascending, each once."""
        return sorted({self.place[k] for k in classes})

    def _join_columns(self, rows: np.ndarray, join: np.ufunc) -> np.ndarray:
        joined = np.zeros((len(rows), self.after.size), rows.dtype)
        for old, new in enumerate(self.place):
            joined[:, new] = join(joined[:, new], rows[:, old])
        return joined


def added(task: Task, name: str) -> ClassEdit:
    """A new class joins at the end."""
    after = type(task)((*task.classes, name))
    return ClassEdit(task, after, tuple(range(task.size)))


def renamed(task: Task, old: str, new: str) -> ClassEdit:
    """The class `old` is called `new`. Raises UnknownName where there is no such class."""
    index = task.index(old)
    names = list(task.classes)
    names[index] = new
    after = type(task)(tuple(names))
    return ClassEdit(task, after, tuple(range(task.size)))


def merged(task: Task, old: str, into: str) -> ClassEdit:
    """The class `old` becomes part of `into` and is gone.

    Raises UnknownName where there is no such class, InputError where too few would be left.
    """
    if task.index(old) == task.index(into):
        raise InputError(f"{old!r} can't be merged into itself: name two classes")
    names = tuple(name for name in task.classes if name != old)
    if len(names) < task.fewest_classes:
        raise InputError(
            f"{old!r} can't be merged into {into!r}: {task.kind} needs {task.fewest_classes} "
            "classes"
        )
    place = tuple(names.index(into if name == old else name) for name in task.classes)
    return ClassEdit(task, type(task)(names), place)
