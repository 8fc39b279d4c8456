"""The `tailor` command. One file a command; each imports what it needs when it runs."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

#: the exit status where a run from elsewhere was not opened, as nobody trusts it
NOT_TRUSTED = 3


def main(app: Callable[[], object] | None = None) -> None:
    """Run the command that sys.argv names and end the process.

    app  the commands to choose from; None: those of `tailor`
    """
    try:
        status = run_command(app)
    except KeyboardInterrupt:  # outside of any command
        status = 130
    _end_process(status)


def run_command(app: Callable[[], object] | None = None) -> int:
    """Run the command that sys.argv names, and return its exit status."""
    from tailor.common.operating_system import check_operating_system
    from tailor.errors import NotTrusted, TailorError

    try:
        check_operating_system()  # before the commands are imported, some of which can't be
    except TailorError as error:
        print(f"tailor: {error}", file=sys.stderr)
        return 2
    from tailor.cli.terminal import announce_compiling, printable

    announce_compiling()
    try:
        if app is None:
            from tailor.cli.app import app as tailor_app

            tailor_app()
        else:
            app()
    except SystemExit as end:
        return _status_of(end)
    except TailorError as error:
        print(printable(f"tailor: {error}"), file=sys.stderr)
        if isinstance(error, NotTrusted):
            return NOT_TRUSTED
        return 2
    except OSError as error:  # a folder that is not there, a full disk
        reason = error.strerror or error
        if error.filename:
            file = f": {error.filename}"
        else:
            file = ""
        print(f"tailor: {reason}{file}", file=sys.stderr)
        return 2
    return 0


def _status_of(end: SystemExit) -> int:
    """As Python itself takes it: a number, 0 for None, 1 for anything else."""
    if isinstance(end.code, int):
        return end.code
    if end.code is None:
        return 0
    return 1


def _end_process(status: int) -> NoReturn:
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
