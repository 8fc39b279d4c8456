"""An index of the records of a text file: where each lies, without its text."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from tailor.pools.records import Record


class IndexEntry(NamedTuple):
    """What is remembered of one record: its bytes start .. end in the file, a digest of them, the
    number of its first line, and why it can't be used ("" where it can).
    """

    start: int
    end: int
    digest: int
    line: int
    problem: str

    @classmethod
    def of(cls, record: Record, problem: str) -> IndexEntry:
        return cls(
            start=record.start,
            end=record.end,
            digest=content_digest(record.content),
            line=record.line,
            problem=problem,
        )


class RecordIndex:
    """Index entries by position, 32 bytes each."""

    def __init__(self) -> None:
        self.starts = array("q")
        self.ends = array("q")
        self.digests = array("Q")
        self.lines = array("q")
        self.problems: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.starts)

    def size(self, position: int) -> int:
        """The bytes of a record."""
        start = self.starts[position]
        end = self.ends[position]
        return end - start

    def replace_from(self, first: int, entries: Sequence[IndexEntry]) -> None:
        """Put entries at position `first` and those that follow. first is at most len(self)."""
        for position, entry in enumerate(entries, first):
            # In arrays of plain numbers: an object for each of a million records takes far more.
            _put(self.starts, position, entry.start)
            _put(self.ends, position, entry.end)
            _put(self.digests, position, entry.digest)
            _put(self.lines, position, entry.line)
            # A line that was broken while it was being written may be whole now.
            self.problems.pop(position, None)
            if entry.problem:
                self.problems[position] = entry.problem


def _put(numbers: array[int], position: int, number: int) -> None:
    if position == len(numbers):
        numbers.append(number)
    else:
        numbers[position] = number


def content_digest(content: bytes) -> int:
    """64 bits of a record's content. Its line end does not count: the last line of a file may get
    one only when the next is added.
    """
    without_line_end = content.rstrip(b"\r\n")
    content_hash = blake2b(without_line_end, digest_size=8)
    return int.from_bytes(content_hash.digest(), "little")
