"""Files written atomically: a reader finds the old content or the new, never a part of it."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: file systems allow 255 bytes in a name, and a character takes up to four
_NAME_LENGTH = 40


@contextmanager
def atomic_path(path: Path | str, *, private: bool = False, durable: bool = True) -> Iterator[Path]:
    """Yields the path of an empty temporary file in the same folder, for the block to write to.

    When the block ends, the temporary file replaces `path`. When it raises, the temporary file is
    removed and `path` stays as it was. An existing file keeps its permissions.

    path     the file to write; its folder must exist
    private  whether the new file is readable and writable by its owner alone (mode 600)
    durable  whether the content is forced to the disk before the rename, so that a power cut can't
             leave an empty file under the name; it costs milliseconds a file

    Raises OSError where the folder can't be written to, or the disk is full.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_path(Path(folder) / "labels.csv") as temporary:
    ...         _ = temporary.write_text("id,label")
    ...     sorted(entry.name for entry in Path(folder).iterdir())
    ['labels.csv']
    """
    path = Path(path)
    name = path.name[:_NAME_LENGTH]
    temporary = path.with_name(f".{name}.{secrets.token_hex(4)}.partial")
    kept_mode = None
    if not private:
        kept_mode = _mode(path)
    # Created closed to others where the final file may be, so that nobody reads it meanwhile.
    creation_mode = 0o666
    if private or kept_mode is not None:
        creation_mode = 0o600
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, creation_mode)
    os.close(handle)
    try:
        yield temporary
        if durable:
            _force_to_disk(temporary)
        if kept_mode is not None:
            os.chmod(temporary, kept_mode)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_atomically(
    path: Path | str,
    content: str | bytes,
    *,
    private: bool = False,
    durable: bool = True,
) -> None:
    """Writes a whole file, text as UTF-8. The options are those of `atomic_path`."""
    if isinstance(content, str):
        data = content.encode()
    else:
        data = content
    with atomic_path(path, private=private, durable=durable) as temporary:
        temporary.write_bytes(data)


def _mode(path: Path) -> int | None:
    """Permission bits of an existing file, None where there is none."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None


def _force_to_disk(path: Path) -> None:
    # For writing, too: Windows refuses fsync on a file opened for reading.
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
