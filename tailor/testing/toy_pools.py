"""Made-up pools for tests of models: the class of an example can be told from its content."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from tailor.pools.base import Pool, Unreadable
from tailor.task import MultiClass, Task

WORDS = ("river", "stone", "cloud", "ember", "harbour", "meadow", "lantern", "copper")


class ToyPool(Pool):
    """Made-up examples, some of which can't be read or come only with refresh().

    classes     (n,) int, the class of each
    unreadable  positions that can't be read
    later       how many of them appear only with refresh()
    keys        whether the pool gives content keys

    reads       how many examples were read so far
    """

    def __init__(
        self,
        classes: np.ndarray,
        *,
        unreadable: Sequence[int] = (),
        later: int = 0,
        keys: bool = True,
    ) -> None:
        self.classes = np.asarray(classes)
        self.unreadable = frozenset(unreadable)
        self.keys = keys
        self.reads = 0
        self._ids = [f"toy-{position}" for position in range(len(classes) - later)]

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def read(self, positions: Sequence[int]) -> list[Any]:
        self.reads += len(positions)
        return [self._read_one(position) for position in positions]

    def _read_one(self, position: int) -> Any:
        if position in self.unreadable:
            return Unreadable("made so")
        return self.example(position, int(self.classes[position]))

    @abstractmethod
    def example(self, position: int, class_index: int) -> Any:
        """The example at a position, of its class."""

    def content_keys(self, positions: Sequence[int]) -> list[str] | None:
        if not self.keys:
            return None
        return [f"{self.kind}-{position}-{self.classes[position]}" for position in positions]

    def refresh(self) -> int:
        before = len(self._ids)
        self._ids += [f"toy-{position}" for position in range(before, len(self.classes))]
        return len(self._ids) - before


class ToyVectors(ToyPool):
    """Eight numbers; the one of its class is larger."""

    kind = "vector"

    def example(self, position: int, class_index: int) -> np.ndarray:
        rng = np.random.default_rng(position)
        is_class = np.arange(8) == class_index
        vector = rng.normal(size=8) + 3 * is_class
        return vector.astype(np.float32)


class ToyImages(ToyPool):
    """Dark noise of 16 x 16 or 17 pixels; four rows and a channel by class are bright."""

    kind = "image"

    def example(self, position: int, class_index: int) -> np.ndarray:
        rng = np.random.default_rng(position)
        shape = (16, 16 + position % 2, 3)
        picture = rng.integers(0, 60, shape, np.uint8)
        top = 4 * (class_index % 4)
        picture[top : top + 4, :, class_index % 3] += 180
        return picture


class ToyTexts(ToyPool):
    """The word of its class, and two others."""

    kind = "text"

    def example(self, position: int, class_index: int) -> str:
        rng = np.random.default_rng(position)
        own_word = WORDS[class_index % len(WORDS)]
        return " ".join([own_word, *rng.choice(WORDS, 2)])


TOY_POOLS: dict[str, type[ToyPool]] = {
    "vector": ToyVectors,
    "image": ToyImages,
    "text": ToyTexts,
}


def make_toy_pool(
    task: Task,
    kind: str,
    size: int = 40,
    **options: Any,
) -> ToyPool:
    """A pool of one kind, its classes in turn, so that a few examples hold them all.

    options  of ToyPool
    """
    return TOY_POOLS[kind](np.arange(size) % task.size, **options)


def toy_labels(task: Task, pool: ToyPool, positions: np.ndarray) -> np.ndarray:
    """Labels (n, K) float32 of positions (n,): the class; in a multi-label task the next one too,
    for every third example.
    """
    one_hot = np.eye(task.size, dtype=np.float32)
    labels = one_hot[pool.classes[positions]]
    if not isinstance(task, MultiClass):
        third = np.asarray(positions) % 3 == 0
        next_class = np.roll(labels[third], 1, axis=1)
        labels[third] = np.maximum(labels[third], next_class)
    return labels
