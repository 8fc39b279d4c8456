"""The operating systems on which runs and commands work."""

from __future__ import annotations

import sys

from tailor.errors import TailorError


def check_operating_system() -> None:
    """Raise TailorError on Windows, whose Python has no fcntl to lock a run's store with."""
    if sys.platform == "win32":
        raise TailorError(
            "runs and commands need Linux or macOS: a run's store is locked with fcntl, which "
            "Windows lacks. There, use the Windows Subsystem for Linux"
        )
