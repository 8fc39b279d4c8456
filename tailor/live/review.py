"""Everything labelled so far, filtered and in pages."""

from __future__ import annotations

import numpy as np

from tailor.books import Books
from tailor.errors import InputError
from tailor.journal import NAMES, Journal
from tailor.live.items import unbiased
from tailor.round import NOBODY


def labelled(
    journal: Journal,
    probs: np.ndarray | None,
    *,
    klass: str | None,
    arm: str | None,
    annotator: str | None,
    disagrees: bool,
) -> np.ndarray:
    """Positions with a label that pass every filter, in the order of the pool. probs (N, K): what the model says now.
    disagrees: where a model that had not learned the label said otherwise (see `unbiased`)."""
    parts = []
    for books in (journal.books, journal.kept):
        where = books.labelled if arm is None else _of_arm(journal, books, _arm_number(journal, arm))
        if klass is not None:
            where = where[books.labels_of(where)[:, journal.task.index(klass)] > 0]
        if disagrees:
            where = where[_disagrees(journal, probs, where, books.labels_of(where))]
        parts.append(where)
    where = np.sort(np.concatenate(parts))
    if annotator is not None:
        mine = [journal.who.get(p, (None,))[0] == annotator or annotator in journal.votes.on(p) for p in where.tolist()]
        where = where[np.array(mine, bool)]
    return where


def _of_arm(journal: Journal, books: Books, arm: int | None) -> np.ndarray:
    where = books.labelled
    if arm is not None and arm >= 0:
        return where[books.arms_of(where) == arm]
    nobodys = where[books.arms_of(where) == NOBODY]  # or the reserve's, or of a random start, or told from outside
    asked = [journal.stories.get(p, (0, 0, None))[2] == arm for p in nobodys.tolist()]
    return nobodys[np.array(asked, bool)]


def _disagrees(journal: Journal, probs: np.ndarray | None, where: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) bool: whether a model that had not learned the label said something else."""
    said = [unbiased(journal, position, probs) for position in where.tolist()]
    known = np.array([row is not None for row in said], bool)
    if not known.any():
        return known
    rows = np.stack([row for row in said if row is not None])
    known[known] = (journal.task.predicted(rows) != (labels[known] > 0.5)).any(1)
    return known


def _arm_number(journal: Journal, name: str) -> int | None:
    """None: examples that nobody asked for, named ""."""
    if not name:
        return None
    numbers = {text: number for number, text in NAMES.items()}
    numbers.update((one.name, at) for at, one in enumerate(journal.loop.arms))
    if name not in numbers:
        raise InputError(f"no arm is called {name!r}: `tailor arms` lists them")
    return numbers[name]
