"""The report of experiments, as a window of a laptop and a phone show it."""

from __future__ import annotations

import pytest
from browsing import Tab
from made_up import FAMILIES, SCORES, rows_of

from tailor_experiments.comparison.gather import group
from tailor_experiments.comparison.page import page
from tailor_experiments.comparison.report import tables_of_all, tables_of_one

LONG = "TAILOR, wide, surprise, family, difficulty"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Every column and both kinds of number, long names, and no figures."""
    rows = rows_of(SCORES | {LONG: SCORES["TAILOR"]}, families=FAMILIES)
    more = {
        "task": "multi-label",
        "metric": "mAP",
        "rarest_accuracy": 0.875,
        "test_rarest_accuracy": 0.875,
    }
    rows = [
        row | more | {"positives": 3000 + row["seed"], "rarest": 100 + row["seed"]} for row in rows
    ]
    path = tmp_path_factory.mktemp("report") / "report.html"
    experiments = group(rows)
    sections = [(results, tables_of_one(results), []) for results in experiments]
    path.write_text(page(tables_of_all(experiments), [], sections), encoding="utf-8")
    return path.as_uri()


def sizes(tab):
    """(what is seen, what there is) of the page and of each table, in pixels across."""
    boxes = "[document.documentElement, ...document.querySelectorAll('div.wide')]"
    return tab.page.evaluate(f"() => {boxes}.map((box) => [box.clientWidth, box.scrollWidth])")


def test_a_window_of_1100_pixels_shows_whole_tables(browser, report):
    tab = Tab(browser, report)
    tab.page.set_viewport_size({"width": 1100, "height": 800})
    tab.open("")
    found = sizes(tab)
    assert len(found) == 8
    assert all(there <= seen for seen, there in found), found
    tab.close()


def test_on_a_phone_the_names_stay_beside_what_is_scrolled(browser, report):
    tab = Tab(browser, report, is_mobile=True, has_touch=True)
    tab.page.set_viewport_size({"width": 390, "height": 844})
    tab.open("")
    (window, across), *tables = sizes(tab)
    assert (window, across) == (390, 390)  # the page itself never scrolls sideways
    wide = next(at for at, (seen, there) in enumerate(tables) if there > seen)
    table = tab.page.locator("div.wide").nth(wide)
    names = table.locator("td:first-child").first
    numbers = table.locator("td:nth-child(2)").first
    before = names.bounding_box()["x"], numbers.bounding_box()["x"]
    table.evaluate("(box) => { box.scrollLeft = 100; }")
    assert (names.bounding_box()["x"], numbers.bounding_box()["x"]) == (before[0], before[1] - 100)
    assert names.bounding_box()["width"] < 390 / 3
    tab.close()
