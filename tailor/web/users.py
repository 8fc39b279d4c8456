"""Named users with passwords and roles. Of passwords the file holds Argon2 hashes alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from tailor.annotation.roles import ANNOTATOR, OWNER, REVIEWER, check_role
from tailor.errors import InputError, UnknownName
from tailor.run.reaches import user_reaches
from tailor.run.trust import remember
from tailor.web.private_files import locked_file, read_private, write_private
from tailor.web.user_changes import KEPT, UserChange

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


@dataclass(frozen=True)
class _UserFile:
    """What the file holds.

    hashes   of the passwords, by name, in the order in which they were added
    roles    by name; users of a version without roles have none
    changes  oldest first
    """

    hashes: dict[str, str]
    roles: dict[str, str]
    changes: list[UserChange]

    def role(self, name: str) -> str | None:
        """None where there is no such user. Of those that an earlier version has added the first
        is owner and the others are reviewers: no role is below what they did before, and one of
        them can give the others theirs.
        """
        if name not in self.hashes:
            return None
        if name in self.roles:
            return self.roles[name]
        first_user = next(iter(self.hashes))
        if name == first_user:
            return OWNER
        return REVIEWER

    def has_owner(self) -> bool:
        return any(self.role(name) == OWNER for name in self.hashes)

    def with_user(self, name: str, password: str, role: str) -> _UserFile:
        """With this user, new or other than before."""
        # Written down for all: who came first may be removed.
        roles = {}
        for other in self.hashes:
            roles[other] = self.role(other) or role
        return replace(self, hashes=self.hashes | {name: password}, roles=roles | {name: role})

    def without_user(self, name: str) -> _UserFile:
        hashes = dict(self.hashes)
        del hashes[name]
        roles = {}
        for other in hashes:
            roles[other] = self.role(other) or REVIEWER
        return replace(self, hashes=hashes, roles=roles)


class Users:
    """The users of a project, their roles, and what was done to them."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.path = folder / FILE
        self._clock = clock
        self._version: tuple[int, int] | None = None  # of the file that was read last
        self._cached = _UserFile({}, {}, [])

    @property
    def _file(self) -> _UserFile:
        """Read anew when the file has changed: `tailor users` may add someone while the server
        runs.
        """
        try:
            status = self.path.stat()
            version = (status.st_mtime_ns, status.st_ino)
        except FileNotFoundError:
            version = None
        if version != self._version:
            self._cached = self._load()
            self._version = version
        return self._cached

    def __len__(self) -> int:
        return len(self._file.hashes)

    @property
    def names(self) -> list[str]:
        return sorted(self._file.hashes)

    def role(self, name: str) -> str | None:
        """None where there is no such user."""
        return self._file.role(name)

    @property
    def changes(self) -> list[UserChange]:
        """What was done to users, oldest first."""
        return list(self._file.changes)

    # ------------------------------------------------------------------ changes

    def add(self, name: str, password: str, role: str | None = None, *, by: str = "") -> bool:
        """Add a user (True), or give one who is there a new password, and a role where one is named
        (False). The first user is owner, others are annotators where no role is named.
        """
        check_password(password)
        name = check_name(name)
        if role is not None:
            check_role(role)
        new_hash = _HASHER.hash(password)
        with locked_file(self.path):
            users = self._load()
            before = users.role(name)
            usual = OWNER
            if users.hashes:
                usual = ANNOTATOR
            after = role or before or usual
            if before is None and not users.hashes and after != OWNER:
                raise InputError(
                    f"{name!r} is the first user and can't be {after}: without an owner nobody "
                    "could manage users. Add the owner first"
                )
            changed = users.with_user(name, new_hash, after)
            _check_has_owner(changed)
            if before is None:
                what = "added"
            else:
                what = "password"
            self._write(changed, self._change(changed, by, what, name, before, after))
            if not users.hashes:
                # All of them are made here; of those that were there before, nobody knows who
                # made them.
                remember(self.folder, user_reaches(self.folder))
        return before is None

    def set_role(self, name: str, role: str, *, by: str, undoes: int | None = None) -> None:
        """Raises UnknownName for a name or role that there is not, InputError where no owner would
        be left.
        """
        check_role(role)
        with locked_file(self.path):
            users = self._load()
            before = _role_of(users, name)
            changed = users.with_user(name, users.hashes[name], role)
            _check_has_owner(changed)
            change = self._change(changed, by, "role", name, before, role, undoes=undoes)
            self._write(changed, change)

    def change_password(self, name: str, password: str) -> None:
        """By the user himself."""
        check_password(password)
        new_hash = _HASHER.hash(password)
        with locked_file(self.path):
            users = self._load()
            role = _role_of(users, name)
            changed = users.with_user(name, new_hash, role)
            self._write(changed, self._change(changed, name, "password", name, role, role))

    def remove(self, name: str, *, by: str = "", undoes: int | None = None) -> None:
        """Raises InputError where users would be left without an owner."""
        with locked_file(self.path):
            users = self._load()
            before = _role_of(users, name)
            changed = users.without_user(name)
            _check_has_owner(changed)
            change = self._change(
                changed,
                by,
                "removed",
                name,
                before,
                None,
                undoes=undoes,
                password=users.hashes[name],
            )
            self._write(changed, change)

    def undo(self, number: int, *, by: str) -> UserChange:
        """Take back the change with this number: an added user goes, a removed one comes back, a
        role is what it was. Raises InputError for a password, and where the user has changed since.
        """
        change = self._find_change(number)
        role_now = self.role(change.name)
        if change.what == "password":
            raise InputError("a password that was changed stays changed: set another one")
        if role_now != change.role_after:
            raise InputError(f"{change.name!r} was changed again since: take that back first")
        if change.role_before is None:
            self.remove(change.name, by=by, undoes=number)
        elif change.role_after is None:
            self._bring_back(change, by)
        else:
            self.set_role(change.name, change.role_before, by=by, undoes=number)
        return change

    def _find_change(self, number: int) -> UserChange:
        for change in self._file.changes:
            if change.undoes == number:
                raise InputError(f"{change.by or 'someone'} has taken this back already")
        for change in self._file.changes:
            if change.number == number:
                return change
        raise InputError(f"there is no change {number} of users to take back")

    def _bring_back(self, removal: UserChange, by: str) -> None:
        name = removal.name
        assert removal.password is not None
        assert removal.role_before is not None
        with locked_file(self.path):
            users = self._load()
            if name in users.hashes:
                raise InputError(f"{name!r} was added again since")
            role = removal.role_before
            changed = users.with_user(name, removal.password, role)
            change = self._change(changed, by, "added", name, None, role, undoes=removal.number)
            self._write(changed, change)

    def _change(
        self,
        users: _UserFile,
        by: str,
        what: str,
        name: str,
        before: str | None,
        after: str | None,
        *,
        undoes: int | None = None,
        password: str | None = None,
    ) -> UserChange:
        number = 1
        if users.changes:
            number = users.changes[-1].number + 1
        return UserChange(
            number=number,
            time=self._clock(),
            by=by,
            what=what,
            name=name,
            role_before=before,
            role_after=after,
            undoes=undoes,
            password=password,
        )

    # ------------------------------------------------------------------ the file

    def _load(self) -> _UserFile:
        content = read_private(self.path)
        changes = []
        for fields in content.get("changes", []):
            changes.append(UserChange.read(fields))
        return _UserFile(content.get("users", {}), content.get("roles", {}), changes)

    def _write(self, users: _UserFile, change: UserChange | None = None) -> None:
        """The users and what was done to them, in one: there is never one without the other."""
        changes = users.changes
        if change is not None:
            changes = [*changes, change][-KEPT:]
        content = {
            "users": users.hashes,
            "roles": users.roles,
            "changes": [asdict(each) for each in changes],
        }
        write_private(self.path, content)

    # ------------------------------------------------------------------ passwords

    def stamp(self, name: str) -> str | None:
        """Changes when the password does, and is None when the user is gone: sessions end then."""
        stored_hash = self._file.hashes.get(name)
        if not stored_hash:
            return None
        return stored_hash[-16:]

    def check(self, name: str, password: str) -> bool:
        """Whether this is the user's password."""
        stored_hash = self._file.hashes.get(name)
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
            users = self._load()
            if users.hashes.get(name) == stored_hash:
                self._write(replace(users, hashes=users.hashes | {name: new_hash}))


def check_password(password: str) -> None:
    """Raises InputError where it is too short or too long."""
    length = len(password)
    if not SHORTEST_PASSWORD <= length <= LONGEST_PASSWORD:
        raise InputError(
            f"the password has {length} characters: at least {SHORTEST_PASSWORD} are needed, and "
            f"at most {LONGEST_PASSWORD}"
        )


def _role_of(users: _UserFile, name: str) -> str:
    role = users.role(name)
    if role is None:
        raise UnknownName("user", name, users.hashes)
    return role


def _check_has_owner(users: _UserFile) -> None:
    """Whoever takes the last user away wants nobody in; but users need someone who manages them."""
    if users.hashes and not users.has_owner():
        raise InputError(
            "no owner would be left: make another one owner first (`tailor users role NAME owner`)"
        )
