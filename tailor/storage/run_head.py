"""The head of a run in a file: how far it got, kept beside the database, and the writer's lock.

A database file alone can't tell that its write-ahead log was lost, or that it was emptied: what is
left looks like a shorter run. `run.db.head` knows the number and the checksum of the newest event.
It is written after each commit, so after a kill at any moment it is at most behind the database,
which is no damage; a database that is behind its head has lost events.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from tailor.storage.base import StoreBusy, StoreError
from tailor.storage.chain import ChainHead

#: Ends the name of the file.
SUFFIX = ".head"
#: There are two slots, written in turn: should one be half written when the power fails, the other
#: is whole.
_SLOT_BYTES = 192
_SLOTS = 2


@dataclass(frozen=True)
class RunHead:
    """How far a run got.

    sequence     counts how often the head was written: the higher one is newer
    chain        the newest event
    file_sha256  of the database file, in hex, where it was closed with nothing left in its log;
                 else empty
    """

    sequence: int
    chain: ChainHead
    file_sha256: str = ""

    def encode(self) -> bytes:
        """One line of text of _SLOT_BYTES bytes, with a checksum."""
        fields = (
            str(self.sequence),
            str(self.chain.number),
            self.chain.digest.hex(),
            self.file_sha256 or "open",
        )
        text = " ".join(fields).encode()
        line = text + b" " + _checksum(text)
        return line.ljust(_SLOT_BYTES - 1) + b"\n"

    @classmethod
    def decode(cls, slot: bytes) -> RunHead | None:
        """The head in a slot; None where it is not whole."""
        text, _, checksum = slot.rstrip().rpartition(b" ")
        if not text or checksum != _checksum(text):
            return None
        sequence, number, digest, file_sha256 = text.decode().split(" ")
        chain = ChainHead(int(number), bytes.fromhex(digest))
        if file_sha256 == "open":
            file_sha256 = ""
        return cls(int(sequence), chain, file_sha256)


def _checksum(text: bytes) -> bytes:
    return blake2b(text, digest_size=8).hexdigest().encode()


def head_path(database: Path) -> Path:
    """Where the head of a database file lies."""
    return database.with_name(database.name + SUFFIX)


def read_head(path: Path) -> RunHead | None:
    """The newest head in a file; None where there is none, or none that is whole."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} can't be read ({error.strerror})") from error
    return _newest(content)


def _newest(content: bytes) -> RunHead | None:
    heads = []
    for slot in range(_SLOTS):
        start = slot * _SLOT_BYTES
        head = RunHead.decode(content[start : start + _SLOT_BYTES])
        if head is not None:
            heads.append(head)
    return max(heads, key=lambda head: head.sequence, default=None)


def _flush_folder(folder: Path) -> None:
    """Force the name of a new file to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class HeadWriter:
    """The head of a run, open and locked for the one process that writes. The system lets go of the
    lock when its holder dies, however it dies.

    The lock is on this file itself, which is never replaced: whoever reaches the run by a link
    meets the same lock, and where the file was deleted the run does not open.

    database  the file beside which the head lies, without links in its path

    Raises StoreBusy where another writer has it, StoreError where the folder can't be written.
    """

    def __init__(self, database: Path) -> None:
        import fcntl

        self.path = head_path(database)
        self._is_new = not self.path.exists()
        try:
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(
                f"{self.path} can't be written ({error.strerror}): the folder of a run must exist "
                "and be writable"
            ) from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._handle)
            raise StoreBusy(
                f"{database} is in use by another process, which reached it by another way: wait "
                "for it or stop it; nothing was changed"
            ) from error
        self.head = _newest(os.pread(self._handle, _SLOTS * _SLOT_BYTES, 0))

    def write(self, chain: ChainHead, file_sha256: str = "", *, durable: bool = False) -> None:
        """Note how far the run got, after that is in the database.

        durable  whether it is forced to the disk. Without, a power cut may leave an older head,
                 which is no harm, and a process that is killed leaves this one
        """
        if self.head is None:
            sequence = 1
        else:
            sequence = self.head.sequence + 1
        head = RunHead(sequence, chain, file_sha256)
        os.pwrite(self._handle, head.encode(), sequence % _SLOTS * _SLOT_BYTES)
        is_first = self.head is None
        self.head = head
        if durable:
            self.flush()
        if is_first:
            _flush_folder(self.path.parent)

    def flush(self) -> None:
        """Force what was written to the disk."""
        os.fsync(self._handle)

    def is_in_place(self) -> bool:
        """Whether the file is still there under its name."""
        try:
            there = os.stat(self.path)
        except OSError:
            return False
        mine = os.fstat(self._handle)
        return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)

    def close(self) -> None:
        if self._is_new and self.head is None:
            # Nothing was begun, as where the file is another program's: nothing is left behind.
            self.path.unlink(missing_ok=True)
        os.close(self._handle)
