"""Every error this package raises on purpose. Each message gives the value, the limit and what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

#: a path: from the root, from home, from here, or one that ends in a file's name
_PATH = re.compile(r"""(?<![\w/:.~-])(?:[~.]{0,2}/[^\s'",;:]+|(?:[\w.-]+/)+[\w-]+\.\w+)""")


def without_paths(error: BaseException) -> str:
    """What went wrong, for people who need not know where the files lie: of each path the last part is left."""
    if isinstance(error, OSError):  # its text ends in the file's name
        return error.strerror or type(error).__name__
    return _PATH.sub(lambda found: found[0].rstrip("/").rpartition("/")[2], str(error))


class TailorError(Exception):
    """Root of all errors raised by this package."""


class InputError(TailorError, ValueError):
    """Something handed in is not what it must be. Nothing was changed."""


class UnknownName(InputError):
    """A name that is not known; the message lists the nearest right ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, others: int = 0) -> None:
        """others: how many more are known than are handed in, where there are too many to compare them all."""
        known = sorted(known)
        more = max(0, len(known) - 20) + others
        some = ", ".join(known[:20]) + (f" and {more:,} more" if more else "")
        near = [] if others else difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(repr(n) for n in near)}?" if near else f"known: {some}"
        super().__init__(f"unknown {kind} {name!r}: {hint}")
        self.name, self.near, self.known = name, near, known


class Exhausted(TailorError):
    """An arm has no free example left that it would offer."""
