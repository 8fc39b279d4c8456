"""Local copies of a remote pool's files, and the pools of those that are tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tailor.pools.base import Pool
from tailor.pools.file_cache import FileCache
from tailor.pools.remote_files import RemoteFile, RemoteStorage

#: Tables whose pools stay open.
OPEN_TABLES = 8


class LocalCopies:
    """Fetches files of a storage through a cache.

    table_options  for the pools of tables, such as column and key
    max_side       images in tables are shrunk to at most this many pixels on the longer side
    """

    def __init__(
        self,
        storage: RemoteStorage,
        cache: FileCache,
        table_options: Mapping[str, Any],
        max_side: int | None,
    ) -> None:
        self.storage = storage
        self.cache = cache
        self._table_options = table_options
        self._max_side = max_side
        #: By file name: when the copy was made, and its pool.
        self._open_tables: dict[str, tuple[int, Pool]] = {}

    def copy(self, file: RemoteFile) -> AbstractContextManager[Path]:
        """The path of a file's copy, which stays inside the context.

        Raises FileNotFoundError where the file is gone, InputError where it can't be fetched.
        """
        address = self.storage.address
        # The version and size belong to it, so that a file written anew is fetched anew.
        key = f"{address}|{file.path}|{file.version}|{file.size}"

        def fetch(target: str) -> None:
            self.storage.fetch(file, target)

        return self.cache.hold(
            key,
            file.suffix,
            file.size,
            fetch,
        )

    @contextmanager
    def table(self, file: RemoteFile) -> Iterator[Pool]:
        """The pool of a table's copy, which stays inside the context. Raises as `copy` does, and
        InputError where it can't be opened.
        """
        with self.copy(file) as path:
            copied_ns = path.stat().st_mtime_ns
            never_opened = (0, None)
            opened_ns, pool = self._open_tables.get(file.name, never_opened)
            was_copied_again = opened_ns != copied_ns
            if pool is None or was_copied_again:
                pool = self._open(file, path)
                self._open_tables[file.name] = (copied_ns, pool)
                self._close_oldest()
            yield pool

    def _open(self, file: RemoteFile, path: Path) -> Pool:
        from tailor.pools import open_pool

        # Other tables hold no images, and do not take the option.
        max_side = None
        if file.suffix == ".parquet":
            max_side = self._max_side
        return open_pool(path, max_side=max_side, **self._table_options)

    def _close_oldest(self) -> None:
        while len(self._open_tables) > OPEN_TABLES:
            oldest = next(iter(self._open_tables))
            self._open_tables.pop(oldest)
