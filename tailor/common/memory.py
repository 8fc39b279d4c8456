"""How much memory is free, and whether that is enough for what must be held at once."""

from __future__ import annotations

from pathlib import Path

from tailor.errors import InputError


def available_memory(root: Path = Path("/")) -> float | None:
    """Bytes of memory that are free for use, the system's file cache included; None where the
    system doesn't say.

    root  of the file system, for tests
    """
    of_machine = _free_of_machine(root / "proc")
    of_container = _free_of_container(root / "sys/fs/cgroup")
    if of_machine is None:
        return of_container
    if of_container is None:
        return of_machine
    return min(of_machine, of_container)


def _free_of_machine(proc: Path) -> float | None:
    try:
        kibibytes = _read_numbers(proc / "meminfo")
        available = kibibytes["MemAvailable:"]
    # Other systems have no such file.
    except (OSError, ValueError, KeyError):
        return None
    return available * 1024


def _free_of_container(cgroup: Path) -> float | None:
    """What is left of the limit of the control group (version 2) that the process runs in.

    A process that goes beyond it is killed, whatever the machine has.
    """
    try:
        limit = _read_number(cgroup / "memory.max")
        used = _read_number(cgroup / "memory.current")
        statistics = _read_numbers(cgroup / "memory.stat")
        # Files that were read lately count as used, but make room for others.
        cached = statistics["inactive_file"]
    # ValueError: "max", no limit.
    except (OSError, ValueError, KeyError):
        return None
    needed = used - cached
    return max(0.0, limit - needed)


def _read_number(path: Path) -> float:
    """A file that holds a number and nothing else."""
    text = path.read_text()
    return float(text)


def _read_numbers(path: Path) -> dict[str, int]:
    """A file with a name and a number in each line."""
    text = path.read_text()
    numbers = {}
    for line in text.splitlines():
        # A unit may stand behind them.
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
