"""CSV and JSONL files of texts, read a record at a time."""

from __future__ import annotations

import contextlib
import json
import os
from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from tailor.errors import InputError, UnknownName
from tailor.pools import convert
from tailor.pools.base import Pool, Unreadable, check_positions, check_unique, some
from tailor.pools.columns import LABELS, choose_label
from tailor.pools.records import Csv, Jsonl, Record

FORMATS = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


class TextFile(Pool):
    """Texts of a CSV or JSONL file. One pass notes where each record lies; reading seeks there.

    Ids come from the key column; without one they are the numbers of the records, from 0, as text.
    A broken line, and one without a key, keeps its place and reads as Unreadable; under a key
    column its id is "line 7". Lines added at the end join at `refresh`. A record that was changed
    in place reads as Unreadable until the pool is opened again.

    column           the texts; by itself `text`, or the only column that can be it
    key, label       the columns of ids and of labels (by itself `label` or `labels`)
    label_separator  several labels in one cell are split here ("|"). A JSON list, or a column
                     called `labels`, also means that an example may have several classes. An empty
                     cell is no label; [] is the empty set
    delimiter        between the cells of a CSV: by itself a comma, or a tab for .tsv
    format           "csv" or "jsonl"; by itself as the file's name ends
    """

    kind = "text"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        column: str | None = None,
        key: str | None = None,
        label: str | None = None,
        label_separator: str | None = None,
        delimiter: str | None = None,
        encoding: str = "utf-8",
        format: str | None = None,
    ) -> None:
        self.path = Path(path).absolute()
        if not self.path.is_file():
            raise InputError(f"no file at {self.path}: give an existing .csv or .jsonl file")
        self._options = {
            "key": key,
            "label": label,
            "label_separator": label_separator,
            "delimiter": delimiter,
            "format": format,
            "encoding": None if encoding == "utf-8" else encoding,
        }
        self.key = key
        self.label = label
        self.label_separator = label_separator
        suffix = self.path.suffix.lower()
        kind = format or FORMATS.get(suffix)
        if kind not in ("csv", "jsonl"):
            raise InputError(
                f"{self.path.name} ends in {suffix!r}: name its format, 'csv' or 'jsonl' (format=)"
            )
        if label_separator == "":
            raise InputError(
                "label_separator is empty: give the text between two labels, such as '|'"
            )
        _check_encoding(encoding)
        self._format = (
            Jsonl(encoding) if kind == "jsonl" else Csv(encoding, _delimiter(delimiter, suffix))
        )
        self._next = 0
        self._line = 1
        self._columns = self._header()
        for given in (column, key, label):
            if given is not None and given not in self._columns:
                raise UnknownName(f"column of {self.path.name}", given, self._columns)
        self.column = self._texts() if column is None else column
        self._starts = array("q")
        self._ends = array("q")
        self._digests = array("Q")
        self._lines = array("q")
        self._ids: list[str] = []
        self._broken: dict[int, str] = {}
        self._open_end = False
        if not self._grow(first=True):
            raise InputError(f"no record in {self.path}: it needs at least one below the header")

    def _records(self, start: int, line: int) -> Iterator[Record]:
        with open(self.path, "rb") as file:
            yield from self._format.records(file, start, line)

    def _header(self) -> list[str]:
        if isinstance(self._format, Csv):
            first = next(self._records(0, 1), None)
            if first is None or first.values is None:
                raise InputError(
                    f"{self.path} has no header: {first.problem if first else 'it is empty'}"
                )
            names = [str(v).strip() for v in first.values.values()]
            check_unique(names, [f"column {i + 1} of the header" for i in range(len(names))])
            self._format.header = names
            self._next = first.end
            self._line = 1 + first.line + first.raw.rstrip(b"\n").count(b"\n")
            return names
        seen: dict[str, bool] = {}  # column -> a text was seen in it
        for record in islice(self._records(0, 1), 100):
            for name, value in (record.values or {}).items():
                seen[name] = seen.get(name, False) or isinstance(value, str)
        if not seen:
            raise InputError(
                f"no JSON object in the first lines of {self.path}: each line must be one"
            )
        self._textual = [name for name, has_text in seen.items() if has_text]
        return list(seen)

    def _texts(self) -> str:
        candidates = self._columns if isinstance(self._format, Csv) else self._textual
        candidates = [c for c in candidates if c not in (self.key, self.label, *LABELS)]
        if "text" in candidates:
            return "text"
        if len(candidates) != 1:
            raise InputError(
                f"the texts of {self.path.name} may be in {some(candidates)}: name the column "
                "(--column, or column= in "
                "Python)"
            )
        return candidates[0]

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def refresh(self) -> int:
        try:
            if os.stat(self.path).st_size <= self._next:
                return 0
            return self._grow(first=False)
        except OSError:
            return 0  # gone for now: what is known stays

    def _grow(self, first: bool) -> int:
        """Take in the records from where the last pass ended."""
        before = len(self._ids)
        again = (
            before - 1 if self._open_end else -1
        )  # had no line end: more of it may have been written
        start, line = (
            (self._starts[again], self._lines[again]) if again >= 0 else (self._next, self._line)
        )
        ids = list(self._ids)
        lines = array("q", self._lines)
        notes = []
        for record in self._records(start, line):
            if not first and record.cut:
                break  # half written: the next look takes it
            if again < 0 or record.start != start:
                ids.append(self._id(record, len(ids)))
                lines.append(record.line)
            notes.append(
                (record.start, record.end, _digest(record.raw), record.line, self._problem(record))
            )
            ended = (record.end, record.line + record.raw.count(b"\n"), not record.ends_line)
        check_unique(ids, lambda p: f"line {lines[p]} of {self.path.name}")
        self._ids = ids
        for position, (*numbers, problem) in enumerate(notes, before if again < 0 else again):
            for column, number in zip(
                (self._starts, self._ends, self._digests, self._lines), numbers
            ):
                column[position : position + 1] = array(column.typecode, [number])
            self._broken.pop(position, None)
            if problem:
                self._broken[position] = problem
        if notes:
            self._next, self._line, self._open_end = ended
        return len(ids) - before

    def _id(self, record: Record, number: int) -> str:
        if self.key is None:
            return str(number)
        value = (record.values or {}).get(self.key)
        return f"line {record.line}" if value is None or value == "" else str(value)

    def _problem(self, record: Record) -> str:
        if (
            record.values is not None
            and self.key is not None
            and record.values.get(self.key) in (None, "")
        ):
            return f"no key in line {record.line}"
        return record.problem

    def read(self, positions: Sequence[int]) -> list[str | Unreadable]:
        checked = check_positions(positions, len(self))
        found: dict[int, str | Unreadable] = {}
        try:
            with open(self.path, "rb") as file:
                for position in sorted(set(checked)):
                    file.seek(self._starts[position])
                    found[position] = self._text(
                        position, file.read(self._ends[position] - self._starts[position])
                    )
        except OSError as problem:
            reason = (
                "missing" if isinstance(problem, FileNotFoundError) else f"can't be read: {problem}"
            )
            return [Unreadable(reason)] * len(checked)
        return [found[p] for p in checked]

    def _text(self, position: int, raw: bytes) -> str | Unreadable:
        if position in self._broken:
            return Unreadable(self._broken[position])
        if _digest(raw) != self._digests[position]:
            return Unreadable(
                f"line {self._lines[position]} has changed since the file was opened: open it again"
            )
        return convert.text(self._format.parse(raw).get(self.column))

    def content_keys(self, positions: Sequence[int]) -> list[str]:
        checked = check_positions(positions, len(self))
        return [
            f"{self.column}|{self._digests[p]:016x}|{self._ends[p] - self._starts[p]}"
            for p in checked
        ]

    def labels(self) -> dict[str, Any] | None:
        column = choose_label(self._columns, self.label)
        if column is None:
            return None
        known: dict[str, Any] = {}
        several = self.label_separator is not None or column == "labels"
        for position, record in enumerate(self._records(self._starts[0], self._lines[0])):
            if position == len(self._ids) or record.start != self._starts[position]:
                break  # rewritten, or grown: what was opened is what counts
            value = None if record.values is None else self._label(record.values.get(column))
            if value is not None:
                known[self._ids[position]] = value
                several = several or isinstance(value, list)
        if several:
            return {
                one: value if isinstance(value, list) else [value] for one, value in known.items()
            }
        return known

    def _label(self, value: Any) -> Any:
        if isinstance(value, str):
            value = value.strip()
            if value.startswith("["):
                with contextlib.suppress(ValueError):
                    value = json.loads(value)
            if isinstance(value, str) and self.label_separator is not None and value:
                value = [part.strip() for part in value.split(self.label_separator)]
        return convert.label(value, None)

    def describe(self) -> dict[str, Any]:
        given = {k: v for k, v in self._options.items() if v is not None}
        return {"kind": "text", "path": str(self.path), "column": self.column} | given


def _digest(raw: bytes) -> int:
    """Of a record without its line end, which a last line may get only when the next one is
    added.
    """
    return int.from_bytes(blake2b(raw.rstrip(b"\r\n"), digest_size=8).digest(), "little")


def _check_encoding(encoding: str) -> None:
    try:
        plain = "\n".encode(encoding) == b"\n"
    except LookupError:
        raise InputError(
            f"unknown encoding {encoding!r}: 'utf-8' and 'cp1252' are common ones"
        ) from None
    if not plain:
        raise InputError(f"encoding {encoding!r} has no plain line ends: save the file as UTF-8")


def _delimiter(given: str | None, suffix: str) -> str:
    if given is None:
        return "\t" if suffix == ".tsv" else ","
    if len(given) != 1 or given in '"\r\n':
        raise InputError(
            f"delimiter is {given!r}: give one character other than a quote or a line end"
        )
    return given
