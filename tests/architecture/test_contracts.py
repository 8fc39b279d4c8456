"""The contracts in pyproject.toml on which package may import which."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import parts

parts.need("import-linter")

ROOT = Path(__file__).parents[2]


def check_contracts(config):
    """What lint-imports says: its exit status is 0 where every contract is kept."""
    # In a process of its own: import-linter switches off every logger that exists, and a later
    # test in this process that listens to one would hear nothing.
    lint_imports = Path(sys.executable).with_name("lint-imports")
    command = [lint_imports, "--config", config, "--no-cache"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_every_contract_is_kept():
    checked = check_contracts(ROOT / "pyproject.toml")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_forbidden_import_is_noticed(tmp_path):
    """A contract that could not fail would keep nothing."""
    config = tmp_path / "contracts.toml"
    config.write_text(
        """
        [tool.importlinter]
        root_packages = ["tailor", "tailor_experiments"]

        [[tool.importlinter.contracts]]
        name = "upside down"
        type = "layers"
        layers = ["tailor.errors", "tailor.task", "tailor.cli", "tailor_experiments"]
        """
    )
    checked = check_contracts(config)
    assert checked.returncode == 1
    assert "tailor.cli is not allowed to import tailor.errors" in checked.stdout
