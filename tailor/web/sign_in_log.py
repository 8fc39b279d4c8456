"""Who signed in or tried to, from where and when, and who took labels away: a line each in a
private file.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = Path("web") / "sign-ins.jsonl"  # in the project's folder
#: bytes after which the file is put aside, in place of the one that was before
LARGEST = 4 * 1024 * 1024

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SignIn:
    """name: None where it is no user's: it may be a password that was typed into the wrong field"""

    time: float  # seconds since 1970
    #: "signed in", "signed out", "wrong password or token", "password changed", "exported ..."
    what: str
    name: str | None
    address: str


class SignInLog:
    """The log of one project. Safe to use from several threads."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float] = time.time,
        largest: int = LARGEST,
    ) -> None:
        self.path = folder / FILE
        self._clock = clock
        self._largest = largest
        self._lock = threading.Lock()

    @property
    def _older_path(self) -> Path:
        return self.path.with_suffix(".1.jsonl")

    def write(self, what: str, name: str | None, address: str) -> None:
        """Where the disk is full people still come in: the server's log says what is missing."""
        entry = SignIn(self._clock(), what, name, address)
        line = json.dumps(asdict(entry)) + "\n"
        try:
            with self._lock:
                self._append(line.encode())
        except OSError as error:
            log.warning("a sign-in could not be logged (%s): %s", error.strerror, line.strip())

    def _append(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        handle = os.open(self.path, flags, 0o600)
        try:
            size = os.fstat(handle).st_size
            os.write(handle, line)
        finally:
            os.close(handle)
        if size + len(line) > self._largest:
            os.replace(self.path, self._older_path)

    def latest(self, n: int) -> list[SignIn]:
        """Up to n entries, newest first. Lines that can't be read are left out."""
        entries: list[SignIn] = []
        with self._lock:
            for path in (self.path, self._older_path):
                if len(entries) < n:
                    entries += reversed(_entries(path))
        return entries[:n]


def _entries(path: Path) -> list[SignIn]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    entries = []
    for line in lines:
        try:
            entries.append(SignIn(**json.loads(line)))
        except (ValueError, TypeError):
            continue  # the power went while it was written
    return entries
