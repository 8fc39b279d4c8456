"""What is said of parts that a machine lacks."""

from __future__ import annotations

import tomllib
from pathlib import Path

import parts
import pytest

EXTRAS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_a_line_for_each_part_and_for_each_other_reason():
    reasons = ["Skipped: " + parts.reason("Ray")] * 3
    reasons += [parts.reason("PostgreSQL"), parts.reason("PostgreSQL", "apt install postgresql")]
    reasons += ["needs a CUDA device"] * 2
    assert parts.summary(reasons) == [
        "     2 x PostgreSQL (apt install postgresql; pip install 'tailor[postgres]')",
        "     3 x Ray (pip install 'tailor[ray]')",
        "     2 x needs a CUDA device",
    ]


def test_a_missing_package_is_noticed(monkeypatch):
    monkeypatch.setitem(parts.PARTS, "made up", (("json", "no_such_package"), "web"))
    assert parts.missing("made up")
    with pytest.raises(pytest.skip.Exception, match=r"made up left out: pip install 'tailor\[web\]'"):
        parts.need("made up")


@pytest.mark.parametrize("part", parts.PARTS)
def test_its_extras_exist(part):
    _, extras = parts.PARTS[part]
    assert set(extras.split(",")) <= set(EXTRAS)


def test_every_skip_that_can_be_mended_names_a_part():
    """So that a bare run says in a few lines what it left out."""
    tests = Path(__file__).parent
    for path in tests.rglob("*.py"):
        if path.name not in ("parts.py", "test_parts.py"):
            assert "importorskip" not in path.read_text(), f"{path}: parts.need() says what to install"
