"""A run's SQLite file in use: read and checked at first, opened for writing when all is whole."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from tailor.storage.base import StoreDamaged, StoreError, StoreMissing
from tailor.storage.chain import ADVICE, BEGINNING, ChainHead, StoredRow, verify_rows
from tailor.storage.network_disks import check_local_disk
from tailor.storage.run_head import HeadWriter, RunHead, head_path, read_head
from tailor.storage.sqlite_file import (
    FileInUse,
    check_reaches,
    connect,
    emptied,
    explained_errors,
    integrity_problems,
    newest_event,
    sha256_of,
)
from tailor.storage.sqlite_schema import check_version, migrate, note_closed, snapshot, transaction
from tailor.storage.writer_lock import take_lock

READ_PAGE = """
    SELECT number, time, kind, body, data, digest FROM events
    WHERE number > ? AND number <= ? ORDER BY number
"""
#: Number and bytes of the events that are read at once.
PAGE_ROWS = 1024
PAGE_BYTES = 4 << 20


class SqliteSession:
    """The connection to a run's file, for one thread at a time.

    For a writer, too, the file is opened for reading at first. Before the first event is written
    the whole chain of checksums was checked, as events were read or then, and so was the file. A
    file that lost anything is never opened for writing, and stays byte for byte as it is.

    path      the file, created where it isn't there; its folder must exist
    readonly  open it for reading; StoreMissing where there is nothing

    lock      held while the connection is in use
    checked   how far the chain was checked, or written here
    pending   the chain with what the open transaction adds
    """

    def __init__(self, path: Path, *, readonly: bool) -> None:
        self.path = path
        # Without links: whoever comes by one meets the same lock and the same head.
        self._file = path.resolve()
        self.lock = threading.RLock()
        self.checked = BEGINNING
        self.pending = BEGINNING
        self.is_writable = False
        self._db: sqlite3.Connection | None = None
        self._in_use: FileInUse | None = None
        self._writer_lock: int | None = None
        self._head: HeadWriter | None = None  # None: for reading
        #: whether it is not known how the last write ended, as after Ctrl-C
        self._is_in_doubt = False
        try:
            if not readonly:
                check_local_disk(self._file)
                self._writer_lock = take_lock(self._file)
                self._head = HeadWriter(self._file)
            with explained_errors("open", self.path):
                self._open(readonly)
        except BaseException:
            self.close()
            raise

    @property
    def connection(self) -> sqlite3.Connection:
        if self._db is None:
            raise StoreError(f"{self.path} is closed")
        return self._db

    # ------------------------------------------------------------------ opening

    def _open(self, readonly: bool) -> None:
        # The head before the database: it never knows of more than is there.
        head = read_head(head_path(self._file))
        if self._has_content(head):
            self._in_use = FileInUse(self._file)
            self._db = connect(self._file, "ro")
            if self._has_tables(head):
                return
        if readonly:
            raise StoreMissing(
                f"{self.path} does not exist or is empty: start a run with `tailor init`, or name "
                "the right folder"
            )
        self._create()

    def _has_content(self, head: RunHead | None) -> bool:
        """Whether there is a file with anything in it. Raises StoreDamaged where there must be."""
        is_there = self._file.exists()
        if is_there and self._file.stat().st_size > 0:
            return True
        has_begun = head is not None and head.chain.number > 0
        # The head is made before the file: an empty file without one is no run that just begins.
        if has_begun or (is_there and head is None):
            raise emptied(self.path, head)
        return False

    def _has_tables(self, head: RunHead | None) -> bool:
        """Whether a run was begun in the file. Raises StoreDamaged where it does not reach as far
        as it must.
        """
        db = self.connection
        with snapshot(db):
            if check_version(db, self.path):
                check_reaches(db, head, self.path)
                return True
        if head is None or head.chain.number:
            raise emptied(self.path, head)
        # A process was killed when it had just made the file.
        return False

    def _create(self) -> None:
        assert self._head is not None
        if self._head.head is None:
            self._head.write(BEGINNING, durable=True)
        self._switch_to_writing()
        with transaction(self.connection):
            migrate(self.connection, 0)

    # ------------------------------------------------------------------ writing

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection inside a transaction, for this thread alone. The block leaves in `pending`
        the chain with what it added.
        """
        with explained_errors("write to", self.path), self.lock:
            db = self._writable()
            with transaction(db):
                self._check_newest(db)
                self._is_in_doubt = True
                is_marked_open = not db.execute("DELETE FROM closed").rowcount
                self.pending = self.checked
                yield db
            is_first = self.checked == BEGINNING
            self.checked = self.pending
            self._is_in_doubt = False
            # What was added is safe now, and nothing that fails here may say otherwise.
            with contextlib.suppress(OSError, sqlite3.Error):
                assert self._head is not None
                self._head.write(self.checked)
                if is_first or not is_marked_open:
                    # The file itself, without its log, says from now on that it is open.
                    self._move_log()

    def _writable(self) -> sqlite3.Connection:
        db = self.connection
        if self._head is None or self._in_use is None:
            raise StoreError(f"{self.path} was opened for reading only")
        if not (self._head.is_in_place() and self._in_use.is_in_place()):
            raise StoreError(
                f"{self.path} or {self._head.path.name} was deleted or replaced while this process "
                "had the run open: put it back, or open the run again"
            )
        if not self.is_writable:
            self._check_all(db)
            self._check_file(db)
            self._head.write(self.checked, durable=True)
            self._switch_to_writing()
        return self.connection

    def _check_all(self, db: sqlite3.Connection) -> None:
        """Check what was not read yet."""
        newest = newest_event(db)
        for page in self.pages(self.checked, newest.number):
            self.checked = verify_rows(self.checked, page, self.path)

    def _check_file(self, db: sqlite3.Connection) -> None:
        """Check that the file, which may be whole in its events and damaged elsewhere, can be
        written to.
        """
        assert self._head is not None
        assert self._in_use is not None
        if self._head.head is not None:
            closed_as = self._head.head.file_sha256
        else:
            closed_as = ""
        problems = []
        if closed_as and self._in_use.is_only_user():
            # Closed meanwhile: the system takes a process's locks on a file away when the process
            # closes that file anywhere, and SQLite would not know.
            db.close()
            if sha256_of(self._file) != closed_as:
                problems = ["it was changed since it was closed"]
            self._db = connect(self._file, "ro")
        else:
            # It was not closed, as after a crash, or it was copied without its head.
            problems = integrity_problems(db)
        if problems:
            raise StoreDamaged(f"{self.path} is damaged: {problems[0]}; {ADVICE}")

    def _switch_to_writing(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = connect(self._file, "rwc")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")  # flushed to disk before a commit returns
        self.is_writable = True
        if self._in_use is None:
            self._in_use = FileInUse(self._file)

    def _check_newest(self, db: sqlite3.Connection) -> None:
        """Nobody else may have written since this process read or wrote last."""
        newest = newest_event(db)
        if newest == self.checked:
            return
        if not self._is_in_doubt:
            raise StoreError(
                f"{self.path} has {newest.number} events where this process knows of "
                f"{self.checked.number}: another program wrote to it; open the run again"
            )
        self._check_all(db)

    def checkpoint(self) -> None:
        """Make the file complete without its log."""
        with explained_errors("write to", self.path), self.lock:
            if self.is_writable and self._head is not None:
                self._move_log()
                self._head.flush()

    def _move_log(self) -> bool:
        """Bring what is in the log into the file -> whether all of it could be, as nobody read an
        older state.
        """
        _, in_log, moved = self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return bool(in_log == moved)

    # ------------------------------------------------------------------ reading

    def pages(self, chain: ChainHead, newest: int) -> Iterator[list[StoredRow]]:
        """The rows after a place of the chain, some at a time. No statement stays open between
        pages, which would keep the log from being moved into the file.
        """
        last = chain.number
        while last < newest:
            with self.lock:
                page = self._read_page(last, newest)
            if not page:
                raise StoreDamaged(f"event {last + 1} of {self.path} is lost; {ADVICE}")
            yield page
            last = page[-1][0]

    def _read_page(self, after: int, newest: int) -> list[StoredRow]:
        page = []
        size = 0
        with contextlib.closing(self.connection.execute(READ_PAGE, (after, newest))) as rows:
            for row in rows:
                page.append(row)
                data = row[4]
                if data is not None:
                    size += len(data)
                if len(page) == PAGE_ROWS or size >= PAGE_BYTES:
                    break
        return page

    # ------------------------------------------------------------------ closing

    def close(self) -> None:
        """Let go of the file and its lock. May be called again."""
        with self.lock:
            if self._db is not None:
                is_complete = self.is_writable and self._note_closed()
                self._db.close()
                self._db = None
                if is_complete:
                    self._note_file()
            if self._in_use is not None:
                self._in_use.release()
                self._in_use = None
            if self._head is not None:
                self._head.close()
                self._head = None
            if self._writer_lock is not None:
                os.close(self._writer_lock)
                self._writer_lock = None

    def _note_closed(self) -> bool:
        """Note in the file that nobody writes any more -> whether it is complete without its log.
        Where that fails, as on a full disk, the run counts as open, which is no harm.
        """
        try:
            with transaction(self.connection):
                if newest_event(self.connection) == self.checked:
                    note_closed(self.connection, self.checked)
            return self._move_log()
        except sqlite3.Error:
            return False

    def _note_file(self) -> None:
        """Note the checksum of the closed file, by which the next writer knows it unchanged."""
        assert self._head is not None
        assert self._in_use is not None
        with contextlib.suppress(OSError):
            if self._in_use.is_only_user() and self._in_use.is_in_place():
                self._head.write(self.checked, sha256_of(self._file), durable=True)
