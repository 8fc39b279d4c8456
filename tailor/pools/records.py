"""Where each record of a CSV or JSONL file lies, found in one pass that keeps no text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from tailor.errors import InputError

#: The format of a file, by the end of its name.
FORMAT_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Record:
    """One record of a file.

    line        the number of its first line, from 1
    start, end  its bytes in the file, line end included
    content     those bytes
    values      its values by column; None where the record is broken
    problem     why it is broken
    open_quote  it ends inside a quoted field
    """

    line: int
    start: int
    end: int
    content: bytes
    values: dict[str, Any] | None
    problem: str = ""
    open_quote: bool = False

    @property
    def ends_line(self) -> bool:
        return self.content.endswith(b"\n")

    @property
    def may_be_half_written(self) -> bool:
        """Broken in a way that more bytes at the end of the file could mend."""
        if self.values is not None:
            return False
        return self.open_quote or not self.ends_line


class Jsonl:
    """A JSON object a line."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding

    def parse(self, content: bytes) -> dict[str, Any]:
        """The values of one record. Raises ValueError where it is not an object."""
        text = _decode(content, self.encoding)
        values = json.loads(text)
        if not isinstance(values, dict):
            type_name = type(values).__name__
            raise ValueError(f"a {type_name} where an object must be")
        return values

    def records(
        self,
        file: BinaryIO,
        start: int,
        line: int,
    ) -> Iterator[Record]:
        """All records from byte `start`, which is the beginning of this line. Blank lines are
        passed over.
        """
        file.seek(start)
        for content in file:
            end = start + len(content)
            if content.strip():
                values = None
                problem = ""
                try:
                    values = self.parse(content)
                # json goes down as many calls as brackets are nested.
                except (ValueError, RecursionError) as error:
                    problem = f"broken line {line}: {error}"
                yield Record(
                    line,
                    start,
                    end,
                    content,
                    values,
                    problem,
                )
            start = end
            line = line + 1


class Csv:
    """Comma-separated values under a header. A quoted field may go over several lines.

    header  the names of the columns; until it is set, columns are named by their number
    """

    def __init__(
        self,
        encoding: str,
        delimiter: str,
        header: list[str] | None = None,
    ) -> None:
        self.encoding = encoding
        self.delimiter = delimiter
        self.header = header

    def parse(self, content: bytes) -> dict[str, Any]:
        """The values of one record. Raises ValueError where it is not one whole record."""
        try:
            lines = []
            for line in io.BytesIO(content):
                lines.append(_decode(line, self.encoding))
            reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
            rows = []
            for row in reader:
                if row:
                    rows.append(row)
        except csv.Error as problem:
            raise ValueError(str(problem)) from None
        if len(rows) != 1:
            raise ValueError(f"{len(rows)} records where one must be")
        return self._by_column(rows[0])

    def _by_column(self, row: list[str]) -> dict[str, Any]:
        if self.header is None:
            return {str(number): value for number, value in enumerate(row)}
        expected = len(self.header)
        if len(row) != expected:
            raise ValueError(f"{len(row)} columns, the header has {expected}")
        return dict(zip(self.header, row))

    def records(
        self,
        file: BinaryIO,
        start: int,
        line: int,
    ) -> Iterator[Record]:
        """All records from byte `start`, which is the beginning of this line.

        Python's csv reader says where a record ends. Where it fails, only the first line of the
        record is broken, and reading goes on with the next line.
        """
        while True:
            file.seek(start)
            record_lines: list[bytes] = []  # that the reader has taken for the record in hand
            lines = self._decoded_lines(file, record_lines)
            reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
            failed = False
            while not failed:
                row: list[str] = []
                problem = ""
                try:
                    row = next(reader)
                except StopIteration:
                    return
                except (csv.Error, ValueError) as error:
                    failed = True
                    problem = str(error)
                    del record_lines[1:]
                content = b"".join(record_lines)
                end = start + len(content)
                if failed or row:  # an empty row is a blank line
                    yield self._record(
                        line,
                        start,
                        content,
                        row,
                        problem,
                    )
                start = end
                line = line + len(record_lines)
                record_lines.clear()

    def _record(
        self,
        line: int,
        start: int,
        content: bytes,
        row: list[str],
        problem: str,
    ) -> Record:
        values = None
        # csv's words for a quote that nothing closes, and a decoder's for half a character
        open_quote = "end of data" in problem
        if not problem:
            try:
                values = self._by_column(row)
            except ValueError as error:
                problem = str(error)
        message = ""
        if problem:
            message = f"broken line {line}: {problem}"
        return Record(
            line=line,
            start=start,
            end=start + len(content),
            content=content,
            values=values,
            problem=message,
            open_quote=open_quote,
        )

    def _decoded_lines(self, file: BinaryIO, taken: list[bytes]) -> Iterator[str]:
        for content in iter(file.readline, b""):
            taken.append(content)
            yield _decode(content, self.encoding)


def make_format(
    name: str,
    suffix: str,
    encoding: str,
    delimiter: str | None,
) -> Jsonl | Csv:
    """The format "jsonl" or "csv" with its options.

    suffix     of the file: cells of a .tsv are separated by tabs where no delimiter is named
    encoding   of the text; its line ends must be plain bytes (not UTF-16)
    delimiter  one character

    Raises InputError for an encoding or a delimiter that can't be used.
    """
    _check_encoding(encoding)
    if name == "jsonl":
        return Jsonl(encoding)
    if delimiter is None:
        if suffix == ".tsv":
            delimiter = "\t"
        else:
            delimiter = ","
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InputError(
            f"delimiter is {delimiter!r}: give one character other than a quote or a line end"
        )
    return Csv(encoding, delimiter)


def _check_encoding(encoding: str) -> None:
    try:
        has_plain_line_ends = "\n".encode(encoding) == b"\n"
    except LookupError:
        raise InputError(
            f"unknown encoding {encoding!r}: 'utf-8' and 'cp1252' are common ones"
        ) from None
    if not has_plain_line_ends:
        raise InputError(f"encoding {encoding!r} has no plain line ends: save the file as UTF-8")


def _decode(content: bytes, encoding: str) -> str:
    # Spreadsheets put a mark in front of the first line.
    without_mark = content.removeprefix(_BYTE_ORDER_MARK)
    return without_mark.decode(encoding)
