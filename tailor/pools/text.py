"""CSV and JSONL files of texts, read a record at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tailor.errors import InputError, UnknownName
from tailor.pools import convert
from tailor.pools.base import (
    Pool,
    Unreadable,
    check_positions,
    check_unique,
    shortened,
    without_none,
)
from tailor.pools.columns import LABEL_COLUMNS, choose_label
from tailor.pools.record_index import IndexEntry, RecordIndex, content_digest
from tailor.pools.records import (
    FORMAT_BY_SUFFIX,
    Csv,
    Record,
    make_format,
)

#: Records of a JSONL file that are looked at to find its columns.
_RECORDS_TRIED = 100


class TextFile(Pool):
    """Texts of a CSV or JSONL file. One pass notes where each record lies; reading seeks there.

    Ids come from the key column; without one they are the numbers of the records, from 0, as text.
    A broken line, and one without a key, keeps its place and reads as Unreadable; under a key
    column its id is "line 7". Lines added at the end join at `refresh`. A record that was changed
    in place reads as Unreadable until the pool is opened again.

    path             the file
    column           the texts; by default `text`, or the only column that can be it
    key, label       the columns of ids and of labels (by default `label` or `labels`)
    label_separator  several labels in one cell are split here ("|"). A JSON list, or a column
                     called `labels`, also means that an example may have several classes. An empty
                     cell is no label; [] is the empty set
    delimiter        between the cells of a CSV: by default a comma, or a tab for .tsv
    encoding         one in which a line end is a plain byte (not UTF-16)
    format           "csv" or "jsonl"; by default as the file's name ends

    Raises InputError where the file has no record or the columns are not clear, UnknownName for a
    column that is not there.

    Cost: opening reads the file once; a text is then read from its place.

    When to use: texts in a table: .csv, .tsv, .jsonl.
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
        other_encoding = None
        if encoding != "utf-8":
            other_encoding = encoding
        self._options = {
            "key": key,
            "label": label,
            "label_separator": label_separator,
            "delimiter": delimiter,
            "format": format,
            "encoding": other_encoding,
        }
        self.key = key
        self.label = label
        self.label_separator = label_separator
        format_name = self._format_name(format)
        if label_separator == "":
            raise InputError(
                "label_separator is empty: give the text between two labels, such as '|'"
            )
        self._format = make_format(
            format_name,
            self.path.suffix.lower(),
            encoding,
            delimiter,
        )
        #: Where the next look begins: a byte of the file, and the number of its line.
        self._next_start = 0
        self._next_line = 1
        all_columns, text_columns = self._find_columns()
        self._columns = all_columns
        self._text_columns = text_columns
        for name in (column, key, label):
            if name is not None:
                self._check_column(name)
        if column is None:
            column = self._choose_column()
        self.column = column
        self._ids: list[str] = []
        self._index = RecordIndex()
        self._last_is_open = False  # the last record had no line end: it may grow
        if not self._index_records(first_pass=True):
            raise InputError(f"no record in {self.path}: it needs at least one below the header")

    def _format_name(self, format: str | None) -> str:
        suffix = self.path.suffix.lower()
        name = format or FORMAT_BY_SUFFIX.get(suffix)
        if name not in ("csv", "jsonl"):
            raise InputError(
                f"{self.path.name} ends in {suffix!r}: name its format, 'csv' or 'jsonl' (format=)"
            )
        return name

    def _check_column(self, name: str) -> None:
        if name not in self._columns:
            raise UnknownName(f"column of {self.path.name}", name, self._columns)

    def _records(self, start: int, line: int) -> Iterator[Record]:
        with open(self.path, "rb") as file:
            yield from self._format.records(file, start, line)

    # ------------------------------------------------------------------ columns

    def _find_columns(self) -> tuple[list[str], list[str]]:
        """All columns, and those that may hold the texts."""
        if isinstance(self._format, Csv):
            names = self._read_header(self._format)
            return names, names
        # Dictionaries without values: each name once, in the order in which they came.
        all_columns: dict[str, None] = {}
        text_columns: dict[str, None] = {}
        records = self._records(0, 1)
        for record in islice(records, _RECORDS_TRIED):
            values = record.values or {}
            for name, value in values.items():
                all_columns[name] = None
                # A text in one record is enough: it may be missing in the others.
                if isinstance(value, str):
                    text_columns[name] = None
        if not all_columns:
            raise InputError(
                f"no JSON object in the first lines of {self.path}: each line must be one"
            )
        return list(all_columns), list(text_columns)

    def _read_header(self, csv_format: Csv) -> list[str]:
        records = self._records(0, 1)
        header = next(records, None)
        if header is None:
            raise InputError(f"{self.path} has no header: it is empty")
        if header.values is None:
            raise InputError(f"{self.path} has no header: {header.problem}")
        names = []
        for cell in header.values.values():
            name = str(cell)
            names.append(name.strip())

        def place(number: int) -> str:
            return f"column {number + 1} of the header"

        check_unique(names, place)
        csv_format.header = names
        self._next_start = header.end
        # A quoted name may go on in the next line.
        without_line_end = header.content.rstrip(b"\n")
        inner_line_ends = without_line_end.count(b"\n")
        self._next_line = header.line + inner_line_ends + 1
        return names

    def _choose_column(self) -> str:
        others = (self.key, self.label, *LABEL_COLUMNS)
        candidates = []
        for name in self._text_columns:
            if name not in others:
                candidates.append(name)
        if "text" in candidates:
            return "text"
        if len(candidates) != 1:
            listed = shortened(candidates)
            raise InputError(
                f"the texts of {self.path.name} may be in {listed}: name the column "
                "(--column, or column= in Python)"
            )
        return candidates[0]

    # ------------------------------------------------------------------ records

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def refresh(self) -> int:
        try:
            status = os.stat(self.path)
            if status.st_size <= self._next_start:
                return 0
            return self._index_records(first_pass=False)
        except OSError:
            return 0  # gone for now: what is known stays

    def _index_records(self, *, first_pass: bool) -> int:
        """Take in the records from where the last pass ended -> how many are new."""
        size_before = len(self._ids)
        first = size_before
        start = self._next_start
        line = self._next_line
        if self._last_is_open:
            # More of the last record may have been written: it is read again, under its old id.
            first = size_before - 1
            start = self._index.starts[first]
            line = self._index.lines[first]
        ids = list(self._ids)
        entries = []
        last_record = None
        for record in self._records(start, line):
            if not first_pass and record.may_be_half_written:
                break  # the next look takes it
            is_reread = self._last_is_open and record.start == start
            if not is_reread:
                record_id = self._record_id(record, number=len(ids))
                ids.append(record_id)
            problem = self._record_problem(record)
            entry = IndexEntry.of(record, problem)
            entries.append(entry)
            last_record = record
        self._check_ids(ids, first, entries)
        # Nothing of the pool has changed up to here, so that an error leaves it as it was.
        self._ids = ids
        self._index.replace_from(first, entries)
        if last_record is not None:
            self._note_end(last_record)
        return len(ids) - size_before

    def _check_ids(
        self,
        ids: list[str],
        first: int,
        entries: list[IndexEntry],
    ) -> None:
        """Raises InputError where an id occurs twice. entries: those from position `first` on."""

        def place(position: int) -> str:
            if position >= first:
                entry = entries[position - first]
                line = entry.line
            else:
                line = self._index.lines[position]
            return f"line {line} of {self.path.name}"

        check_unique(ids, place)

    def _note_end(self, last_record: Record) -> None:
        """Remember where the next look begins."""
        self._next_start = last_record.end
        line_ends = last_record.content.count(b"\n")
        self._next_line = last_record.line + line_ends
        self._last_is_open = not last_record.ends_line

    def _record_id(self, record: Record, number: int) -> str:
        if self.key is None:
            return str(number)
        values = record.values or {}
        value = values.get(self.key)
        if value is None or value == "":
            return f"line {record.line}"
        return str(value)

    def _record_problem(self, record: Record) -> str:
        if record.values is None or self.key is None:
            return record.problem
        key_value = record.values.get(self.key)
        if key_value in (None, ""):
            return f"no key in line {record.line}"
        return ""

    # ------------------------------------------------------------------ reading

    def read(self, positions: Sequence[int]) -> list[str | Unreadable]:
        checked = check_positions(positions, len(self))
        # Ascending, so that the disk is read in one direction.
        ordered = sorted(set(checked))
        texts = {}
        try:
            with open(self.path, "rb") as file:
                for position in ordered:
                    start = self._index.starts[position]
                    size = self._index.size(position)
                    file.seek(start)
                    content = file.read(size)
                    texts[position] = self._text(position, content)
        except FileNotFoundError:
            missing = Unreadable("missing")
            return [missing] * len(checked)
        except OSError as problem:
            unreadable = Unreadable(f"can't be read: {problem}")
            return [unreadable] * len(checked)
        return [texts[position] for position in checked]

    def _text(self, position: int, content: bytes) -> str | Unreadable:
        problem = self._index.problems.get(position)
        if problem is not None:
            return Unreadable(problem)
        digest_when_opened = self._index.digests[position]
        if content_digest(content) != digest_when_opened:
            line = self._index.lines[position]
            return Unreadable(f"line {line} has changed since the file was opened: open it again")
        values = self._format.parse(content)
        value = values.get(self.column)
        return convert.text(value)

    def content_keys(self, positions: Sequence[int]) -> list[str]:
        checked = check_positions(positions, len(self))
        keys = []
        for position in checked:
            content_digest = self._index.digests[position]
            size = self._index.size(position)
            keys.append(f"{self.column}|{content_digest:016x}|{size}")
        return keys

    # ------------------------------------------------------------------ labels

    def labels(self) -> dict[str, Any] | None:
        column = choose_label(self._columns, self.label)
        if column is None:
            return None
        labels = self._column_labels(column)
        is_multi_label = self.label_separator is not None or column == "labels"
        for label in labels.values():
            # One list among them makes all of them sets of classes.
            if isinstance(label, list):
                is_multi_label = True
        if not is_multi_label:
            return labels
        for example_id, label in labels.items():
            if not isinstance(label, list):
                labels[example_id] = [label]
        return labels

    def _column_labels(self, column: str) -> dict[str, Any]:
        """The labels in a column by id, each as it stands there: a class name or a list."""
        labels = {}
        records = self._records(self._index.starts[0], self._index.lines[0])
        for position, record in enumerate(records):
            # Grown, or rewritten: what was opened is what counts.
            if position == len(self._ids):
                break
            if record.start != self._index.starts[position]:
                break
            if record.values is None:
                continue
            cell = record.values.get(column)
            label = convert.label_cell(cell, self.label_separator)
            if label is not None:
                example_id = self._ids[position]
                labels[example_id] = label
        return labels

    # ------------------------------------------------------------------ the source

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "text",
            "path": str(self.path),
            "column": self.column,
            **without_none(self._options),
        }
