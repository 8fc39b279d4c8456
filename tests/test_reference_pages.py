"""Everything that a registry lists has a page, with all that a reader needs to choose it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import parts
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import reference_pages
import toy_pool_figures

ENTRIES = list(reference_pages.entries())
FAMILIES = [name for section, name in ENTRIES if section.folder == "families"]


def test_every_registry_has_its_section():
    from tailor.registry import Registry

    shown = {section.registry.group for section in reference_pages.REFERENCE_SECTIONS}
    assert {
        f"tailor.{kind}" for kind in ("strategies", "selectors", "rewards", "models", "pools")
    } == shown
    assert all(
        isinstance(section.registry, Registry) for section in reference_pages.REFERENCE_SECTIONS
    )


@pytest.mark.parametrize(
    ("section", "name"), ENTRIES, ids=[f"{section.singular}-{name}" for section, name in ENTRIES]
)
def test_a_page_says_all_that_is_needed(section, name):
    lacking = reference_pages.missing(section, name)
    assert not lacking, (
        f"the docstring of {section.registry.find(name).__qualname__} lacks {', '.join(lacking)}: "
        "write paragraphs that begin with 'Formula:', 'Cost:' and 'When to use:', and explain "
        "every option"
    )
    page = reference_pages.page(section, name)
    assert page.startswith(f"# {name}\n")
    for option in reference_pages.arguments(section, name):
        assert f"| `{option}` |" in page


def test_every_public_name_is_on_the_python_page():
    import tailor

    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    shown = set(re.findall(r"^::: tailor\.(\w+)$", page, re.MULTILINE))
    assert shown == set(tailor.__all__) - {"__version__"}


def test_a_docstring_is_taken_apart():
    parsed = reference_pages.parse_docstring(
        """Takes the best.

        Some more about it.

        Formula: s(x) = p,
        smallest first.

        depth, width  of the tree,
                      in steps
        name_as_long_as_its_column its name

        >>> 1 + 1
        2
        """,
        {"depth", "width", "name_as_long_as_its_column"},
    )
    assert parsed.summary == "Takes the best."
    assert parsed.prose == ["Some more about it."]
    assert parsed.parts == {"Formula": "s(x) = p, smallest first."}
    assert parsed.options == {
        "depth": "of the tree, in steps",
        "width": "of the tree, in steps",
        "name_as_long_as_its_column": "its name",
    }
    assert parsed.example == ">>> 1 + 1\n2"


def test_a_formula_is_shown_with_its_indices_and_signs():
    section = next(
        section for section in reference_pages.REFERENCE_SECTIONS if section.folder == "rewards"
    )
    page = reference_pages.page(section, "diversity")
    assert "v<sub>k</sub> = ±1 / (K · max(1, count<sub>k</sub>)<sup>power</sup>)" in page
    section = next(
        section for section in reference_pages.REFERENCE_SECTIONS if section.folder == "selectors"
    )
    assert "&lt;v, theta>" in reference_pages.page(section, "tailor")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_toy_pool_shows_what_a_family_picks(family):
    pool, _, picks, arm_names = toy_pool_figures.pick(family)
    assert len(picks) == toy_pool_figures.PICKS == len(arm_names)
    assert len(np.unique(picks)) == len(picks)
    assert not set(picks) & set(pool.labelled)
    again = toy_pool_figures.pick(family)[2]
    np.testing.assert_array_equal(picks, again)


def test_a_figure_is_drawn_the_same_each_time():
    first = toy_pool_figures.draw("margin")
    assert first.startswith(b"<?xml")
    assert first == toy_pool_figures.draw("margin")


def test_every_page_is_on_the_site():
    """What the hook makes is what the registries list, and what stands in docs/ is in the menu."""
    parts.need("site")
    import site_hooks
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"))
    listed = set(_pages(site_hooks.on_config(config).nav))
    written = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    made = {reference_pages.path(section, name) for section, name in ENTRIES}
    assert written | made <= listed


def _pages(nav):
    for item in nav:
        if isinstance(item, dict):
            (value,) = item.values()
            yield from _pages(value if isinstance(value, list) else [value])
        else:
            yield item
