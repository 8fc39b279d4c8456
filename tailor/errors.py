"""The errors that this package raises. Each message gives the value, the limit and what to do."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

#: how many right names a message lists
LISTED = 50


def without_paths(error: BaseException, folders: Iterable[Path] = ()) -> str:
    """The message of an error for people who need not know where the files lie.

    folders  of each of these, however it is written, only the last part is left, and of the user's
             home folder a ~
    """
    if isinstance(error, OSError):  # its text ends in the file's name
        return error.strerror or type(error).__name__
    text = str(error)
    home = os.path.expanduser("~")
    short_names = {home: "~"}
    for folder in folders:
        absolute = folder.absolute()
        for path in (folder, absolute, folder.resolve()):
            short_names[str(path)] = absolute.name
    # The longest first: a folder before the one that it lies in.
    longest_first = sorted(short_names, key=len, reverse=True)
    for path_text in longest_first:
        has_folder = os.sep in path_text.rstrip(os.sep)
        if not has_folder:  # a mere name, or the root
            continue
        text = text.replace(path_text, short_names[path_text])
    return text


class TailorError(Exception):
    """Root of all errors raised by this package."""


class InputError(TailorError, ValueError):
    """Something handed in is not what it must be. Nothing was changed."""


class UnknownName(InputError):
    """A name that is not known; the message lists the nearest right ones."""

    def __init__(
        self, kind: str, name: str, right_names: Iterable[str], *, others: int = 0
    ) -> None:
        """
        kind         what it should be the name of: "class"
        right_names  those that it could have been
        others       how many right names there are besides, where they are too many to compare
                     them all
        """
        right_names = sorted(right_names)
        near: list[str] = []
        # With others the nearest might not be among those that are given.
        if not others:
            near = difflib.get_close_matches(
                name,
                right_names,
                n=3,
                cutoff=0.4,
            )
        if near:
            hint = _did_you_mean(near)
        else:
            hint = _list_names(right_names, others)
        super().__init__(f"unknown {kind} {name!r}: {hint}")
        self.name = name
        self.near = near
        self.right_names = right_names


def _did_you_mean(names: list[str]) -> str:
    options = " or ".join(map(repr, names))
    return f"did you mean {options}?"


def _list_names(names: list[str], others: int) -> str:
    """The first names, and how many more there are. others: how many besides these names."""
    listed = ", ".join(names[:LISTED])
    unlisted = max(0, len(names) - LISTED) + others
    if unlisted == 0:
        return f"known: {listed}"
    return f"known: {listed} and {unlisted:,} more"


class NotTrusted(InputError):
    """A run or a model from elsewhere would connect, write or run something that nobody has agreed
    to. Nothing of that was done.
    """


class Exhausted(TailorError):
    """An arm has no free example left that it would offer."""
