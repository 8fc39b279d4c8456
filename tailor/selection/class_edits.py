"""A change of the class list in the middle of a run, and what becomes of everything that has a
column a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailor.errors import InputError
from tailor.task import MultiClass, Task

#: the place of a class that is no more, and part of no other
GONE = -1


@dataclass(frozen=True)
class ClassEdit:
    """From one class list to another: the old class k is now the class place[k]; several may have
    become one, and one may be GONE.

    >>> change = merged(MultiClass(["cat", "puppy", "dog"]), "puppy", "dog")
    >>> change.after.classes, change.place
    (('cat', 'dog'), (0, 1, 1))
    """

    before: Task
    after: Task
    place: tuple[int, ...]  # (K,)

    def __post_init__(self) -> None:
        size_before = self.before.size
        size_after = self.after.size
        places = {GONE, *range(size_after)}
        is_known = places.issuperset(self.place)
        is_complete = len(self.place) == size_before
        if not is_complete or not is_known:
            raise InputError(
                f"places {self.place} do not lead from {size_before} classes to {size_after}"
            )

    @property
    def only_names(self) -> bool:
        """Whether every class stays where it was, alone."""
        if self.before.size != self.after.size:
            return False
        unmoved = tuple(range(self.after.size))
        return self.place == unmoved

    def labels(self, labels: np.ndarray) -> np.ndarray:
        """(n, K) of 0 and 1 -> (n, K'): a class that several became is there where one of them
        was.
        """
        return self._join_columns(labels, np.maximum)

    def shares(self, rows: np.ndarray) -> np.ndarray:
        """(n, K) probabilities -> (n, K'). A new class gets 0: nobody knew of it."""
        if isinstance(self.after, MultiClass):
            shares = self._join_columns(rows, np.add)
            return self._with_share_of_gone(rows, shares)
        # Classes that do not exclude each other: a sum could be beyond 1.
        return self._join_columns(rows, np.maximum)

    def weights(self, v: np.ndarray) -> np.ndarray:
        """v (K,) -> (K',), in [-1/K', 1/K'] again. A new class is worth the most, as one that was
        never found.
        """
        if self.only_names:
            return v.copy()  # to the last bit
        size = self.after.size
        place = np.array(self.place)
        stays = place != GONE
        place = place[stays]
        # Weights are bounded by 1/K, and K is another now.
        scaled = v[stays] * self.before.size / size
        total = np.zeros(size)
        # Unlike total[place] += scaled, this adds up classes that became one.
        np.add.at(total, place, scaled)
        members = np.bincount(place, minlength=size)
        # A new class has no members: its mean is not used, and must not divide by 0.
        divisors = np.maximum(members, 1)
        mean = total / divisors
        is_old = members > 0
        largest = 1 / size
        return np.where(is_old, mean, largest)

    def indices(self, classes: Sequence[int]) -> list[int]:
        """Class indices of before -> those of after, ascending, each once."""
        new_classes = {self.place[k] for k in classes}
        new_classes.discard(GONE)
        return sorted(new_classes)

    def _with_share_of_gone(self, rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """shares (n, K'), in which what rows (n, K) gave to a class that is gone goes to all
        others, in proportion.
        """
        is_gone = np.array(self.place) == GONE
        lost = rows[:, is_gone].sum(1)
        left = shares.sum(1)
        # Other rows stay what they are, to the last bit.
        needs_more = (lost > 0) & (left > 0)
        shares[needs_more] /= left[needs_more, None]
        return shares

    def _join_columns(self, rows: np.ndarray, join: np.ufunc) -> np.ndarray:
        size = self.after.size
        shape = (len(rows), size)
        joined = np.zeros(shape, rows.dtype)
        for old, new in enumerate(self.place):
            if new == GONE:
                continue
            old_column = rows[:, old]
            new_column = joined[:, new]
            # Into the column itself, which is a view of the matrix.
            join(new_column, old_column, out=new_column)
        return joined


def added(task: Task, name: str) -> ClassEdit:
    """A new class joins at the end."""
    names = (*task.classes, name)
    after = type(task)(names)
    unmoved = tuple(range(task.size))
    return ClassEdit(task, after, unmoved)


def removed(task: Task, name: str) -> ClassEdit:
    """The class `name` is no more. Whoever calls has seen that nothing is labelled as one.

    Raises UnknownName where there is no such class, InputError where too few would be left.
    """
    index = task.index(name)
    names = list(task.classes)
    names.remove(name)
    if len(names) < task.fewest_classes:
        raise InputError(
            f"{name!r} can't be removed: {task.kind} needs {task.fewest_classes} classes"
        )
    place = []
    for k in range(task.size):
        if k == index:
            place.append(GONE)
        elif k < index:
            place.append(k)
        else:
            place.append(k - 1)
    after = type(task)(tuple(names))
    return ClassEdit(task, after, tuple(place))


def renamed(task: Task, old: str, new: str) -> ClassEdit:
    """The class `old` is called `new`. Raises UnknownName where there is no such class."""
    index = task.index(old)
    names = list(task.classes)
    names[index] = new
    after = type(task)(tuple(names))
    unmoved = tuple(range(task.size))
    return ClassEdit(task, after, unmoved)


def merged(task: Task, old: str, into: str) -> ClassEdit:
    """The class `old` becomes part of `into` and is gone.

    Raises UnknownName where there is no such class, InputError where too few would be left.
    """
    if task.index(old) == task.index(into):
        raise InputError(f"{old!r} can't be merged into itself: name two classes")
    names = list(task.classes)
    names.remove(old)
    if len(names) < task.fewest_classes:
        raise InputError(
            f"{old!r} can't be merged into {into!r}: {task.kind} needs {task.fewest_classes} "
            "classes"
        )
    place = []
    for name in task.classes:
        if name == old:
            name = into
        place.append(names.index(name))
    after = type(task)(tuple(names))
    return ClassEdit(task, after, tuple(place))
