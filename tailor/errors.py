"""The errors that this package raises. Each message gives the value, the limit and what to do."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

#: how many right names a message lists
LISTED = 20


def without_paths(error: BaseException, folders: Iterable[Path] = ()) -> str:
    """The message of an error for people who need not know where the files lie.

    folders  of each of these, however it is written, only the last part is left, and of the user's
             home folder a ~
    """
    if isinstance(error, OSError):  # its text ends in the file's name
        return error.strerror or type(error).__name__
    text = str(error)
    short_names = {os.path.expanduser("~"): "~"}
    for folder in folders:
        for path in (folder, folder.absolute(), folder.resolve()):
            short_names[str(path)] = folder.absolute().name
    # The longest first: a folder before the one that it lies in.
    for path_text in sorted(short_names, key=len, reverse=True):
        if os.sep in path_text.rstrip(os.sep):  # not a mere name, nor the root
            text = text.replace(path_text, short_names[path_text])
    return text


class TailorError(Exception):
    """Root of all errors raised by this package."""


class InputError(TailorError, ValueError):
    """Something handed in is not what it must be. Nothing was changed."""


class UnknownName(InputError):
    """A name that is not known; the message lists the nearest right ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, others: int = 0) -> None:
        """
        kind    what it should be the name of: "class"
        known   the right names
        others  how many right names there are besides, where they are too many to compare them all
        """
        known = sorted(known)
        near = [] if others else difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        if near:
            hint = f"did you mean {' or '.join(map(repr, near))}?"
        else:
            hint = f"known: {', '.join(known[:LISTED])}"
            unlisted = max(0, len(known) - LISTED) + others
            if unlisted:
                hint += f" and {unlisted:,} more"
        super().__init__(f"unknown {kind} {name!r}: {hint}")
        self.name = name
        self.near = near
        self.known = known


class Exhausted(TailorError):
    """An arm has no free example left that it would offer."""
