"""Reading TOML files whose keys are declared beforehand; errors name the file and the line.

A file's tables are declared as `{"table": {"key": Key(...)}}`. Reading checks every name and type,
and fills in defaults:

>>> import tempfile
>>> from pathlib import Path
>>> keys = {"batch": Key(WHOLE, 100, "examples a round"), "name": Key(TEXT, None, "what it is")}
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "run.toml"
...     _ = path.write_text("[selection]\\nbatch = 20\\n")
...     file = TomlFile.read(path)
>>> file.check({"selection": keys})
>>> file.table("selection", keys)
{'batch': 20, 'name': None}

Both tailor.toml and the files of experiments are read in this way. It is a page of code instead of
pydantic, because experiments run where pydantic is not installed, and because neither pydantic nor
tomllib knows the line of a key.
"""

from __future__ import annotations

import json
import re
import reprlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailor.errors import InputError, UnknownName

TEXT = (str,)
WHOLE = (int,)
NUMBER = (int, float)
TEXTS = (list,)
SWITCH = (bool,)
TABLE = (dict,)
#: what a type is called in an error, where Python's name for it would not do
TYPE_NAMES: dict[type, str] = {list: "list of texts", bool: "true or false"}
#: the heading of a table, [name], or of an entry in an array of tables, [[name]]
HEADING = re.compile(r"\s*\[(\[?)\s*([^\]]+?)\s*\]")


@dataclass(frozen=True)
class Key:
    """One key of a table.

    kinds     the types that its value may have
    default   its value where the file does not name it; None: it has none
    doc       what it means, in a few words, for errors and for files that explain themselves
    required  whether a table without it is refused
    """

    kinds: tuple[type, ...]
    default: Any
    doc: str
    required: bool = False


Keys = Mapping[str, Key]


@dataclass(frozen=True)
class TomlFile:
    """A TOML file that was read.

    text    as it stands in the file, for the lines of its keys
    tables  its values by table, as they are in the file
    """

    path: Path
    text: str
    tables: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> TomlFile:
        """Raises InputError where the file is not TOML."""
        try:
            # Editors on Windows put a byte order mark first, which TOML does not allow.
            text = path.read_text(encoding="utf-8-sig")
            tables = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: {error}") from error
        return cls(path, text, tables)

    def place(
        self,
        table: str,
        key: str | None = None,
        entry: int = 0,
    ) -> str:
        """Where a key of a table stands, or the table itself, for errors: "tailor.toml, line 3".

        entry  which one of several [[table]], from 0
        """
        line = line_of_key(
            self.text,
            table,
            key,
            entry,
        )
        return f"{self.path}, line {line}"

    def _error(
        self,
        message: str | Exception,
        table: str,
        key: str | None = None,
        entry: int = 0,
    ) -> InputError:
        """The error about a key of a table, or about the table itself."""
        place = self.place(table, key, entry)
        return InputError(f"{place}: {message}")

    def check(self, tables: Mapping[str, Keys], arrays: Mapping[str, Keys] | None = None) -> None:
        """Raises InputError for a name that is not known and for a value of another type.

        tables, arrays  the keys of each [name] and of each [[name]] that the file may have
        """
        arrays = arrays or {}
        for name, content in self.tables.items():
            if name in tables:
                self._check_table(name, content, tables[name])
            elif name in arrays:
                self._check_array(name, content, arrays[name])
            else:
                sections = [*tables, *arrays]
                unknown = UnknownName("section", name, sections)
                raise self._error(unknown, name)

    def _check_table(
        self,
        name: str,
        content: Any,
        keys: Keys,
    ) -> None:
        if not isinstance(content, dict):
            raise self._error(f"{name} is a section: write [{name}] and its keys below", name)
        self._check_values(content, name, keys)

    def _check_array(
        self,
        name: str,
        content: Any,
        keys: Keys,
    ) -> None:
        if not _is_list_of_tables(content):
            raise self._error(
                f"{name} is a list: write [[{name}]] and its keys below, once for each", name
            )
        for number, values in enumerate(content):
            self._check_values(
                values,
                name,
                keys,
                number,
            )

    def _check_values(
        self,
        values: dict[str, Any],
        table: str,
        keys: Keys,
        entry: int = 0,
    ) -> None:
        for name, value in values.items():
            if name not in keys:
                unknown = UnknownName(f"key in [{table}]", name, keys)
                raise self._error(unknown, table, name, entry)
            fault = type_fault(value, keys[name])
            if fault is None:
                continue
            # The values of a file may be of any length.
            value_text = reprlib.repr(value)
            raise self._error(
                f"{name} = {value_text} {fault}",
                table,
                name,
                entry,
            )

    def table(self, name: str, keys: Keys) -> dict[str, Any]:
        """The value of each key of [name], its default where the file does not hold it.

        Raises InputError where a required key is missing. The file must have passed check(), so
        that what is written wrong is told before what is missing: most often they are one.
        """
        values = self.tables.get(name, {})
        return self._complete(values, name, keys)

    def entries(self, name: str, keys: Keys) -> list[dict[str, Any]]:
        """As table(), of each [[name]] in the file."""
        entries = []
        for number, values in enumerate(self.tables.get(name, [])):
            entry = self._complete(
                values,
                name,
                keys,
                number,
            )
            entries.append(entry)
        return entries

    def _complete(
        self,
        values: dict[str, Any],
        table: str,
        keys: Keys,
        entry: int = 0,
    ) -> dict[str, Any]:
        complete = {}
        for name, key in keys.items():
            if key.required and name not in values:
                message = f"[{table}] needs {name}: {key.doc}"
                if table in self.tables:
                    raise self._error(message, table, entry=entry)
                # A table that is not in the file has no line.
                raise InputError(f"{self.path}: {message}")
            complete[name] = values.get(name, key.default)
        return complete


def _is_list_of_tables(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(entry, dict) for entry in value)


def type_fault(value: Any, key: Key) -> str | None:
    """What is wrong with the type of a key's value; None where nothing is."""
    if not _has_type(value, key.kinds):
        names = []
        for kind in key.kinds:
            names.append(TYPE_NAMES.get(kind, kind.__name__))
        allowed = " or ".join(names)
        return f"must be {allowed}: {key.doc}"
    if not isinstance(value, list):
        return None
    for member in value:
        if not isinstance(member, str):
            return f"must be list of texts, which {member!r} is not: {key.doc}"
    return None


def _has_type(value: Any, kinds: tuple[type, ...]) -> bool:
    # To Python true is a whole number.
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds)


def line_of_key(
    text: str,
    table: str,
    key: str | None,
    entry: int = 0,
) -> int:
    """The line of a key in a table of a TOML text, or of the table where the key is None.

    Where the key can't be found, as in an inline table, it is the table's line, and without that
    the first.

    entry  which one of several [[table]], from 0
    """
    escaped_key = re.escape(key or "")
    escaped_table = re.escape(table)
    key_pattern = re.compile(rf"\s*[\"']?{escaped_key}[\"']?\s*=")
    inline_pattern = re.compile(rf"\s*{escaped_table}\s*=")
    current_table = ""
    inside = False
    entries_before = 0
    table_line = 1
    # Not splitlines(): it would count U+0085 and others that are no line ends to TOML.
    for number, line in enumerate(text.split("\n"), 1):
        heading = HEADING.match(line)
        if heading is None:
            is_key = inside and key is not None and key_pattern.match(line)
            # Before the first heading a table may stand as `name = {...}`.
            is_inline_table = current_table == "" and inline_pattern.match(line)
            if is_key or is_inline_table:
                return number
            continue
        current_table = heading[2]
        inside = current_table == table
        is_entry = heading[1] == "["
        if inside and is_entry:
            inside = entries_before == entry
            entries_before += 1
        if not inside:
            continue
        table_line = number
        if key is None:
            return number
    return table_line


def as_toml(value: Any) -> str:
    """A text, number, switch or list of these, as TOML writes it.

    JSON writes these in the same way, except that TOML wants DEL escaped, and characters beyond
    U+FFFF as they are instead of as pairs of surrogates.

    >>> as_toml(['say "hi"', 0.1, True])
    '["say \\\\"hi\\\\"", 0.1, true]'
    """
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")
