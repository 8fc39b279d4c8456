"""A run's SQLite file: connecting to it, its newest event, its own check, and errors in words."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from tailor.storage.base import StoreDamaged, StoreError
from tailor.storage.chain import ADVICE as DAMAGE_ADVICE
from tailor.storage.chain import BEGINNING, ChainHead
from tailor.storage.run_head import RunHead

#: Seconds to wait for another program that holds the file.
LOCKED_SECONDS = 10
#: Bytes of a file that are read at once.
PIECE = 1 << 20
#: Of SQLite's messages, those that are kept.
MOST_PROBLEMS = 20

#: What to do, by words in SQLite's message.
ADVICE = {
    "full": "free some space and go on, nothing acknowledged is lost",
    "readonly": "the file or its folder is read-only: make it writable, or copy the run elsewhere",
    "unable to open": "check that the folder exists and may be written",
    "locked": "another program holds the file: close it",
    "UNIQUE": "an id is there already",
}
#: Words in SQLite's message about a file that is not what it was.
DAMAGE = (
    "malformed",
    "not a database",
    "no such table",
    "no such column",
    "decode",
    "unsupported file format",
    "disk I/O error",
    "too big",
)


def connect(file: Path, mode: str) -> sqlite3.Connection:
    """A connection where every statement commits by itself.

    mode  "ro", which never changes the file or its log, or "rwc"
    """
    return sqlite3.connect(
        f"{file.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=LOCKED_SECONDS,
        check_same_thread=False,
    )


@contextlib.contextmanager
def explained_errors(action: str, path: Path) -> Iterator[None]:
    """SQLite's errors in words that say what to do."""
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite quotes the damaged text in its message
        damaged_text = error.object[:80]
        raise StoreDamaged(
            f"can't {action} {path}: the file is damaged at {damaged_text!r}; {DAMAGE_ADVICE}"
        ) from error
    except sqlite3.Error as error:
        reason = str(error)
        if any(words in reason for words in DAMAGE):
            raise StoreDamaged(
                f"can't {action} {path}: {reason}; the file is damaged; {DAMAGE_ADVICE}"
            ) from error
        known_advice = [advice for words, advice in ADVICE.items() if words in reason]
        if known_advice:
            advice = known_advice[0]
        else:
            advice = "see the message"
        raise StoreError(f"can't {action} {path}: {reason}; {advice}") from error


def newest_event(db: sqlite3.Connection) -> ChainHead:
    """The newest event; BEGINNING where there is none."""
    row = db.execute("SELECT number, digest FROM events ORDER BY number DESC LIMIT 1").fetchone()
    if row:
        return ChainHead(*row)
    return BEGINNING


def check_reaches(db: sqlite3.Connection, head: RunHead | None, path: Path) -> None:
    """Raise StoreDamaged where a file does not reach as far as the run got.

    head  what is known of that beside the file; None: nothing
    """
    newest = newest_event(db)
    row = db.execute("SELECT number, digest FROM closed").fetchone()
    if row is not None and ChainHead(*row) != newest:
        raise StoreDamaged(
            f"{path} ends at event {newest.number} and was closed at event {row[0]}; "
            f"{DAMAGE_ADVICE}"
        )
    if head is None:
        if row is None:
            raise StoreDamaged(
                f"{path} was copied while the run was open, or its {path.name}.head is lost: "
                "whether it is complete can't be known. Copy an open run with `tailor backup`; "
                f"{DAMAGE_ADVICE}"
            )
        return
    if newest.number < head.chain.number:
        raise StoreDamaged(
            f"{path} has {newest.number} events of {head.chain.number} that were written: the "
            f"others are lost, perhaps with its log {path.name}-wal; {DAMAGE_ADVICE}"
        )
    if head.chain.number == 0:
        return
    query = "SELECT digest FROM events WHERE number = ?"
    row = db.execute(query, (head.chain.number,)).fetchone()
    if row is None or row[0] != head.chain.digest:
        raise StoreDamaged(
            f"event {head.chain.number} of {path} is not the one that {path.name}.head knows: "
            f"they are of two runs, or damaged; {DAMAGE_ADVICE}"
        )


def emptied(path: Path, head: RunHead | None) -> StoreDamaged:
    """The error for a file that is gone or empty where a run was."""
    if path.exists():
        state = "is empty"
    else:
        state = "is gone"
    if head is None:
        return StoreDamaged(
            f"{path} {state}, and nothing tells whether a run was in it: delete it to begin a run, "
            "or bring a backup back with `tailor restore`"
        )
    return StoreDamaged(
        f"{path} {state}, though {head.chain.number} events were written to it: bring a backup "
        f"back with `tailor restore`. To begin anew, delete {path.name}.head too"
    )


def integrity_problems(db: sqlite3.Connection) -> list[str]:
    """What SQLite's own check finds wrong."""
    try:
        rows = db.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})").fetchall()
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [message for (message,) in rows if message != "ok"]


def sha256_of(file: Path) -> str:
    """The checksum of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with file.open("rb", buffering=0) as content:
        while piece := content.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


class FileInUse:
    """A file that a store of this process has open.

    It matters to who reads the file by other means than SQLite: when a process closes a file, the
    system takes away all locks that the process has on it, also those of SQLite.
    """

    _lock = threading.Lock()
    _users: ClassVar[Counter[tuple[int, int]]] = Counter()

    def __init__(self, file: Path) -> None:
        self._path = file
        self._identity = _identity(file)
        with self._lock:
            self._users[self._identity] += 1

    def is_only_user(self) -> bool:
        """Whether no other store of this process has the file open."""
        with self._lock:
            return self._users[self._identity] == 1

    def is_in_place(self) -> bool:
        """Whether the file is still there under its name."""
        try:
            return _identity(self._path) == self._identity
        except OSError:
            return False

    def release(self) -> None:
        with self._lock:
            self._users[self._identity] -= 1
            if self._users[self._identity] <= 0:
                del self._users[self._identity]


def _identity(file: Path) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_dev, status.st_ino
