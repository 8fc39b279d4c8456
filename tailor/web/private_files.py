"""Small private files: written whole, readable by their owner alone."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tailor.common.atomic_files import write_atomically
from tailor.errors import TailorError


@contextlib.contextmanager
def locked_file(path: Path) -> Iterator[None]:
    """Nobody else changes this file meanwhile, in this process or another: what is read within
    stays true.

    The lock is on a file beside it, since the file itself is replaced.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            import fcntl
        except ModuleNotFoundError:  # Windows
            yield
            return
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)  # ends the lock too


def write_private(path: Path, content: dict[str, Any]) -> None:
    """As JSON with mode 600: the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(path, json.dumps(content, indent=1), private=True)


def read_private(path: Path) -> dict[str, Any]:
    """What write_private wrote; empty where there is no file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise TailorError(
            f"{path} is damaged ({error}): restore it, or delete it and begin anew"
        ) from error
    if not isinstance(content, dict):
        raise TailorError(f"{path} is damaged: it holds a {type(content).__name__}")
    return content
