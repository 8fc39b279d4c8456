"""Local copies of remote files in a folder of limited size; the least lately used ones go first."""

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

#: How a copy is named; any other file in the folder is somebody else's and is left alone.
COPY_NAME = re.compile(r"tailor-[0-9a-f]{32}(\.[^.]*)?")
#: How a copy is named while it is being fetched.
PARTIAL_NAME = re.compile(COPY_NAME.pattern + r"\.\d+\.\d+\.part")
#: A partial copy that got no byte for so long belongs to a process that was killed.
ABANDONED_SECONDS = 24 * 3600


def user_folder() -> Path:
    """This user's cache folder, as the XDG base directory specification says; where it can't be
    made, a temporary one for as long as this process runs.
    """
    configured = os.environ.get("XDG_CACHE_HOME", "")
    try:
        # The specification ignores a path that is not absolute.
        if os.path.isabs(configured):
            base = Path(configured)
        else:
            base = Path.home() / ".cache"
        folder = base / "tailor" / "files"
        folder.mkdir(0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):  # no home directory, or a disk that can only be read
        pass
    return _temporary_folder()


@cache
def _temporary_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="tailor-files-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


class FileCache:
    """Copies of files by key, at most `limit_bytes` of them.

    A copy is written under another name and renamed, so it is whole or not there. Several threads
    and processes may share a folder: each counts the copies that it found at the start and those it
    used itself. A reader holds a lock on its copy, and nobody removes a copy that is locked; where
    all others are gone, the limit waits for the readers.

    folder  made for this user alone where it isn't there; None: user_folder()

    Raises InputError where the folder can't be used or the limit is below 1.
    """

    def __init__(self, folder: Path | None, limit_bytes: int) -> None:
        if limit_bytes < 1:
            raise InputError(
                f"a cache of {limit_bytes} bytes holds nothing: give at least the size of the "
                "largest file"
            )
        self.folder = folder or user_folder()
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self._lock = threading.RLock()
        self._sizes: OrderedDict[str, int] = OrderedDict()  # by name, the last used at the end
        try:
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            copies = self._tidy_up()
        except OSError as problem:
            raise InputError(
                f"the cache {self.folder} can't be used: {problem.strerror}; set `cache` of the "
                "pool"
            ) from problem
        # The least lately used first, as they will go.
        copies.sort(key=lambda copy: copy[0].st_atime_ns)
        for status, name in copies:
            self._mark_used(name, status.st_size)
        self._make_room(0)

    def _tidy_up(self) -> list[tuple[os.stat_result, str]]:
        """Remove what killed processes left behind -> the copies in the folder."""
        copies = []
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):  # another process has just removed it
                if COPY_NAME.fullmatch(path.name):
                    status = path.stat()
                    copies.append((status, path.name))
                elif PARTIAL_NAME.fullmatch(path.name):
                    status = path.stat()
                    age = time.time() - status.st_mtime
                    if age > ABANDONED_SECONDS:
                        path.unlink()
        return copies

    @contextmanager
    def hold(
        self,
        key: str,
        suffix: str,
        size: int,
        fetch: Callable[[str], None],
    ) -> Iterator[Path]:
        """The path of the copy with this key, which nobody removes inside the context.

        size   of the file in bytes; InputError where it is above the limit
        fetch  called with a path where the copy isn't there: it writes the file to that path. Its
               errors are passed on, and leave nothing behind
        """
        if size > self.limit_bytes:
            raise InputError(
                f"a file of {size:,} bytes does not fit the cache of {self.limit_bytes:,}: raise "
                "cache_bytes"
            )
        # A digest, as a key may hold characters that no file name can, and be too long for one.
        key_hash = hashlib.blake2b(key.encode(), digest_size=16)
        digest = key_hash.hexdigest()
        path = self.folder / f"tailor-{digest}{suffix}"
        try:
            with self._open_copy(path) or self._fetch_copy(path, size, fetch):
                yield path
        finally:
            with self._lock:
                self._make_room(0, spare=path.name)

    def _open_copy(self, path: Path) -> BinaryIO | None:
        """A copy, open and locked for reading; None where there is none."""
        file = _open_locked(path, exclusive=False)
        if file is not None:
            status = os.fstat(file.fileno())
            with self._lock:
                self._mark_used(path.name, status.st_size)
            # The next process sees by the access time which copies were used lately.
            with suppress(OSError):
                modified_ns = path.stat().st_mtime_ns
                os.utime(path, ns=(time.time_ns(), modified_ns))
        return file

    def _fetch_copy(
        self,
        path: Path,
        size: int,
        fetch: Callable[[str], None],
    ) -> BinaryIO:
        """As _open_copy, of a copy that is fetched now."""
        writer = f"{os.getpid()}.{threading.get_ident()}"
        partial = self.folder / f"{path.name}.{writer}.part"
        try:
            with self._lock:
                self._make_room(size)
            # Whoever tidies up temporary files may have taken the folder.
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            fetch(str(partial))
            with self._lock:
                return self._take_in(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    def _take_in(self, partial: Path, path: Path) -> BinaryIO:
        """Give a fetched file its name, unless another thread or process was faster: those who
        read that copy count on its staying.
        """
        faster = self._open_copy(path)
        if faster is not None:
            return faster
        file = _open_locked(partial, exclusive=False)
        assert file is not None
        size = os.fstat(file.fileno()).st_size
        self._make_room(size)
        self._mark_used(path.name, size)
        # Not `atomic_path`: the copy is locked before it gets its name, so that no other process
        # removes it in between, and a link fails where the name is taken instead of replacing a
        # copy that others read.
        try:
            os.link(partial, path)
        except FileExistsError:
            faster = self._open_copy(path)
            if faster is not None:
                file.close()
                return faster
            os.replace(partial, path)
        except OSError:  # a disk without links
            os.replace(partial, path)
        return file

    def _mark_used(self, name: str, size: int) -> None:
        """Count a copy as the one that was used last."""
        # Taken out and put in again, which moves it to the end.
        counted_before = self._sizes.pop(name, 0)
        self.held_bytes += size - counted_before
        self._sizes[name] = size

    def _make_room(self, size: int, spare: str = "") -> None:
        """Remove copies, the least lately used first, until `size` more bytes fit.

        spare  the name of a copy that stays
        """
        candidates = [name for name in self._sizes if name != spare]
        for name in candidates:
            if self.held_bytes + size <= self.limit_bytes:
                return
            if _remove_unless_read(self.folder / name):
                self.held_bytes -= self._sizes.pop(name)


def _remove_unless_read(path: Path) -> bool:
    """Remove a copy that nobody reads -> whether it is gone."""
    try:
        file = _open_locked(path, exclusive=True)
    except OSError:  # it is being read, or another user's, or on a disk that can only be read
        return False
    if file is not None:
        with file:
            path.unlink()
    return True


def _open_locked(path: Path, *, exclusive: bool) -> BinaryIO | None:
    """A file that is locked until it is closed; None where there is none.

    exclusive  for this process alone, to remove it: BlockingIOError where others read it. Else
               readers share the lock.
    """
    try:
        # Network disks want the right to write for an exclusive lock.
        file = open(path, "r+b" if exclusive else "rb")  # noqa: SIM115  it is handed on
    except FileNotFoundError:
        return None
    try:
        import fcntl

        kind_of_lock = fcntl.LOCK_SH
        if exclusive:
            # Without waiting: whoever wants room takes another copy instead.
            kind_of_lock = fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.flock(file, kind_of_lock)
    except BlockingIOError:
        file.close()
        raise
    except (ImportError, OSError):
        # A system or a disk without such locks: a copy may go while it is read.
        pass
    # The name may lead elsewhere by now: the copy was removed before it was locked.
    with suppress(FileNotFoundError):
        locked = os.fstat(file.fileno())
        named = path.stat()
        if os.path.samestat(locked, named):
            return file
    file.close()
    return None
