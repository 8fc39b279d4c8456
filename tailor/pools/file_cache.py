"""Copies of remote files in a local folder, the least lately used ones going first when it gets too
large.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from tailor.errors import InputError

#: how a copy is named; any other file in the folder is somebody else's and is left alone
OWN = re.compile(r"tailor-[0-9a-f]{32}(\.[^.]*)?")
#: how one is named while it is being fetched, and after how many seconds without a byte nobody
#: fetches it any more
PART = re.compile(OWN.pattern + r"\.\d+\.\d+\.part")
ABANDONED = 24 * 3600


def user_folder() -> Path:
    """This user's own, as the XDG base directory specification says; where it can't be made, a
    temporary one.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        folder = (
            (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "tailor" / "files"
        )
        folder.mkdir(0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):  # nobody's home, or a disk that is only read
        pass
    return _temporary()


@cache
def _temporary() -> Path:
    """One for as long as this process runs."""
    folder = tempfile.mkdtemp(prefix="tailor-files-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


class FileCache:
    """Files by key, at most `limit` bytes of them. A copy is written aside and renamed: it is whole
    or not there.

    Several processes may share a folder; each counts what it found at the start and what it used
    itself. What one of them reads, none removes: a reader has a lock on the copy. Where little else
    is left, the limit waits for readers.

    folder  made where it isn't there, for this user alone; None: user_folder()
    """

    def __init__(self, folder: Path | None, limit: int) -> None:
        if limit < 1:
            raise InputError(
                f"a cache of {limit} bytes holds nothing: give at least the size of the largest "
                "file"
            )
        self.folder = folder or user_folder()
        self.limit = limit
        self.held = 0  # bytes
        self._lock = threading.RLock()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        try:
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            own = []
            for path in self.folder.iterdir():
                with suppress(FileNotFoundError):  # another process has just removed it
                    if OWN.fullmatch(path.name):
                        own.append((path.stat(), path.name))
                    elif (
                        PART.fullmatch(path.name) and time.time() - path.stat().st_mtime > ABANDONED
                    ):
                        path.unlink()  # of a process that was killed
        except OSError as problem:
            reason = (
                f"the cache {self.folder} can't be used: {problem.strerror}; set `cache` of "
                "the pool"
            )
            raise InputError(reason) from problem
        for status, name in sorted(own, key=lambda one: one[0].st_atime_ns):
            self._count(name, status.st_size)
        self._make_room(0)

    @contextmanager
    def hold(
        self, key: str, suffix: str, size: int, fetch: Callable[[str], None]
    ) -> Iterator[Path]:
        """The local copy of the file with this key, which stays meanwhile; fetch(path) brings it,
        where it isn't there.
        """
        if size > self.limit:
            raise InputError(
                f"a file of {size:,} bytes does not fit the cache of {self.limit:,}: raise "
                "cache_bytes"
            )
        path = (
            self.folder
            / f"tailor-{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}{suffix}"
        )
        try:
            with self._there(path) or self._fetched(path, size, fetch):
                yield path
        finally:
            with self._lock:
                self._make_room(0, spare=path.name)

    def _there(self, path: Path) -> BinaryIO | None:
        """The copy, open and locked; None where there is none."""
        file = _locked(path, exclusive=False)
        if file is not None:
            with self._lock:
                self._count(path.name, os.fstat(file.fileno()).st_size)
            with suppress(OSError):  # the next process sees by it which were used lately
                os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
        return file

    def _fetched(self, path: Path, size: int, fetch: Callable[[str], None]) -> BinaryIO:
        """As _there, of a copy that is made now."""
        aside = self.folder / f"{path.name}.{os.getpid()}.{threading.get_ident()}.part"
        try:
            with self._lock:
                self._make_room(size)
            self.folder.mkdir(
                0o700, parents=True, exist_ok=True
            )  # whoever tidies up temporary files may have taken it
            fetch(str(aside))
            with self._lock:
                if (
                    faster := self._there(path)
                ) is not None:  # whoever reads that one counts on its staying
                    return faster
                file = _locked(aside, exclusive=False)
                assert file is not None
                found = os.fstat(file.fileno()).st_size
                self._make_room(found)
                self._count(path.name, found)
                # Not `atomic_path`: the copy is locked before it gets its name, so that no other
                # process removes it in between, and an existing copy that is read is not replaced.
                try:
                    os.link(aside, path)
                except FileExistsError:  # another process was faster by a hair
                    if (faster := self._there(path)) is not None:
                        file.close()
                        return faster
                    os.replace(aside, path)
                except OSError:  # a disk without links
                    os.replace(aside, path)
            return file
        finally:
            aside.unlink(missing_ok=True)

    def _count(self, name: str, size: int) -> None:
        """As the one that was used last."""
        self.held += size - self._sizes.pop(name, 0)
        self._sizes[name] = size

    def _make_room(self, size: int, spare: str = "") -> None:
        if self.held + size <= self.limit:
            return
        for name in [one for one in self._sizes if one != spare]:
            if _removed(self.folder / name):
                self.held -= self._sizes.pop(name)
            if self.held + size <= self.limit:
                return


def _removed(path: Path) -> bool:
    """Remove a copy, unless somebody reads it -> whether it is gone."""
    try:
        file = _locked(path, exclusive=True)
    except OSError:  # read just now, another user's, or a disk that is only read
        return False
    if file is not None:
        with file:
            path.unlink()
    return True


def _locked(path: Path, *, exclusive: bool) -> BinaryIO | None:
    """A file, open and locked until it is closed, for reading or for oneself alone; None where
    there is none.

    BlockingIOError: others read what one wants for oneself.
    """
    try:
        # network disks want the right to write for an exclusive lock
        file = open(path, "r+b" if exclusive else "rb")  # noqa: SIM115  it is handed on
    except FileNotFoundError:
        return None
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB if exclusive else fcntl.LOCK_SH)
    except BlockingIOError:
        file.close()
        raise
    except (
        ImportError,
        OSError,
    ):  # a system or a disk without such locks: a copy may go while it is read
        pass
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
    file.close()  # removed before it was locked
    return None
