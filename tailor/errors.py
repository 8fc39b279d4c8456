"""Every error this package raises on purpose. Each message gives the value, the limit and what to
do.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path


def without_paths(error: BaseException, folders: Iterable[Path] = ()) -> str:
    """What went wrong, for people who need not know where the files lie: of each of these folders,
    however it is written, the last part is left, and of the user's own folder a ~.
    """
    if isinstance(error, OSError):  # its text ends in the file's name
        return error.strerror or type(error).__name__
    text = str(error)
    names = {os.path.expanduser("~"): "~"}
    for folder in folders:
        names |= {
            str(written): folder.absolute().name
            for written in (folder, folder.absolute(), folder.resolve())
        }
    for written in sorted(names, key=len, reverse=True):  # a folder before the one that it lies in
        if os.sep in written.rstrip(os.sep):  # not a mere name, nor the root
            text = text.replace(written, names[written])
    return text


class TailorError(Exception):
    """Root of all errors raised by this package."""


class InputError(TailorError, ValueError):
    """Something handed in is not what it must be. Nothing was changed."""


class UnknownName(InputError):
    """A name that is not known; the message lists the nearest right ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, others: int = 0) -> None:
        """others: how many more are known than are handed in, where there are too many to compare
        them all.
        """
        known = sorted(known)
        more = max(0, len(known) - 20) + others
        some = ", ".join(known[:20]) + (f" and {more:,} more" if more else "")
        near = [] if others else difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(repr(n) for n in near)}?" if near else f"known: {some}"
        super().__init__(f"unknown {kind} {name!r}: {hint}")
        self.name = name
        self.near = near
        self.known = known


class Exhausted(TailorError):
    """An arm has no free example left that it would offer."""
