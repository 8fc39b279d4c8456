"""How much memory is free: of the machine, and within a container's limit."""

from __future__ import annotations

import pytest

from tailor.common.memory import available_memory

MIB = 2**20


def system(root, limit=None):
    """A system's files, with 900 MiB free of the machine; of the container's 700, 100 are only
    cached files.
    """
    (root / "proc").mkdir()
    (root / "proc" / "meminfo").write_text(
        "MemTotal: 999999 kB\nMemFree: 5 kB\nMemAvailable: 921600 kB\n"
    )
    if limit is not None:
        folder = root / "sys" / "fs" / "cgroup"
        folder.mkdir(parents=True)
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text(f"{700 * MIB}\n")
        (folder / "memory.stat").write_text(
            f"anon {600 * MIB}\nactive_file 0\ninactive_file {100 * MIB}\n"
        )
    return root


@pytest.mark.parametrize(
    ("limit", "free"),
    [(None, 900), ("max", 900), (1000 * MIB, 400), (5000 * MIB, 900), (550 * MIB, 0)],
)
def test_a_container_has_no_more_than_its_limit(tmp_path, limit, free):
    assert available_memory(system(tmp_path, limit)) == free * MIB


def test_a_system_that_does_not_say(tmp_path):
    assert available_memory(tmp_path) is None
