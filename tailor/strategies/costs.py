"""What a family costs, in its own words: `tailor plan` and the benchmarks add these up."""

from __future__ import annotations

from dataclasses import dataclass

#: bytes of a number in a shard on disk, as it is written by default (float16)
STORED = 2


@dataclass(frozen=True)
class PoolShape:
    """What the cost of opening an arm depends on."""

    examples: int  # N
    classes: int  # K
    features: int  # d, 0 where there are none
    labelled: int

    @property
    def probability_bytes(self) -> int:
        """Of all probabilities in shards."""
        return STORED * self.examples * self.classes

    @property
    def feature_bytes(self) -> int:
        """Of all features in shards."""
        return STORED * self.examples * self.features


@dataclass(frozen=True)
class OpeningWork:
    """The least that opening a family's arms takes, whoever writes the code: what must be read, and
    what must be multiplied. Zero says that nobody has counted.
    """

    bytes_read: float = 0
    flops: float = 0


@dataclass(frozen=True)
class HeldMemory:
    """Memory that a family may take besides the predictions."""

    what: str  # what takes it, in words, as it stands in a sentence
    most: float  # bytes
