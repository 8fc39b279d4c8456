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
LIFETIME = 30 * 24 * 3600.0  # seconds
#: the most sessions of one user
OF_ONE_USER = 20
#: from one address, where anyone may take any name
OF_ONE_ADDRESS = 500
#: in all
MOST = 10_000


@dataclass
class BrowserSession:
    """A signed-in browser, as the file has it."""

    name: str
    since: float
    # what let the visitor in, as it was then: another password or token, and the session is over
    stamp: str
    owner: str = ""  # whom it counts for: a user, or an address where anyone may take any name
    used: float = 0.0  # last time; 0 for one that never came back with its cookie


class Sessions:
    """The sessions of one project, in a private file."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = folder / FILE
        self._clock = clock
        self._lock = threading.Lock()
        self._by_hash: dict[str, BrowserSession] = {}
        stored = read_private(self.path).get("sessions", {})
        for key, fields in stored.items():
            self._by_hash[key] = BrowserSession(**fields)

    def open(
        self,
        name: str,
        stamp: str,
        owner: str,
        most: int = OF_ONE_USER,
        instead_of: str | None = None,
    ) -> str:
        """Open a session and return its cookie's value.

        Where its owner has `most` already, the one of them that has been unused for longest ends.
        Where there are too many in all, it is one of whoever has most: nobody else's session ends
        by it, and nobody is kept out.

        instead_of: the cookie of a session that ends with it
        """
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            sessions: dict[str, BrowserSession] = {}
            for key, session in self._by_hash.items():
                if not self._is_over(session):
                    sessions[key] = session
            if instead_of:
                sessions.pop(_hash(instead_of), None)
            _leave_at_most(most - 1, sessions, owner)
            while len(sessions) >= MOST:
                owners = Counter(session.owner for session in sessions.values())
                ((busiest, count),) = owners.most_common(1)
                _leave_at_most(count - 1, sessions, busiest)
            sessions[_hash(cookie)] = BrowserSession(
                name,
                since=self._clock(),
                stamp=stamp,
                owner=owner,
            )
            self._write(sessions)
        return cookie

    def _is_over(self, session: BrowserSession) -> bool:
        return session.since <= self._clock() - LIFETIME

    def find(self, cookie: str | None) -> BrowserSession | None:
        """The session with this cookie, unless it is over."""
        if not cookie:
            return None
        session = self._by_hash.get(_hash(cookie))
        if session is None or self._is_over(session):
            return None
        # It is in the file with the next session that opens or ends.
        session.used = self._clock()
        return session

    def close(self, cookie: str) -> None:
        with self._lock:
            sessions = dict(self._by_hash)
            ended = sessions.pop(_hash(cookie), None)
            if ended is not None:
                self._write(sessions)

    def _write(self, sessions: dict[str, BrowserSession]) -> None:
        stored = {}
        for key, session in sessions.items():
            stored[key] = asdict(session)
        write_private(self.path, {"sessions": stored})
        self._by_hash = sessions  # where they could not be written all is as before


def _leave_at_most(most: int, sessions: dict[str, BrowserSession], owner: str) -> None:
    """End sessions of one owner until `most` are left: first those that were never used, as a
    script leaves them behind, then the longest unused.
    """

    def last_use(key: str) -> tuple[float, float]:
        session = sessions[key]
        return session.used, session.since

    keys = [key for key, session in sessions.items() if session.owner == owner]
    keys.sort(key=last_use)
    surplus = max(0, len(keys) - most)
    for key in keys[:surplus]:
        del sessions[key]


def csrf_token(cookie: str) -> str:
    """What a form or script of this session must send along. Another site can't know it: the cookie
    is HttpOnly.
    """
    return hmac.new(cookie.encode(), b"tailor csrf", sha256).hexdigest()


def _hash(cookie: str) -> str:
    return sha256(cookie.encode()).hexdigest()
