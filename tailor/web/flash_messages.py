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
    """At most one message for each session, by the value of its cookie."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_session: OrderedDict[str, FlashMessage] = OrderedDict()

    def leave(self, session: str, message: FlashMessage) -> None:
        with self._lock:
            self._by_session[session] = message
            if len(self._by_session) > MOST:
                self._by_session.popitem(last=False)

    def take(self, session: str) -> FlashMessage | None:
        """The session's message, which is gone after that."""
        with self._lock:
            return self._by_session.pop(session, None)
