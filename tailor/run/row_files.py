"""Rows in files: CSV and JSONL, in and out, so that a spreadsheet never runs what a file name
says.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from tailor.common.atomic_files import atomic_path
from tailor.errors import InputError
from tailor.task import MultiClass, Task

#: a cell that begins with one of these is a formula to a spreadsheet; the last four: full width
FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "\uff1d",
    "\uff0b",
    "\uff0d",
    "\uff20",
)
#: what gets a quote before it in CSV: a quote too, so that reading can take off every one
QUOTED = (*FORMULA, "'")
#: between the classes of a cell
SEPARATOR = "|"
#: what a column `skip` may hold to say yes
YES = ("1", "true", "yes", "x")

#: column -> value
Row = dict[str, Any]


# ---------------------------------------------------------------------- writing


def write_rows(path: Path, rows: Iterable[Row]) -> int:
    """Rows of plain values as .csv or .jsonl, whole or not at all; how many. Lists become a|b in
    CSV.
    """
    check_suffix(path)
    write = _write_csv
    if path.suffix == ".jsonl":
        write = _write_jsonl
    with (
        atomic_path(path) as temporary,
        temporary.open("w", newline="", encoding="utf-8") as file,
    ):
        return write(file, rows)


def _write_jsonl(file: TextIO, rows: Iterable[Row]) -> int:
    count = 0
    for row in rows:
        line = json.dumps(row, ensure_ascii=False)
        file.write(line + "\n")
        count += 1
    return count


def _write_csv(file: TextIO, rows: Iterable[Row]) -> int:
    writer: csv.DictWriter[str] | None = None
    count = 0
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(file, list(row))
            writer.writeheader()
        cells = {}
        for key, value in row.items():
            cells[key] = _cell(value)
        writer.writerow(cells)
        count += 1
    return count


def _cell(value: Any) -> Any:
    """A value as it stands in CSV. A quote before what a spreadsheet would run."""
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        names = [str(part) for part in value]
        # An empty cell would be one that is not answered.
        value = SEPARATOR.join(names) or "none"
    if isinstance(value, str) and value.startswith(QUOTED):
        return "'" + value
    return value


# ---------------------------------------------------------------------- reading


def check_suffix(path: Path) -> None:
    """Raises InputError for a file that is neither .csv nor .jsonl."""
    if path.suffix in (".csv", ".jsonl"):
        return
    ending = path.suffix or "nothing"
    raise InputError(f"{path} ends in {ending}: give a .csv or .jsonl file")


def read_rows(path: Path) -> Iterator[Row]:
    """Rows of a .csv or .jsonl file, each with its line under "line".

    Raises InputError where the file is missing, not UTF-8, or no such file.
    """
    check_suffix(path)
    if not path.is_file():
        raise InputError(f"no file at {path}")
    read = _read_csv
    if path.suffix == ".jsonl":
        read = _read_jsonl
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            yield from read(path, file)
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 ({error}): save it as UTF-8") from error


def _read_jsonl(path: Path, file: TextIO) -> Iterator[Row]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        if not isinstance(row, dict):
            raise InputError(
                f"{path}, line {number}: a JSON object is needed, got {type(row).__name__}"
            )
        row["line"] = number
        yield row


def _read_csv(path: Path, file: TextIO) -> Iterator[Row]:
    reader = csv.DictReader(file)
    try:
        for row in reader:
            plain: Row = {}
            for key, value in row.items():
                # under None stand cells beyond the last column's name
                if key is not None:
                    plain[key] = _plain(value)
            plain["line"] = reader.line_num
            yield plain
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num + 1}: {error}") from error


def _plain(value: Any) -> Any:
    """Undoes the quote of _cell()."""
    if not isinstance(value, str) or not value.startswith("'"):
        return value
    unquoted = value[1:]
    # Whoever writes 'tis by hand means the quote.
    if unquoted.startswith(QUOTED):
        return unquoted
    return value


# ---------------------------------------------------------------------- answers


def read_answers(path: Path, task: Task) -> dict[str, Any]:
    """Answers by id from columns id and label: a class, a list or a|b (multi-label); None where the
    column skip says so. Rows with an empty label are not answered.

    Raises InputError, with the line, for what is no answer.
    """
    answers: dict[str, Any] = {}
    for row in read_rows(path):
        place = f"{path}, line {row['line']}"
        _check_columns(row, place)
        example_id = str(row["id"])
        if example_id in answers:
            raise InputError(f"{place}: id {example_id!r} is there twice")
        if _is_skipped(row):
            answers[example_id] = None
            continue
        label = row["label"]
        if label is None or label == "":
            continue
        try:
            answers[example_id] = _label(label, task)
        except InputError as error:
            raise InputError(f"{place}: {error}") from error
    if not answers:
        raise InputError(
            f"{path} holds no answer: fill in its label column, or mark rows in its skip column"
        )
    return answers


def _check_columns(row: Row, place: str) -> None:
    if "id" in row and "label" in row:
        return
    columns = []
    for key in row:
        if key != "line":
            columns.append(key)
    listed = ", ".join(columns)
    raise InputError(f"{place}: columns id and label are needed, found {listed}")


def _is_skipped(row: Row) -> bool:
    skip = row.get("skip")
    if skip is None:
        return False
    # Spreadsheets write TRUE, and people put spaces around it.
    text = str(skip).strip()
    return text.lower() in YES


def line_of(path: Path, example_id: str) -> int:
    """The line of an id, for errors that come up after reading; 0 where it is not there."""
    for row in read_rows(path):
        if str(row["id"]) == example_id:
            return int(row["line"])
    return 0


def _label(value: Any, task: Task) -> Any:
    """A cell as the task encodes it. Raises InputError where it names no class."""
    if isinstance(task, MultiClass):
        if isinstance(value, list):
            raise InputError(f"label {value!r}: one class is needed in a multi-class task")
        label: Any = str(value)  # 1 in a file is the class called "1", never an index
    else:
        label = _class_list(value, task)
    task.encode([label])
    return label


def _class_list(value: Any, task: Task) -> list[str]:
    if isinstance(value, list):
        return [str(part) for part in value]
    text = str(value)
    # a class may be called "none", or have the separator in its name
    if text in task.classes:
        return [text]
    if text.strip() in ("none", "-"):
        return []
    parts = text.split(SEPARATOR)
    return [part.strip() for part in parts]
