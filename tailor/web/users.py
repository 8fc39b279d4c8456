"""Named users with passwords. The file holds Argon2 hashes and nothing else."""

from __future__ import annotations

from pathlib import Path

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from tailor.errors import InputError, UnknownName
from tailor.web.private_files import changing, read_private, write_private

FILE = Path("web") / "users.json"  # in the project's folder
SHORTEST_PASSWORD, LONGEST_PASSWORD, LONGEST_NAME = 8, 1024, 60

_HASHER = PasswordHasher()
#: verified for names that don't exist, so that the time taken does not tell which do
_NOBODY = _HASHER.hash("nobody has this password")


def check_name(name: str) -> str:
    """A name of an annotator, without spaces around it."""
    name = name.strip()
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise InputError(
            f"the name {name[:80]!r} can't be used: 1 to {LONGEST_NAME} printable characters are "
            "needed"
        )
    return name


class Users:
    """The users of a project."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._seen: tuple[int, int] | None = None
        self._read: dict[str, str] = {}

    @property
    def _hashes(self) -> dict[str, str]:
        """Read anew when the file has changed: `tailor users` may add someone while the server
        runs.
        """
        try:
            status = self.path.stat()
            now = (status.st_mtime_ns, status.st_ino)
        except FileNotFoundError:
            now = None
        if now != self._seen:
            self._read = self._load()
            self._seen = now
        return self._read

    def __len__(self) -> int:
        return len(self._hashes)

    @property
    def names(self) -> list[str]:
        return sorted(self._hashes)

    def add(self, name: str, password: str) -> bool:
        """A new user (True), or a new password for one who is there (False)."""
        if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
            raise InputError(
                f"the password has {len(password)} characters: at least {SHORTEST_PASSWORD} are "
                "needed"
            )
        name = check_name(name)
        made = _HASHER.hash(password)
        with changing(self.path):
            users = self._load()
            is_new = name not in users
            write_private(self.path, {"users": users | {name: made}})
        return is_new

    def remove(self, name: str) -> None:
        with changing(self.path):
            users = self._load()
            if name not in users:
                raise UnknownName("user", name, users)
            write_private(
                self.path, {"users": {one: known for one, known in users.items() if one != name}}
            )

    def _load(self) -> dict[str, str]:
        users: dict[str, str] = read_private(self.path).get("users", {})
        return users

    def stamp(self, name: str) -> str | None:
        """Changes when the password does, and is None when the user is gone: sessions end then."""
        known = self._hashes.get(name)
        return known[-16:] if known else None

    def check(self, name: str, password: str) -> bool:
        known = self._hashes.get(name)
        try:
            right = _HASHER.verify(known or _NOBODY, password[:LONGEST_PASSWORD])
        except (VerificationError, InvalidHashError):
            return False
        if known is None:
            return False
        if _HASHER.check_needs_rehash(known):
            self._rehash(name, known, password)
        return right

    def _rehash(self, name: str, known: str, password: str) -> None:
        """By today's parameters, unless user or password have changed meanwhile."""
        made = _HASHER.hash(password)
        with changing(self.path):
            users = self._load()
            if users.get(name) == known:
                write_private(self.path, {"users": users | {name: made}})
