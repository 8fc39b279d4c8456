"""Errors about a value of tailor.toml, told with the file and line of its key."""

from __future__ import annotations

from typing import Any

from tailor.errors import TailorError, UnknownName
from tailor.run.config import FILE, Config


def with_place(error: TailorError, config: Config, *sections: str) -> str:
    """The error's text with the line of the key it is about, as far as that can be told; the file
    alone otherwise. The key is looked for in these sections.
    """
    for section in sections:
        keys = config.section(section)
        for key, value in keys.items():
            if _is_about(error, key, value):
                place = config.place(section, key)
                return f"{place}: {key}: {error}"
    settings_file = config.folder / FILE
    return f"{settings_file}: {error}"


def _is_about(error: TailorError, key: str, value: Any) -> bool:
    """Whether an error is about this key with this value, as far as its text tells."""
    if isinstance(error, UnknownName) and _names_it(value, error.name):
        return True
    text = str(error)
    if text.startswith((f"{key} is ", f"{key} {value!r} ")):
        return True
    if f", {key!r}:" in text:
        return True
    if key != "path":
        return False
    return str(value) in text


def _names_it(value: Any, name: str) -> bool:
    """Whether a name stands in a key's value, or in an entry of it."""
    entries = value
    if not isinstance(value, list):
        entries = [value]
    return any(name in str(entry) for entry in entries)
