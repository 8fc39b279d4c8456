"""Every error this package raises on purpose. Each message gives the value, the limit and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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
