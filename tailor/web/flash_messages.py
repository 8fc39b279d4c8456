"""What a page says once, on what was just done. It is kept here and not in the address: there
anyone could write it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

MOST = 1000  # the oldest goes when there are more


@dataclass(frozen=True)
class FlashMessage:
    text: str
    is_problem: bool = False


class FlashMessages:
    """At most one for each session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str, FlashMessage] = OrderedDict()

    def leave(self, session: str, note: FlashMessage) -> None:
        with self._lock:
            self._waiting[session] = note
            if len(self._waiting) > MOST:
                self._waiting.popitem(last=False)

    def take(self, session: str) -> FlashMessage | None:
        with self._lock:
            return self._waiting.pop(session, None)
