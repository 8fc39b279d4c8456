"""Where each record of a CSV or JSONL file lies, found in one pass that keeps no text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO


@dataclass(frozen=True)
class Record:
    """One record of a file: bytes start .. end, its values by column, or why it is broken."""

    line: int  # from 1
    start: int
    end: int
    raw: bytes
    values: dict[str, Any] | None
    problem: str = ""
    open_quote: bool = False

    @property
    def ends_line(self) -> bool:
        return self.raw.endswith(b"\n")

    @property
    def cut(self) -> bool:
        """Broken at the very end of the file: it may be half written."""
        return self.values is None and (self.open_quote or not self.ends_line)


class Jsonl:
    """A JSON object a line."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding

    def parse(self, raw: bytes) -> dict[str, Any]:
        """ValueError where it is not an object."""
        values = json.loads(_decode(raw, self.encoding))
        if not isinstance(values, dict):
            raise ValueError(f"a {type(values).__name__} where an object must be")
        return values

    def records(self, file: BinaryIO, start: int, line: int) -> Iterator[Record]:
        file.seek(start)
        for raw in file:
            if raw.strip():
                try:
                    yield Record(line, start, start + len(raw), raw, self.parse(raw))
                except (ValueError, RecursionError) as problem:
                    yield Record(
                        line, start, start + len(raw), raw, None, f"broken line {line}: {problem}"
                    )
            start = start + len(raw)
            line = line + 1


class Csv:
    """Comma-separated values under a header. A quoted field may go over several lines."""

    def __init__(self, encoding: str, delimiter: str, header: list[str] | None = None) -> None:
        self.encoding = encoding
        self.delimiter = delimiter
        self.header = header

    def parse(self, raw: bytes) -> dict[str, Any]:
        """ValueError where it is not one whole record."""
        try:
            lines = [_decode(line, self.encoding) for line in io.BytesIO(raw)]
            rows = [row for row in csv.reader(lines, delimiter=self.delimiter, strict=True) if row]
        except csv.Error as problem:
            raise ValueError(str(problem)) from None
        if len(rows) != 1:
            raise ValueError(f"{len(rows)} records where one must be")
        return self._named(rows[0])

    def _named(self, row: list[str]) -> dict[str, Any]:
        header = self.header
        if header is None:
            return {str(i): value for i, value in enumerate(row)}
        if len(row) != len(header):
            raise ValueError(f"{len(row)} columns, the header has {len(header)}")
        return dict(zip(header, row))

    def records(self, file: BinaryIO, start: int, line: int) -> Iterator[Record]:
        """csv's own reader says where a record ends; where it fails, the record's first line alone
        is broken.
        """
        while True:
            file.seek(start)
            taken: list[bytes] = []  # the lines of the record in hand
            reader = csv.reader(self._lines(file, taken), delimiter=self.delimiter, strict=True)
            while True:
                problem = ""
                row = []
                try:
                    row = next(reader)
                except StopIteration:
                    return
                except (csv.Error, ValueError) as failure:
                    problem = str(failure)
                    del taken[1:]
                raw = b"".join(taken)
                lines = len(taken)
                taken.clear()
                end = start + len(raw)
                if problem:
                    cut = "end of data" in problem
                    yield Record(
                        line,
                        start,
                        end,
                        raw,
                        None,
                        f"broken line {line}: {problem}",
                        open_quote=cut,
                    )
                elif row:
                    try:
                        yield Record(line, start, end, raw, self._named(row))
                    except ValueError as failure:
                        yield Record(line, start, end, raw, None, f"broken line {line}: {failure}")
                start = end
                line = line + lines
                if problem:
                    break

    def _lines(self, file: BinaryIO, taken: list[bytes]) -> Iterator[str]:
        for raw in iter(file.readline, b""):
            taken.append(raw)
            yield _decode(raw, self.encoding)


def _decode(raw: bytes, encoding: str) -> str:
    return raw.removeprefix(b"\xef\xbb\xbf").decode(encoding)
