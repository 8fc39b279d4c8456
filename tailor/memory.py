"""How much memory is free, and whether that is enough for what must be held at once."""

from __future__ import annotations

from pathlib import Path

from tailor.errors import InputError


def available() -> float | None:
    """Bytes of memory that are free for use, the system's file cache included; None where it doesn't say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def check_room(needed: float, what: str, instead: str) -> None:
    """InputError where the machine can't hold so many bytes. what: it takes them; instead: what to do."""
    free = available()
    if free is not None and needed > free:
        raise InputError(f"{what} takes {gib(needed)} of memory and {gib(free)} are free: {instead}")


def gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
