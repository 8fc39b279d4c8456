"""The README's shell commands exist, and every link in the docs leads somewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from doc_blocks import blocks_of

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import reference_pages


def test_shell_examples_are_commands():
    from typer.main import get_command

    from tailor.cli.app import app

    blocks = [block.text for block in blocks_of(ROOT / "README.md") if block.language == "bash"]
    used = re.findall(r"^tailor (\w+)", "".join(blocks), re.MULTILINE)
    assert len(used) == 3
    assert set(used) <= set(get_command(app).commands)


PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "benchmarks" / "README.md",
    ROOT / "examples" / "README.md",
]


#: pages that are there once the site is built
MADE = {
    ROOT / "docs" / reference_pages.path(section, name)
    for section in reference_pages.REFERENCE_SECTIONS
    for name in ("index", *section.registry.builtin)
}


def anchors(page: Path) -> set[str]:
    """A heading is an anchor in lower case, with dashes for spaces and no other signs."""
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        there = page.parent / path if path else page
        if there.resolve() in MADE:
            continue
        assert there.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(there), (
            f"{page.name} links to {target}: no such heading"
        )
