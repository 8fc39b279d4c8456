"""By keyboard alone, by screen reader, in light and dark: what can be checked by a machine."""

from __future__ import annotations

import json
from pathlib import Path

import browsing
import pytest
import sites
from browsing import Tab, expect, running
from fruit import orchard

PAGES = (
    *("/", "/review", "/model", "/classes", "/team"),
    *("/history", "/export", "/users", "/password"),
)

CHECKS = (Path(__file__).parent / "accessible.js").read_text()
CONTRAST, NAMELESS = (
    f"() => {{ {CHECKS}; return {name}(); }}" for name in ("poorContrast", "nameless")
)
# Not among its defaults in all versions: a name that is read out holds the text that is seen.
AXE = """
  const rules = { "label-content-name-mismatch": { enabled: true } };
  const options = { resultTypes: ["violations"], rules };
  const { violations } = await axe.run(document, options);
  const shown = (nodes) => nodes.slice(0, 3).map((node) => node.html.slice(0, 150));
  return violations.map(({ id, nodes }) => [id, ...shown(nodes)].join(" "));
"""
SPOIL = """() => {
  document.querySelector("h1").style.color = "#ddd";
  document.querySelector(".brand").textContent = "";
  document.querySelector(".brand").removeAttribute("aria-label");
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("accessible")
    project = sites.begin(folder / "run", orchard(folder / "pool", 40), batch=10)
    with running(project, name="anna") as (url, coordinator):
        browsing.wait_for(lambda: coordinator.next("anna", 1).items)
        for item in coordinator.next("anna", 6).items:
            coordinator.answer("anna", item.id, ["apple"])
        yield url


def violations(tab: Tab) -> list[str]:
    """What axe-core finds wrong with the page as it stands: the rule, and the first elements that
    break it.
    """
    import axe_playwright_python

    script = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(
        encoding="utf-8"
    )
    return tab.page.evaluate(f"async () => {{ {script}; {AXE} }}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser, address, scheme):
    """On every page, with all that can be opened on it open."""
    tab = Tab(browser, address, color_scheme=scheme)
    page = tab.page
    for path in PAGES:
        tab.open(path)
        if path == "/":
            assert tab.name
            expect(page.locator("#why p").first).not_to_have_text("…")
            for folded in page.locator("#panel summary:visible").all():
                folded.click()
        assert violations(tab) == [], path
    tab.open()
    assert tab.name
    page.keyboard.press("?")
    assert violations(tab) == []
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#question")).to_contain_text("You said")
    tab.drawn()
    assert violations(tab) == []
    tab.open("/review").page.wait_for_load_state("load")
    page.locator("button.correct").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert violations(tab) == []
    tab.close()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1100, 500)])
def test_axe_finds_nothing_on_a_small_screen(browser, address, width, height):
    """Where the numbers don't fit beside the picture, they can be scrolled by keyboard too."""
    tab = Tab(browser, address)
    tab.page.set_viewport_size({"width": width, "height": height})
    for path in PAGES:
        tab.open(path)
        if path == "/":
            assert tab.name
        assert violations(tab) == [], path
    tab.close()


def test_axe_finds_nothing_among_many_classes_and_long_texts(browser, tmp_path):
    texts = tmp_path / "texts.jsonl"
    texts.write_text(
        "".join(
            json.dumps({"text": f"number {i} " + "many words " * 1500}) + "\n" for i in range(20)
        )
    )
    project = sites.begin(
        tmp_path / "run",
        texts,
        [f"class {i}" for i in range(50)],
        kind="multi-label",
        model={"name": "probe(steps=20)", "backbone": "hashed-words"},
    )
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        page = tab.page
        assert tab.name
        assert violations(tab) == []
        page.keyboard.type("class 4")
        expect(page.get_by_role("option")).not_to_have_count(0)
        assert violations(tab) == []
        page.keyboard.press("Enter")
        expect(page.locator(".tag")).to_have_count(1)
        assert violations(tab) == []
        page.keyboard.press("Enter")
        tab.all_saved()
        tab.open("/review").page.wait_for_load_state("load")
        page.locator("button.correct").first.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert violations(tab) == []
        tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_and_names(browser, address, scheme):
    tab = Tab(browser, address, color_scheme=scheme)
    for path in PAGES:
        tab.open(path)
        if path == "/":
            assert tab.name
            expect(tab.page.locator("#why p").first).not_to_have_text("…")
        assert tab.page.evaluate(CONTRAST) == [], path
        assert tab.page.evaluate(NAMELESS) == [], path
        assert tab.page.locator("h1").count() == 1
        assert tab.page.evaluate("() => document.documentElement.lang") == "en"
    tab.close()


def test_the_checks_find_what_is_wrong(browser, address):
    tab = Tab(browser, address).open("/export")
    tab.page.evaluate(SPOIL)
    assert len(tab.page.evaluate(CONTRAST)) == 1
    assert len(tab.page.evaluate(NAMELESS)) == 1
    assert [found.split()[0] for found in violations(tab)] == ["color-contrast", "link-name"]
    tab.close()


def test_everything_can_be_reached_by_tab(browser, address):
    tab = Tab(browser, address).open()
    assert tab.name
    reached = set()
    for _ in range(40):
        tab.page.keyboard.press("Tab")
        reached.add(
            tab.page.evaluate(
                "() => document.activeElement.id || document.activeElement.textContent.trim()"
            )
        )
    assert {
        "To the content",
        "Label",
        "Review",
        "theme",
        "skip",
        "none",
        "closer",
        "help-open",
    } <= reached
    assert len([one for one in reached if one.endswith(("apple", "lemon", "pear", "plum"))]) == 4
    tab.close()


def test_what_happens_is_announced(browser, address):
    tab = Tab(browser, address).open()
    one = tab.name
    live = tab.page.locator("#announce[aria-live=polite]")
    tab.page.keyboard.press("1")
    expect(live).to_have_text("apple")
    expect(tab.page.get_by_role("img", name=f"Picture {tab.name}")).to_be_visible()
    assert tab.name != one
    tab.all_saved()
    tab.close()


def test_colours_follow_the_system_and_the_button(browser, address):
    tab = Tab(browser, address, color_scheme="dark").open("/export")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    dark = tab.page.evaluate(ground)
    tab.page.get_by_role("button", name="Colours").click()
    light = tab.page.evaluate(ground)
    assert light != dark
    tab.page.reload()
    assert tab.page.evaluate(ground) == light  # remembered
    tab.close()


@pytest.mark.parametrize(("width", "height"), [(1180, 820), (820, 1180), (390, 844)])
def test_fits_a_tablet_and_a_phone(browser, address, width, height):
    tab = Tab(browser, address)
    tab.page.set_viewport_size({"width": width, "height": height})
    for path in PAGES:
        tab.open(path)
        assert tab.page.evaluate("() => document.documentElement.scrollWidth") <= width, path
    tab.open()
    assert tab.name
    for name in ("apple", "plum"):
        box = tab.page.get_by_role("button", name=name).bounding_box()
        assert box["y"] + box["height"] <= height  # without scrolling
        assert box["height"] >= 44  # a finger's width
    picture = tab.page.locator("#mat").bounding_box()
    assert picture["width"] * picture["height"] >= 0.4 * width * height
    tab.close()
