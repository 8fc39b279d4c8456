"""numba's decorators for inner loops, with a line in the log for each loop that is compiled.

What is compiled is kept on disk, but the first time it takes seconds. The line (logger
`tailor.common.compiled`, level INFO) tells whoever asks for it what the wait is for.
"""

from __future__ import annotations

import logging

from numba import njit, prange
from numba.core.event import Event, Listener, register

__all__ = ["njit", "prange"]

log = logging.getLogger(__name__)


class _CompilationLogger(Listener):
    def on_start(self, event: Event) -> None:
        dispatcher = event.data["dispatcher"]
        module = getattr(dispatcher, "__module__", "")
        # Other packages' functions are not kept by us, and may be compiled every time.
        if module.startswith("tailor."):
            log.info("compiling %s (once on this machine)", dispatcher.__name__)

    def on_end(self, event: Event) -> None:
        """The function is used at once, which needs no line."""


register("numba:compile", _CompilationLogger())
