"""`python -m tailor_experiments` offers what the entry points add to `tailor`."""

from __future__ import annotations

import subprocess
import sys

from tailor.cli.app import PLUGINS, entry_points


def test_the_module_has_the_commands_of_the_entry_points():
    command = [sys.executable, "-m", "tailor_experiments", "--help"]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    ours = [e.name for e in entry_points(group=PLUGINS) if e.module.startswith("tailor_exp")]
    assert sorted(ours) == ["bench", "data", "demo", "regret"]
    assert all(f" {name} " in finished.stdout for name in ours)
