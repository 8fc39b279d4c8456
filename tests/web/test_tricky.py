"""Fast hands, odd proxies, shared examples: the page says what is so, and loses nothing."""

from __future__ import annotations

import sites
from browsing import Tab, expect, labels, running, wait_for
from fruit import KINDS


def test_a_proxy_that_knows_nothing_of_us_loses_no_answer(browser, pool, tmp_path):
    """Only this server may refuse an answer for good; a page that says 404 may come from anywhere
    on the way.
    """
    project = sites.begin(tmp_path / "run", pool)
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        page = tab.page
        one = tab.name
        strange = [(404, "<h1>no such site</h1>"), (413, ""), (400, "[]")]

        def on_the_way(route):
            if not strange:
                route.continue_()
                return
            status, body = strange.pop(0)
            route.fulfill(status=status, body=body)

        page.route("**/api/answer", on_the_way)
        page.keyboard.press("1")
        expect(page.get_by_role("alert")).to_contain_text(
            "1 answer is not saved yet: the server can't be reached"
        )
        tab.all_saved()
        assert not strange
        assert labels(project) == {one: KINDS[0]}
        tab.close(but="Failed to load resource")


def test_going_back_shows_my_own_vote(browser, pool, tmp_path):
    """Where several are asked there is no label yet; that does not mean that I skipped it."""
    project = sites.begin(tmp_path / "run", pool)
    with running(
        project, name="anna", coordinator_options={"overlap": 2, "overlap_share": 1.0}
    ) as (
        url,
        coordinator,
    ):
        tab = Tab(browser, url).open()
        page = tab.page
        one = tab.name
        page.keyboard.press("2")
        expect(page.locator("#name")).not_to_have_text(one)
        tab.all_saved()
        page.reload()
        expect(page.locator("#back")).to_be_enabled()
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#name")).to_have_text(one)
        expect(page.locator("#question")).to_have_text(f"You said: {KINDS[1]}")
        assert coordinator.item(one).label is None
        tab.close()


def test_two_corrections_at_once(browser, pool, tmp_path):
    """A second key while the first is on its way, and another picture opened meanwhile: each keeps
    to its own.
    """
    project = sites.begin(tmp_path / "run", pool, batch=5, holdout=0.0)
    with running(project) as (url, coordinator):
        wait_for(lambda: len(coordinator.next("me", 2).items) == 2)
        first, second = sorted(item.id for item in coordinator.next("me", 2).items)
        for one in (first, second):
            coordinator.answer("me", one, ["apple"])
        tab = Tab(browser, url).open("/review")
        page = tab.page
        held = []
        page.wait_for_load_state("load")
        page.route("**/api/answer", lambda route: held.append(route))
        tile, other = (page.locator(f'.tile[data-id="{one}"]') for one in (first, second))
        tile.get_by_role("button").click()
        page.keyboard.press("3")
        page.keyboard.press("4")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
        other.get_by_role("button").click()
        assert len(held) == 1  # the second key waits for nothing: it was for what is gone by then
        held[0].continue_()
        expect(tile.locator(".now")).to_have_text("pear")
        expect(other.locator(".now")).to_have_text("apple")
        expect(page.locator("#correct-name")).to_have_text(second)
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.press("2")
        wait_for(lambda: page.wait_for_timeout(20) or len(held) == 2)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
        held[1].fulfill(status=503, json={"error": "the database can't be reached"})
        expect(page.get_by_role("dialog")).to_contain_text(
            f"{second} was not saved: the database can't be reached"
        )
        assert labels(project) == {first: "pear", second: "apple"}
        tab.close(but="503")
