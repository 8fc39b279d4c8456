"""What was done to the users of a project: kept in their file, with its author."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: changes that are kept, the latest ones
KEPT = 10_000


@dataclass(frozen=True)
class UserChange:
    """A user was added or removed, or has another role or password.

    number       1, 2, ...: the order of all changes
    time         seconds since 1970
    by           who did it; of a command, who was logged in
    what         "added", "removed", "role" or "password"
    name         whose
    role_before  None where there was no such user
    role_after   None where there is none any more
    undoes       the number of the change that is taken back
    password     the hash of a user who was removed, so that he can come back
    """

    number: int
    time: float
    by: str
    what: str
    name: str
    role_before: str | None = None
    role_after: str | None = None
    undoes: int | None = None
    password: str | None = None

    @classmethod
    def read(cls, fields: dict[str, Any]) -> UserChange:
        return cls(**fields)
