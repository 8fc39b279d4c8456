"""What this machine can do at most: half a minute of measuring."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tailor.capacity.device import now

#: the best of so many counts: other work on the machine can only slow it down
TRIES = 60


@dataclass(frozen=True)
class Machine:
    """Rates of the plainest operations, with all threads of this process, or on a GPU."""

    read: float  # bytes a second, from memory
    multiply: float  # floating-point operations a second, float32 matrix products
    write: float  # bytes a second, to disk and flushed
    cores: int


def measure_machine(folder: Path | None = None, device: str = "cpu", tries: int = TRIES) -> Machine:
    """The rates of this machine, or of its GPU.

    folder: whose disk is measured, by default the one for temporary files.
    """
    import torch

    block = torch.ones(2**26, device=device)  # 256 MiB: more than caches hold
    side = 2048
    square = torch.rand(side, side, device=device)

    def add_up() -> None:
        block.sum()

    def multiply() -> None:
        square @ square

    seconds_to_read = _least_seconds(add_up, device, tries)
    seconds_to_multiply = _least_seconds(multiply, device, tries)
    return Machine(
        read=block.nbytes / seconds_to_read,
        multiply=2 * side**3 / seconds_to_multiply,
        write=_write_rate(folder),
        cores=cores(),
    )


def cores() -> int:
    """Those that this process may use."""
    if sys.platform == "linux":  # other systems don't tell
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _least_seconds(work: Callable[[], None], device: str, tries: int) -> float:
    """Of several runs, after one that is not counted."""
    work()
    seconds = []
    for _ in range(tries):
        started = now(device)
        work()
        seconds.append(now(device) - started)
    return min(seconds)


def _write_rate(folder: Path | None, size: int = 2**27) -> float:
    """Bytes a second. Random ones, which no file system can compress."""
    # A MiB over and over: drawing all of it would take longer than writing it.
    mebibyte = os.urandom(2**20)
    data = mebibyte * (size // 2**20)
    with tempfile.NamedTemporaryFile(dir=folder, prefix="tailor-") as file:
        started = time.perf_counter()
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        seconds = time.perf_counter() - started
        return size / seconds
