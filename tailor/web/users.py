"""Named users with passwords. The file holds Argon2 hashes and nothing else."""

from __future__ import annotations

from pathlib import Path

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from tailor.errors import InputError, UnknownName
from tailor.web.private_files import locked_file, read_private, write_private

FILE = Path("web") / "users.json"  # in the project's folder
SHORTEST_PASSWORD = 8
LONGEST_PASSWORD = 1024
LONGEST_NAME = 60

_HASHER = PasswordHasher()
#: verified for names that don't exist, so that the time taken does not tell which do
_NOBODY = _HASHER.hash("nobody has this password")


def check_name(name: str) -> str:
    """A visitor's name without spaces around it; InputError where it can't be one."""
    name = name.strip()
    has_right_length = 1 <= len(name) <= LONGEST_NAME
    if not has_right_length or not name.isprintable():
        raise InputError(
            f"the name {name[:80]!r} can't be used: 1 to {LONGEST_NAME} printable characters are "
            "needed"
        )
    return name


class Users:
    """The users of a project."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._version: tuple[int, int] | None = None  # of the file that was read last
        self._cached_hashes: dict[str, str] = {}

    @property
    def _hashes(self) -> dict[str, str]:
        """Read anew when the file has changed: `tailor users` may add someone while the server
        runs.
        """
        try:
            status = self.path.stat()
            version = (status.st_mtime_ns, status.st_ino)
        except FileNotFoundError:
            version = None
        if version != self._version:
            self._cached_hashes = self._load()
            self._version = version
        return self._cached_hashes

    def __len__(self) -> int:
        return len(self._hashes)

    @property
    def names(self) -> list[str]:
        return sorted(self._hashes)

    def add(self, name: str, password: str) -> bool:
        """Add a user (True), or give one who is there a new password (False)."""
        length = len(password)
        if not SHORTEST_PASSWORD <= length <= LONGEST_PASSWORD:
            raise InputError(
                f"the password has {length} characters: at least {SHORTEST_PASSWORD} are needed"
            )
        name = check_name(name)
        new_hash = _HASHER.hash(password)
        with locked_file(self.path):
            hashes = self._load()
            is_new = name not in hashes
            self._write(hashes | {name: new_hash})
        return is_new

    def remove(self, name: str) -> None:
        with locked_file(self.path):
            hashes = self._load()
            if name not in hashes:
                raise UnknownName("user", name, hashes)
            del hashes[name]
            self._write(hashes)

    def _load(self) -> dict[str, str]:
        hashes: dict[str, str] = read_private(self.path).get("users", {})
        return hashes

    def _write(self, hashes: dict[str, str]) -> None:
        write_private(self.path, {"users": hashes})

    def stamp(self, name: str) -> str | None:
        """Changes when the password does, and is None when the user is gone: sessions end then."""
        stored_hash = self._hashes.get(name)
        if not stored_hash:
            return None
        return stored_hash[-16:]

    def check(self, name: str, password: str) -> bool:
        """Whether this is the user's password."""
        stored_hash = self._hashes.get(name)
        try:
            compared_hash = stored_hash or _NOBODY
            is_right = _HASHER.verify(compared_hash, password[:LONGEST_PASSWORD])
        except (VerificationError, InvalidHashError):
            return False
        if stored_hash is None:
            return False
        if _HASHER.check_needs_rehash(stored_hash):
            self._rehash(name, stored_hash, password)
        return is_right

    def _rehash(self, name: str, stored_hash: str, password: str) -> None:
        """By today's parameters, unless user or password have changed meanwhile."""
        new_hash = _HASHER.hash(password)
        with locked_file(self.path):
            hashes = self._load()
            if hashes.get(name) == stored_hash:
                self._write(hashes | {name: new_hash})
