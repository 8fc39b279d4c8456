"""What is said of parts that a machine lacks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import parts
import pytest

EXTRAS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]


def test_a_line_for_each_part_and_for_each_other_reason(monkeypatch):
    monkeypatch.setattr(parts, "missing", lambda part: part == "browser")
    reasons = ["Skipped: " + parts.reason("Ray")] * 3
    reasons += [parts.reason("PostgreSQL"), parts.reason("PostgreSQL", "apt install postgresql")]
    reasons += ["needs a CUDA device"] * 2
    assert parts.summary(reasons) == [
        "  PostgreSQL: apt install postgresql; pip install 'tailor-active-learning[postgres]'",
        "  Ray: pip install 'tailor-active-learning[ray]'",
        "  browser: pip install 'tailor-active-learning[browser]'",  # its files were never imported
        "  needs a CUDA device",
    ]


def test_a_missing_package_is_noticed(monkeypatch):
    monkeypatch.setitem(parts.PARTS, "made up", (("json", "no_such_package"), "web"))
    assert parts.missing("made up")
    with pytest.raises(
        pytest.skip.Exception,
        match=r"made up left out: pip install 'tailor-active-learning\[web\]'",
    ):
        parts.need("made up")


@pytest.mark.parametrize("part", parts.PARTS)
def test_its_extras_exist(part):
    _, extras = parts.PARTS[part]
    assert set(extras.split(",")) <= set(EXTRAS)


def test_every_skip_names_a_part_or_what_no_installation_can_mend():
    """So that a bare run says in a few lines what it left out, and a full one fails where something
    is missing.
    """
    for path in Path(__file__).parent.rglob("*.py"):
        if path.name in ("parts.py", "test_parts.py"):
            continue
        text = path.read_text()
        assert "importorskip" not in text, f"{path}: parts.need() says what to install"
        for skip in re.findall(r"(?:pytest\.skip|mark\.skipif)\((.*)", text):
            known = "parts." in skip or any(word in skip for word in parts.UNAVOIDABLE)
            assert known, (
                f"{path}: {skip} is neither a part (parts.needs) nor one of {parts.UNAVOIDABLE}"
            )
