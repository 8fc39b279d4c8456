"""The contracts in pyproject.toml on which package may import which."""

from __future__ import annotations

from pathlib import Path

import parts

parts.need("import-linter")

from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]


def check_contracts(config):
    """The exit status of lint-imports: 0 where every contract is kept."""
    return lint_imports(config_filename=str(config), no_cache=True, is_debug_mode=False)


def test_every_contract_is_kept(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    status = check_contracts(ROOT / "pyproject.toml")
    assert status == 0, capsys.readouterr().out


def test_a_forbidden_import_is_noticed(capsys, monkeypatch, tmp_path):
    """A contract that could not fail would keep nothing."""
    monkeypatch.chdir(ROOT)
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
    assert check_contracts(config) == 1
    assert "tailor.cli is not allowed to import tailor.errors" in capsys.readouterr().out
