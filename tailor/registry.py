"""Finding classes by name: the package's own, and third parties' through entry points."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from tailor.common.checks import shown
from tailor.errors import InputError, UnknownName

T = TypeVar("T")

_WORDS = {"true": True, "false": False, "none": None}


class Registry(Generic[T]):
    """Names to classes. Nothing is imported before it is asked for.

    kind     what it holds, for messages: "selector"
    group    the group of entry points in which plugins declare theirs
    builtin  name -> "module:Class"

    >>> from tailor.strategies import registry
    >>> registry.find("badge").__name__
    'Badge'
    >>> registry.parse("galaxy(pending=predicted)")
    ('galaxy', {'pending': 'predicted'})
    """

    def __init__(self, kind: str, group: str, builtin: Mapping[str, str]) -> None:
        self.kind = kind
        self.group = group
        self.builtin = dict(builtin)

    def builtin_classes(self) -> dict[str, str]:
        """The package's own: class name -> its module."""
        classes = {}
        for path in self.builtin.values():
            module, _, class_name = path.partition(":")
            classes[class_name] = module
        return classes

    def plugins(self) -> dict[str, EntryPoint]:
        """Entry points of installed packages, but for names that the package has itself."""
        declared = entry_points(group=self.group)
        return {entry.name: entry for entry in declared if entry.name not in self.builtin}

    def names(self) -> list[str]:
        return [*self.builtin, *sorted(self.plugins())]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def find(self, name: str) -> type[T]:
        """The class of this name. Raises UnknownName."""
        if name in self.builtin:
            module, _, class_name = self.builtin[name].partition(":")
            builtin_class: type[T] = getattr(import_module(module), class_name)
            return builtin_class
        plugins = self.plugins()
        if name not in plugins:
            raise UnknownName(self.kind, name, self.names())
        plugin_class: type[T] = plugins[name].load()
        return plugin_class

    def options(self, name: str) -> dict[str, inspect.Parameter]:
        """The keyword options that `name` takes, with their defaults."""
        made_by = self.find(name)
        if (
            isinstance(made_by, type)
            and made_by.__init__ is object.__init__
            and made_by.__new__ is object.__new__
        ):
            # inspect would parse source for object's own, which CPython 3.11 can't do in two
            # threads at once
            return {}
        parameters = inspect.signature(made_by).parameters.values()
        return {p.name: p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}

    def make(self, name: str, *args: Any, **options: Any) -> T:
        """An object of the class of this name.

        args     what every class of this kind is given
        options  of this class

        Raises UnknownName for an option that the class does not take, and InputError where one is
        missing or of the wrong type.
        """
        parameters = self.options(name)
        for option in options:
            if option not in parameters:
                raise UnknownName(
                    f"option of {self.kind} {name!r},", option, parameters or ["(it has none)"]
                )
        for option, parameter in parameters.items():
            if parameter.default is inspect.Parameter.empty and option not in options:
                raise InputError(f"{self.kind} {name!r} needs {option}: write {name}({option}=...)")
        try:
            return self.find(name)(*args, **options)
        except TypeError as error:  # a word where a number belongs
            listed = ", ".join(f"{key}={value!r}" for key, value in options.items())
            raise InputError(
                f"{self.kind} {name!r} can't be made with {listed or 'no options'}: {error}"
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

        Values are numbers, true, false, none or plain words.
        """
        name, bracket, rest = text.strip().partition("(")
        if not bracket:
            return name.strip(), {}
        if not rest.endswith(")"):
            raise InputError(
                f"{text!r}: a closing bracket is missing; write name(option=value, ...)"
            )
        options: dict[str, Any] = {}
        for part in rest[:-1].split(","):
            part = part.strip()
            if not part:
                continue
            key, equals, value = part.partition("=")
            if not equals:
                raise InputError(f"{text!r}: {part!r} is not option=value")
            options[key.strip()] = _value(value.strip())
        return name.strip(), options


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
