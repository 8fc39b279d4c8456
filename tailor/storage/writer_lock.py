"""The lock file beside a run's database, which names the process that writes."""

from __future__ import annotations

import os
from pathlib import Path

from tailor.storage.base import StoreBusy, StoreError


def take_lock(path: Path) -> int:
    """Lock a run's file for writing -> the open lock file beside it, to be closed at the end. The
    system lets go of the lock when its holder dies, however it dies.

    Raises StoreBusy where another process has it, StoreError where the folder can't be written.
    """
    import fcntl

    lock_path = path.with_name(path.name + ".lock")
    try:
        handle = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(
            f"{lock_path} can't be written ({error.strerror}): the folder of a run must exist and "
            "be writable"
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(handle, 32).decode(errors="replace").strip()
        os.close(handle)
        if holder:
            process = f"process {holder}"
        else:
            process = "another process"
        raise StoreBusy(
            f"{path} is in use by {process}: wait for it or stop it; nothing was changed"
        ) from error
    os.ftruncate(handle, 0)
    os.write(handle, str(os.getpid()).encode())
    return handle
