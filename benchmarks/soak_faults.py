"""What benchmarks/soak.py does to a server: kills, a database that crashes, a disk that is full, a
clock that is stepped.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tailor.testing.postgres import Server

#: bytes written at once to fill a disk
BLOCK = 1 << 16


class SmallDisk:
    """A disk of its own, that can be filled.

    folder  where it is mounted; an ordinary folder where mounting is not allowed
    kind    "ext4", "tmpfs", or "" where it is no disk of its own
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.kind = kind
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Until nothing more can be written."""
        with self._ballast.open("ab", buffering=0) as ballast:
            for size in (BLOCK, 512, 1):
                with contextlib.suppress(_Full):
                    while True:
                        _write(ballast.fileno(), bytes(size))

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


class _Full(Exception):
    """There is no room on the disk."""


def _write(descriptor: int, content: bytes) -> None:
    try:
        os.write(descriptor, content)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise _Full from None


@contextlib.contextmanager
def small_disk(mebibytes: int) -> Iterator[SmallDisk]:
    """An ext4 file system in a file, whose flushes reach the disk; else one in memory; else, and
    for 0 mebibytes, a plain folder.
    """
    with tempfile.TemporaryDirectory(prefix="tailor-soak-") as name:
        folder = Path(name) / "disk"
        folder.mkdir()
        # PostgreSQL's own user must get through.
        Path(name).chmod(0o711)
        kind = _mount(Path(name) / "image", folder, mebibytes) if mebibytes else ""
        try:
            yield SmallDisk(folder, kind)
        finally:
            if kind:
                subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _mount(image: Path, folder: Path, mebibytes: int) -> str:
    """-> the kind of the disk, "" where none may be mounted"""
    with image.open("wb") as file:
        file.truncate(mebibytes << 20)
    makes = ("mkfs.ext4", "-q", "-m", "0", str(image))
    if _works(*makes) and _works("mount", "-o", "loop", str(image), str(folder)):
        return "ext4"
    if _works("mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)):
        return "tmpfs"
    return ""


def _works(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@contextlib.contextmanager
def database_on(folder: Path) -> Iterator[Server]:
    """A PostgreSQL whose data are in this new folder. Raises NotInstalled."""
    folder.mkdir()
    server = Server(folder)
    server.start()
    try:
        yield server
    finally:
        if server.running():
            server.stop("immediate")


def crash(database: Server) -> None:
    """Stop a database as a crash does, if it still runs; it is there again when this returns."""
    if database.running():
        database.stop("immediate")
    database.start()
