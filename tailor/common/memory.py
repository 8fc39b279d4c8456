"""How much memory is free, and whether that is enough for what must be held at once."""

from __future__ import annotations

from pathlib import Path

from tailor.errors import InputError


def available_memory(root: Path = Path("/")) -> float | None:
    """Bytes of memory that are free for use, the system's file cache included; None where the
    system doesn't say.

    root  of the file system, for tests
    """
    limits = []
    for_machine = _free_of_machine(root / "proc")
    if for_machine is not None:
        limits.append(for_machine)
    for_container = _free_of_container(root / "sys/fs/cgroup")
    if for_container is not None:
        limits.append(for_container)
    return min(limits, default=None)


def _free_of_machine(proc: Path) -> float | None:
    try:
        kibibytes = _read_numbers(proc / "meminfo")
        return kibibytes["MemAvailable:"] * 1024
    except (OSError, ValueError, KeyError):
        return None


def _free_of_container(cgroup: Path) -> float | None:
    """What is left of the limit of the control group (version 2) that the process runs in.

    A process that goes beyond it is killed, whatever the machine has.
    """
    try:
        limit = float((cgroup / "memory.max").read_text())
        used = float((cgroup / "memory.current").read_text())
        # Files that were read lately count as used, but make room for others.
        cached = _read_numbers(cgroup / "memory.stat")["inactive_file"]
    except (OSError, ValueError, KeyError):  # ValueError: "max", no limit
        return None
    return max(0.0, limit - (used - cached))


def _read_numbers(path: Path) -> dict[str, int]:
    """A file with a name and a number in each line."""
    numbers = {}
    for line in path.read_text().splitlines():
        name, value, *_ = line.split()
        numbers[name] = int(value)
    return numbers


def check_room(needed: float, what: str, instead: str) -> None:
    """Raises InputError where the machine can't hold so many bytes.

    what     what takes them, for the message
    instead  what the user can do
    """
    free = available_memory()
    if free is None or needed <= free:
        return
    needed_text = gib(needed)
    free_text = gib(free)
    raise InputError(f"{what} takes {needed_text} of memory and {free_text} are free: {instead}")


def gib(size: float) -> str:
    """Bytes as text: "1.5 GiB"."""
    return f"{size / 2**30:.1f} GiB"
