"""Peak memory of this process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def reset_peak() -> None:
    """Forget earlier peaks, where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_mib() -> float:
    """The largest resident memory since reset_peak(), in MiB; since the start where the system
    can't reset.
    """
    try:
        status = Path("/proc/self/status").read_text()
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                _, kib, *_ = line.split()
                return int(kib) / 1024
    except OSError:
        pass
    usage = resource.getrusage(resource.RUSAGE_SELF)
    # macOS counts bytes, other systems KiB.
    if sys.platform == "darwin":
        unit = 1
    else:
        unit = 1024
    return usage.ru_maxrss * unit / 2**20
