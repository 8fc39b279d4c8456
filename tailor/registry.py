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
    >>> registry.parse("seals(galaxy(pending=predicted), neighbours=50)")
    ('seals', {'family': 'galaxy(pending=predicted)', 'neighbours': 50})
    """

    def __init__(self, kind: str, group: str, builtin: Mapping[str, str]) -> None:
        self.kind = kind
        self.group = group
        self.builtin = dict(builtin)

    def builtin_classes(self) -> dict[str, str]:
        """The package's own: class name -> its module."""
        classes = {}
        for path in self.builtin.values():
            module_name, _, class_name = path.partition(":")
            classes[class_name] = module_name
        return classes

    def plugins(self) -> dict[str, EntryPoint]:
        """Entry points of installed packages, but for names that the package has itself."""
        plugins = {}
        for entry in entry_points(group=self.group):
            if entry.name not in self.builtin:
                plugins[entry.name] = entry
        return plugins

    def names(self) -> list[str]:
        plugins = sorted(self.plugins())
        return [*self.builtin, *plugins]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def find(self, name: str) -> type[T]:
        """The class of this name. Raises UnknownName."""
        # First: no plugin takes the place of a class of the package.
        if name in self.builtin:
            module_name, _, class_name = self.builtin[name].partition(":")
            module = import_module(module_name)
            builtin_class: type[T] = getattr(module, class_name)
            return builtin_class
        plugins = self.plugins()
        if name not in plugins:
            raise UnknownName(self.kind, name, self.names())
        plugin_class: type[T] = plugins[name].load()
        return plugin_class

    def options(self, name: str) -> dict[str, inspect.Parameter]:
        """The keyword options that `name` takes, with their defaults."""
        registered = self.find(name)
        # inspect would parse source for object's own, which CPython 3.11 can't do in two threads
        # at once.
        if _has_plain_constructor(registered):
            return {}
        signature = inspect.signature(registered)
        options = {}
        for parameter in signature.parameters.values():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                options[parameter.name] = parameter
        return options

    def make(self, name: str, *args: Any, **options: Any) -> T:
        """An object of the class of this name.

        args     what every class of this kind is given
        options  of this class

        Raises UnknownName for an option that the class does not take, and InputError where one is
        missing or of the wrong type.
        """
        self._check_options(name, options)
        registered = self.find(name)
        try:
            return registered(*args, **options)
        except TypeError as error:  # a word where a number belongs
            assignments = []
            for key, value in options.items():
                assignments.append(f"{key}={value!r}")
            listed = "no options"
            if assignments:
                listed = ", ".join(assignments)
            raise InputError(
                f"{self.kind} {name!r} can't be made with {listed}: {error}"
            ) from error

    def _check_options(self, name: str, options: Mapping[str, Any]) -> None:
        """Raise UnknownName for an option that `name` does not take, InputError for a missing
        one.
        """
        parameters = self.options(name)
        for option in options:
            if option in parameters:
                continue
            raise UnknownName(
                f"option of {self.kind} {name!r},", option, parameters or ["(it has none)"]
            )
        for option, parameter in parameters.items():
            if option in options:
                continue
            if parameter.default is inspect.Parameter.empty:
                raise InputError(f"{self.kind} {name!r} needs {option}: write {name}({option}=...)")

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

        Values are numbers, true, false, none or plain words, which may have options in brackets of
        their own. The first value may stand alone where the class says whose it is, in
        `unnamed_option`: "seals(margin)".
        """
        text_before, bracket, in_brackets = text.strip().partition("(")
        name = text_before.strip()
        if not bracket:
            return name, {}
        if not in_brackets.endswith(")"):
            raise InputError(
                f"{text!r}: a closing bracket is missing; write name(option=value, ...)"
            )
        options: dict[str, Any] = {}
        for listed in split_outside_brackets(in_brackets[:-1]):
            assignment = listed.strip()
            # A comma may stand after the last option.
            if not assignment:
                continue
            key, value = self._key_and_value(name, assignment, is_first=not options)
            if not key:
                raise InputError(f"{text!r}: {assignment!r} is not option=value")
            options[key] = _value(value)
        return name, options

    def _key_and_value(self, name: str, assignment: str, is_first: bool) -> tuple[str, str]:
        """ "option=value" -> both. The key is empty where it is missing and `name` has no option
        that may stand alone.
        """
        before_brackets, _, _ = assignment.partition("(")
        if "=" in before_brackets:
            key, _, value = assignment.partition("=")
            return key.strip(), value.strip()
        if not is_first or name not in self.names():
            return "", assignment
        unnamed_option = getattr(self.find(name), "unnamed_option", "")
        return unnamed_option, assignment


def split_outside_brackets(text: str) -> list[str]:
    """Split at commas, but for those in brackets.

    >>> split_outside_brackets("galaxy(a=1, b=2), neighbours=50")
    ['galaxy(a=1, b=2)', ' neighbours=50']
    """
    pieces = [""]
    depth = 0
    for character in text:
        if character == "," and depth == 0:
            pieces.append("")
            continue
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        pieces[-1] += character
    return pieces


def _has_plain_constructor(registered: Any) -> bool:
    """Whether a class is made without any arguments, as `object` is."""
    if not isinstance(registered, type):
        return False
    if registered.__init__ is not object.__init__:  # type: ignore[misc]
        return False
    return registered.__new__ is object.__new__


def _value(text: str) -> Any:
    word = text.lower()
    if word in _WORDS:
        return _WORDS[word]
    # Whole numbers first: a float reads them, too.
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
