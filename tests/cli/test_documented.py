"""Every command, option and setting is in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer
from runs import app

from tailor.run.config import SCHEMA

DOCS = Path(__file__).parents[2] / "docs" / "reference"


@pytest.fixture(scope="module")
def docs():
    found = [DOCS / name for name in ("commands.md", "settings.md")]
    return "\n".join(path.read_text(encoding="utf-8") for path in found if path.exists())


def commands(group=None, name="tailor"):
    """(full name, command) of all commands, those of groups too."""
    group = group or typer.main.get_command(app)
    for own, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {own}")
        else:
            yield f"{name} {own}", command


def test_all_commands_are_found():
    names = {name for name, _ in commands()}
    expected = [
        "init",
        "run",
        "ask",
        "tell",
        "status",
        "export",
        "train",
        "predict",
        "demo",
        "arms",
        "regret",
    ]
    assert {f"tailor {one}" for one in expected} | {"tailor bench selection"} <= names


def test_every_command_and_option_is_documented(docs):
    missing = [name for name, _ in commands() if not re.search(rf"{re.escape(name)}\b", docs)]
    # What is about a command: the section under its heading, and from where it is named to where
    # another one is.
    sections = re.split(r"^(?=#)", docs, flags=re.M)
    parts = re.split(r"(?=\btailor [a-z])", docs)
    for name, command in commands():
        about = "".join(part for part in parts if re.match(rf"{name}\b", part))
        about += "".join(part for part in sections if re.search(rf"{name}\b", part.split("\n")[0]))
        for parameter in command.params:
            options = [o for o in parameter.opts if o.startswith("-")]
            if options and not any(
                re.search(rf"(?<![\w-]){re.escape(o)}(?![\w-])", about) for o in options
            ):
                missing.append(f"{name} {max(options, key=len)}")
    assert not missing, f"docs/reference/commands.md lacks: {', '.join(missing)}"


def test_every_setting_is_documented(docs):
    missing = [f"[{section}]" for section in SCHEMA if f"[{section}]" not in docs]
    for section, keys in SCHEMA.items():
        parts = re.split(rf"(?=\[(?:{'|'.join(SCHEMA)})\])", docs)
        about = "".join(part for part in parts if part.startswith(f"[{section}]"))
        missing += [
            f"[{section}] {key}"
            for key in keys
            if not re.search(rf"`{key}\b|^\s*#?\s*{key} =", about, re.M)
        ]
    assert not missing, f"docs/reference/settings.md lacks: {', '.join(missing)}"
