"""Small private files: written whole, readable by their owner alone."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from tailor.errors import TailorError


def write_private(path: Path, content: dict[str, Any]) -> None:
    """As JSON with mode 600: the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def read_private(path: Path) -> dict[str, Any]:
    """What write_private wrote; empty where there is no file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise TailorError(f"{path} is damaged ({error}): restore it, or delete it and begin anew") from error
    if not isinstance(found, dict):
        raise TailorError(f"{path} is damaged: it holds a {type(found).__name__}")
    return found
