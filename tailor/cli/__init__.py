"""The `tailor` command. One file a command; each imports what it needs when it runs."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from typing import NoReturn


def main() -> None:
    try:
        status = _status()
    except KeyboardInterrupt:  # outside of any command
        status = 130
    _end(status)


def _status() -> int:
    """Run the command -> the exit status."""
    from tailor.cli.app import app
    from tailor.cli.common import tell_of_compiling
    from tailor.errors import TailorError

    tell_of_compiling()
    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except TailorError as error:
        from tailor.cli.common import printable

        print(printable(f"tailor: {error}"), file=sys.stderr)
        return 2
    except OSError as error:  # a folder that is not there, a full disk
        print(
            f"tailor: {error.strerror or error}{f': {error.filename}' if error.filename else ''}",
            file=sys.stderr,
        )
        return 2
    return 0


def _end(status: int) -> NoReturn:
    """End the process, also where a round is still being prepared behind it.

    While Python shuts down it unwinds threads that were left behind, and one that is inside torch
    then takes the whole process down with SIGABRT. So with such a thread Python is not shut down:
    what has to last is on disk.
    """
    if any(thread.daemon for thread in threading.enumerate()):
        atexit._run_exitfuncs()  # temporary files go
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)
    sys.exit(status)
