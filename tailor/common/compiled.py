"""numba for our inner loops, and word of what it compiles: that is kept on disk, but the first time
it takes seconds.

The word is a line of the log (`tailor.common.compiled`, level INFO): nobody hears it who does not
ask for it.
"""

from __future__ import annotations

import logging

from numba import njit, prange
from numba.core.event import Event, Listener, register

__all__ = ["njit", "prange"]

log = logging.getLogger(__name__)


class _Word(Listener):
    def on_start(self, event: Event) -> None:
        dispatcher = event.data["dispatcher"]
        if getattr(dispatcher, "__module__", "").startswith(
            "tailor."
        ):  # others may compile theirs every time
            log.info("compiling %s (once on this machine)", dispatcher.__name__)

    def on_end(self, event: Event) -> None:
        """It is used at once."""


register("numba:compile", _Word())
