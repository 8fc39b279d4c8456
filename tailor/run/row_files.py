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

#: a cell that begins with one of these is a formula to a spreadsheet
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
)  # the last: full width
SEPARATOR = "|"


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Rows of plain values as .csv or .jsonl, whole or not at all; how many. Lists become a|b in
    CSV.
    """
    check_suffix(path)
    count = 0
    with (
        atomic_path(path) as temporary,
        temporary.open("w", newline="", encoding="utf-8") as file,
    ):
        writer: Any = None
        for row in rows:
            count += 1
            if path.suffix == ".jsonl":
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                continue
            if writer is None:
                writer = csv.DictWriter(file, list(row))
                writer.writeheader()
            writer.writerow({key: _cell(value) for key, value in row.items()})
    return count


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a .csv or .jsonl file, each with its line under "line"."""
    check_suffix(path)
    if not path.is_file():
        raise InputError(f"no file at {path}")
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            yield from _jsonl(path, file) if path.suffix == ".jsonl" else _csv(path, file)
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 ({error}): save it as UTF-8") from error


def _jsonl(path: Path, file: TextIO) -> Iterator[dict[str, Any]]:
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
        yield row | {"line": number}


def _csv(path: Path, file: TextIO) -> Iterator[dict[str, Any]]:
    reader = csv.DictReader(file)
    try:
        for row in reader:
            yield {k: _plain(v) for k, v in row.items() if k is not None} | {
                "line": reader.line_num
            }
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num + 1}: {error}") from error


def check_suffix(path: Path) -> None:
    if path.suffix not in (".csv", ".jsonl"):
        raise InputError(f"{path} ends in {path.suffix or 'nothing'}: give a .csv or .jsonl file")


def read_answers(path: Path, task: Task) -> dict[str, Any]:
    """Answers by id from columns id and label: a class, a list or a|b (multi-label), or skip.
    Empty: not answered.
    """
    answers: dict[str, Any] = {}
    for row in read_rows(path):
        place = f"{path}, line {row['line']}"
        if "id" not in row or "label" not in row:
            raise InputError(
                f"{place}: columns id and label are needed, found "
                f"{', '.join(k for k in row if k != 'line')}"
            )
        one = str(row["id"])
        given = row["label"]
        if one in answers:
            raise InputError(f"{place}: id {one!r} is there twice")
        skipped = str(row.get("skip") or "").strip().lower() in ("1", "true", "yes", "x")
        if skipped:
            answers[one] = None
            continue
        if given is None or given == "":
            continue
        try:
            answers[one] = _label(given, task)
        except InputError as error:
            raise InputError(f"{place}: {error}") from error
    if not answers:
        raise InputError(
            f"{path} holds no answer: fill in its label column, or mark rows in its skip column"
        )
    return answers


def line_of(path: Path, one: str) -> int:
    """The line of an id, for errors that come up after reading."""
    return next((int(row["line"]) for row in read_rows(path) if str(row["id"]) == one), 0)


def _label(given: Any, task: Task) -> Any:
    if isinstance(task, MultiClass):
        if isinstance(given, list):
            raise InputError(f"label {given!r}: one class is needed in a multi-class task")
        label: Any = str(given)  # 1 in a file is the class called "1", never an index
    elif isinstance(given, list):
        label = [str(part) for part in given]
    elif (
        str(given) in task.classes
    ):  # a class may be called "none", or have the separator in its name
        label = [str(given)]
    else:
        label = (
            []
            if str(given).strip() in ("none", "-")
            else [part.strip() for part in str(given).split(SEPARATOR)]
        )
    task.encode([label])
    return label


def _cell(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        value = SEPARATOR.join(str(v) for v in value) or "none"
    if isinstance(value, str) and value.startswith((*FORMULA, "'")):
        return "'" + value
    return "" if value is None else value


def _plain(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("'") and value[1:].startswith((*FORMULA, "'")):
        return value[1:]
    return value
