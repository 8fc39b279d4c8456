"""Finding arms and selectors by name: the package's own, and third parties' through entry
points.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from tailor.common.checks import shown
from tailor.errors import InputError, UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to classes. Nothing is imported before it is asked for.

    builtin maps a name to "module:Class"; a plugin adds a name by declaring an entry point in
    `group`.
    """

    def __init__(self, kind: str, group: str, builtin: Mapping[str, str]) -> None:
        self.kind = kind
        self.group = group
        self.builtin = dict(builtin)

    def plugins(self) -> dict[str, Any]:
        return {e.name: e for e in entry_points(group=self.group) if e.name not in self.builtin}

    def names(self) -> list[str]:
        return [*self.builtin, *sorted(self.plugins())]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def find(self, name: str) -> type[T]:
        if name in self.builtin:
            module, _, attribute = self.builtin[name].partition(":")
            found: type[T] = getattr(import_module(module), attribute)
            return found
        plugins = self.plugins()
        if name not in plugins:
            raise UnknownName(self.kind, name, self.names())
        loaded: type[T] = plugins[name].load()
        return loaded

    def options(self, name: str) -> dict[str, inspect.Parameter]:
        """The keyword options that `name` takes, with their defaults."""
        found = self.find(name)
        if (
            isinstance(found, type)
            and found.__init__ is object.__init__
            and found.__new__ is object.__new__
        ):
            # inspect would parse source for object's own, which CPython 3.11 can't do in two
            # threads at once
            return {}
        parameters = inspect.signature(found).parameters.values()
        return {p.name: p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}

    def make(self, name: str, *args: Any, **options: Any) -> T:
        known = self.options(name)
        for option in options:
            if option not in known:
                raise UnknownName(
                    f"option of {self.kind} {name!r},", option, known or ["(it has none)"]
                )
        for option, parameter in known.items():
            if parameter.default is inspect.Parameter.empty and option not in options:
                raise InputError(f"{self.kind} {name!r} needs {option}: write {name}({option}=...)")
        try:
            return self.find(name)(*args, **options)
        except TypeError as error:  # a word where a number belongs
            shown = ", ".join(f"{key}={value!r}" for key, value in options.items())
            raise InputError(
                f"{self.kind} {name!r} can't be made with {shown or 'no options'}: {error}"
            ) from error

    def named(self, given: Any) -> tuple[str, dict[str, Any]]:
        """Name and options from a name, "name(option=value)" or (name, options)."""
        if isinstance(given, str):
            return self.parse(given)
        if isinstance(given, (tuple, list)) and len(given) == 2:
            name, options = given
            if isinstance(name, str) and isinstance(options, Mapping):
                return name, dict(options)
        raise InputError(
            f"{self.kind} is {shown(given)}: a name is needed, 'name(option=value)', or (name, "
            f"{{option: value}})"
        )

    def parse(self, text: str) -> tuple[str, dict[str, Any]]:
        """ "galaxy(pending=predicted)" -> ("galaxy", {"pending": "predicted"}).

        Values are numbers, true, false or plain words.
        """
        name, bracket, rest = text.strip().partition("(")
        if not bracket:
            return name.strip(), {}
        if not rest.endswith(")"):
            raise InputError(
                f"{text!r}: a closing bracket is missing; write name(option=value, ...)"
            )
        options: dict[str, Any] = {}
        for part in filter(None, (p.strip() for p in rest[:-1].split(","))):
            key, equals, value = part.partition("=")
            if not equals:
                raise InputError(f"{text!r}: {part!r} is not option=value")
            options[key.strip()] = _value(value.strip())
        return name.strip(), options


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
