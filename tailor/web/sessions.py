"""Who is signed in: random cookies, of which only the hash is kept. They outlive the server."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from tailor.errors import InputError
from tailor.web.files import read_private, write_private

FILE = Path("web") / "sessions.json"  # in the project's folder
LIFETIME = 30 * 24 * 3600.0
#: of one name, of which the oldest goes when there are more; and in all, beyond which nobody new comes in
OF_ONE_NAME, MOST = 20, 10_000


@dataclass(frozen=True)
class Visitor:
    """A signed-in browser."""

    name: str
    since: float
    stamp: str  # what let him in, as it was then: another password, another token, and the session is over


class Sessions:
    """Sessions of one project, in a private file."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.path, self._clock = folder / FILE, clock
        self._lock = threading.Lock()
        self._known = {key: Visitor(**one) for key, one in read_private(self.path).get("sessions", {}).items()}

    def open(self, name: str, stamp: str) -> str:
        """A new session; what its cookie holds. However often someone signs in, nobody else's session ends by it."""
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            now = self._clock()
            live = {key: one for key, one in self._known.items() if one.since > now - LIFETIME}
            own = sorted((key for key, one in live.items() if one.name == name), key=lambda key: live[key].since)
            for key in own[: max(0, len(own) + 1 - OF_ONE_NAME)]:
                del live[key]
            if len(live) >= MOST:
                raise InputError(
                    f"{len(live):,} browsers are signed in, and no more can be: whoever runs the server may delete "
                    f"{FILE} in the run's folder and start it again, which signs out everybody"
                )
            self._known = live | {_hash(cookie): Visitor(name, now, stamp)}
            self._save()
        return cookie

    def find(self, cookie: str | None) -> Visitor | None:
        found = self._known.get(_hash(cookie)) if cookie else None
        return found if found and found.since > self._clock() - LIFETIME else None

    def close(self, cookie: str) -> None:
        with self._lock:
            if self._known.pop(_hash(cookie), None):
                self._save()

    def _save(self) -> None:
        write_private(self.path, {"sessions": {key: asdict(one) for key, one in self._known.items()}})


def csrf_token(cookie: str) -> str:
    """What a form or script of this session must send along. Another site can't know it: the cookie is HttpOnly."""
    return hmac.new(cookie.encode(), b"tailor csrf", sha256).hexdigest()


def _hash(cookie: str) -> str:
    return sha256(cookie.encode()).hexdigest()
