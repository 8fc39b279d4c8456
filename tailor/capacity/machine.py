"""What this machine can do at most: half a minute of measuring."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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
    """folder: whose disk is measured, by default the one for temporary files."""
    import torch

    block = torch.ones(2**26, device=device)  # 256 MiB
    square = torch.rand(2048, 2048, device=device)

    def multiply() -> None:
        square @ square

    return Machine(
        read=block.nbytes / _best(lambda: block.sum(), device, tries),
        multiply=2 * 2048**3 / _best(multiply, device, tries),
        write=_disk(folder),
        cores=cores(),
    )


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _best(work: Callable[[], object], device: str, tries: int) -> float:
    from tailor.capacity.device import now

    work()
    found = []
    for _ in range(tries):
        started = now(device)
        work()
        found.append(now(device) - started)
    return min(found)


def _disk(folder: Path | None, size: int = 2**27) -> float:
    data = os.urandom(2**20) * (size // 2**20)
    with tempfile.NamedTemporaryFile(dir=folder, prefix="tailor-") as file:
        started = time.perf_counter()
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        return size / (time.perf_counter() - started)
