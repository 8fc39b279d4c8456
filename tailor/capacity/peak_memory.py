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
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
