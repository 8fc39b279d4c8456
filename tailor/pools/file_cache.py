"""Copies of remote files in a local folder, the least lately used ones going first when it gets too large."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tailor.errors import InputError


class FileCache:
    """Files by key, at most `limit` bytes of them. A copy is written aside and renamed: it is whole or not there.

    Several processes may share a folder; each counts what it found at the start and what it fetched itself. A file
    that another one has removed is fetched again.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        if limit < 1:
            raise InputError(f"a cache of {limit} bytes holds nothing: give at least the size of the largest file")
        self.folder, self.limit = Path(folder), limit
        self._lock = threading.RLock()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            there = [(p.stat().st_atime_ns, p.name, p.stat().st_size) for p in self.folder.iterdir() if p.is_file()]
        except OSError as problem:
            raise InputError(f"the cache {folder} can't be used: {problem.strerror}; give another folder") from problem
        self._sizes.update((name, size) for _, name, size in sorted(there) if not name.endswith(".part"))
        self._make_room(0)

    @property
    def held(self) -> int:
        """Bytes."""
        return sum(self._sizes.values())

    def get(self, key: str, suffix: str, size: int, fetch: Callable[[str], None]) -> Path:
        """The local copy of the file with this key; fetch(path) brings it, where it isn't there."""
        if size > self.limit:
            raise InputError(f"a file of {size:,} bytes does not fit the cache of {self.limit:,}: raise cache_bytes")
        name = hashlib.blake2b(key.encode(), digest_size=16).hexdigest() + suffix
        path = self.folder / name
        with self._lock:
            if name in self._sizes and path.exists():
                self._sizes.move_to_end(name)
                with suppress(OSError):  # the next process sees by it which were used lately
                    os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
                return path
        aside = self.folder / f"{name}.{os.getpid()}.{threading.get_ident()}.part"
        try:
            with self._lock:
                self._make_room(size)
                self.folder.mkdir(parents=True, exist_ok=True)  # whoever tidies up temporary files may have taken it
            fetch(str(aside))
            with self._lock:
                self._sizes.pop(name, None)
                self._make_room(aside.stat().st_size)
                self._sizes[name] = aside.stat().st_size
                os.replace(aside, path)
        finally:
            aside.unlink(missing_ok=True)
        return path

    def _make_room(self, size: int) -> None:
        while self._sizes and self.held + size > self.limit:
            oldest, _ = self._sizes.popitem(last=False)
            (self.folder / oldest).unlink(missing_ok=True)
