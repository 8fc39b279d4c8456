"""Who is signed in: random cookies, of which only the hash is kept. They outlive the server."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from tailor.web.private_files import read_private, write_private

FILE = Path("web") / "sessions.json"  # in the project's folder
LIFETIME = 30 * 24 * 3600.0
#: of one user, from one address where names are free, and in all
OF_ONE_USER, OF_ONE_ADDRESS, MOST = 20, 500, 10_000


@dataclass
class Visitor:
    """A signed-in browser."""

    name: str
    since: float
    # what let him in, as it was then: another password, another token, and the session is over
    stamp: str
    owner: str = ""  # whom it counts for: a user, or an address where anyone may take any name
    used: float = 0.0  # last time; 0 for one that never came back with its cookie


class Sessions:
    """Sessions of one project, in a private file."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = folder / FILE
        self._clock = clock
        self._lock = threading.Lock()
        self._known = {
            key: Visitor(**one) for key, one in read_private(self.path).get("sessions", {}).items()
        }

    def open(
        self,
        name: str,
        stamp: str,
        owner: str,
        most: int = OF_ONE_USER,
        instead_of: str | None = None,
    ) -> str:
        """A new session; what its cookie holds.

        Where its owner has `most` already, the one of them that has been unused for longest ends.
        Where there are too many in all, it is one of whoever has most: nobody else's session ends
        by it, and nobody is kept out. instead_of: the cookie of a session that ends with it
        """
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            now = self._clock()
            live = {key: one for key, one in self._known.items() if one.since > now - LIFETIME}
            if instead_of:
                live.pop(_hash(instead_of), None)
            _leave_at_most(most - 1, live, owner)
            while len(live) >= MOST:
                ((busiest, count),) = Counter(one.owner for one in live.values()).most_common(1)
                _leave_at_most(count - 1, live, busiest)
            self._keep(live | {_hash(cookie): Visitor(name, now, stamp, owner)})
        return cookie

    def find(self, cookie: str | None) -> Visitor | None:
        found = self._known.get(_hash(cookie)) if cookie else None
        now = self._clock()
        if found is None or found.since <= now - LIFETIME:
            return None
        found.used = now  # it is in the file with the next session that opens or ends
        return found

    def close(self, cookie: str) -> None:
        with self._lock:
            if _hash(cookie) in self._known:
                self._keep({key: one for key, one in self._known.items() if key != _hash(cookie)})

    def _keep(self, sessions: dict[str, Visitor]) -> None:
        write_private(self.path, {"sessions": {key: asdict(one) for key, one in sessions.items()}})
        self._known = sessions  # where they could not be written all is as before


def _leave_at_most(most: int, sessions: dict[str, Visitor], owner: str) -> None:
    """Of one owner: first those go that were never used, as a script leaves them behind, then the
    longest unused.
    """
    own = [key for key, one in sessions.items() if one.owner == owner]
    own.sort(key=lambda key: (sessions[key].used, sessions[key].since))
    for key in own[: max(0, len(own) - most)]:
        del sessions[key]


def csrf_token(cookie: str) -> str:
    """What a form or script of this session must send along. Another site can't know it: the cookie
    is HttpOnly.
    """
    return hmac.new(cookie.encode(), b"tailor csrf", sha256).hexdigest()


def _hash(cookie: str) -> str:
    return sha256(cookie.encode()).hexdigest()
