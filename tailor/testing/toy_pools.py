"""Made-up pools for tests of models: the class of an example can be told from its content."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from tailor.pools.base import Pool, Unreadable
from tailor.task import MultiClass, Task

WORDS = (
    "river",
    "stone",
    "cloud",
    "ember",
    "harbour",
    "meadow",
    "lantern",
    "copper",
)


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
        self._ids: list[str] = []
        self._grow_to(len(classes) - later)

    def _grow_to(self, size: int) -> None:
        for position in range(len(self._ids), size):
            self._ids.append(f"toy-{position}")

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def read(self, positions: Sequence[int]) -> list[Any]:
        self.reads += len(positions)
        return [self._read_one(position) for position in positions]

    def _read_one(self, position: int) -> Any:
        if position in self.unreadable:
            return Unreadable("made so")
        class_index = int(self.classes[position])
        return self.example(position, class_index)

    @abstractmethod
    def example(self, position: int, class_index: int) -> Any:
        """The example at a position, of its class."""

    def content_keys(self, positions: Sequence[int]) -> list[str] | None:
        if not self.keys:
            return None
        keys = []
        for position in positions:
            class_index = self.classes[position]
            keys.append(f"{self.kind}-{position}-{class_index}")
        return keys

    def refresh(self) -> int:
        before = len(self._ids)
        self._grow_to(len(self.classes))
        return len(self._ids) - before


class ToyVectors(ToyPool):
    """Eight numbers; the one of its class is larger."""

    kind = "vector"

    def example(self, position: int, class_index: int) -> np.ndarray:
        # By position, so that an example reads the same each time.
        rng = np.random.default_rng(position)
        vector = rng.normal(size=8)
        is_class = np.arange(8) == class_index
        vector += 3 * is_class
        return vector.astype(np.float32)


class ToyImages(ToyPool):
    """Dark noise of 16 x 16 or 17 pixels; four rows and a channel by class are bright."""

    kind = "image"

    def example(self, position: int, class_index: int) -> np.ndarray:
        rng = np.random.default_rng(position)
        # Two sizes: a model must not stack pictures as they come.
        width = 16 + position % 2
        shape = (16, width, 3)
        picture = rng.integers(0, 60, shape, np.uint8)
        # Four places and three channels tell twelve classes apart.
        top = 4 * (class_index % 4)
        channel = class_index % 3
        bright = picture[top : top + 4, :, channel]
        bright += 180
        return picture


class ToyTexts(ToyPool):
    """The word of its class, and two others."""

    kind = "text"

    def example(self, position: int, class_index: int) -> str:
        rng = np.random.default_rng(position)
        class_word = WORDS[class_index % len(WORDS)]
        others = rng.choice(WORDS, 2)
        return " ".join([class_word, *others])


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
    # In turn, not at random: the first examples are the ones that checks label.
    classes = np.arange(size) % task.size
    make = TOY_POOLS[kind]
    return make(classes, **options)


def toy_labels(task: Task, pool: ToyPool, positions: np.ndarray) -> np.ndarray:
    """Labels (n, K) float32 of positions (n,): the class; in a multi-label task the next one too,
    for every third example.
    """
    one_hot = np.eye(task.size, dtype=np.float32)
    classes = pool.classes[positions]
    labels = one_hot[classes]
    if isinstance(task, MultiClass):
        return labels
    is_third = np.asarray(positions) % 3 == 0
    class_alone = labels[is_third]
    next_class = np.roll(class_alone, 1, axis=1)
    labels[is_third] = np.maximum(class_alone, next_class)
    return labels
