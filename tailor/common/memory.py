"""How much memory is free, and whether that is enough for what must be held at once."""

from __future__ import annotations

from pathlib import Path

from tailor.errors import InputError


def available(root: Path = Path("/")) -> float | None:
    """Bytes of memory that are free for use, the system's file cache included; None where it
    doesn't say.
    """
    found = [
        free
        for free in (_machine(root / "proc"), _container(root / "sys/fs/cgroup"))
        if free is not None
    ]
    return min(found, default=None)


def _machine(proc: Path) -> float | None:
    try:
        return _numbers(proc / "meminfo")["MemAvailable:"] * 1024
    except (OSError, ValueError, KeyError):
        return None


def _container(group: Path) -> float | None:
    """What is left of the limit; who goes beyond it is killed, whatever the machine has."""
    try:
        limit = float((group / "memory.max").read_text())
        used = (
            float((group / "memory.current").read_text())
            - _numbers(group / "memory.stat")["inactive_file"]
        )
    except (OSError, ValueError, KeyError):  # ValueError: "max", no limit
        return None
    return max(0.0, limit - used)


def _numbers(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    return {name: int(value) for name, value, *_ in map(str.split, path.read_text().splitlines())}


def check_room(needed: float, what: str, instead: str) -> None:
    """InputError where the machine can't hold so many bytes. what: it takes them; instead: what to
    do.
    """
    free = available()
    if free is not None and needed > free:
        raise InputError(
            f"{what} takes {gib(needed)} of memory and {gib(free)} are free: {instead}"
        )


def gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
