"""kill -9 of the server between click and answer: nothing acknowledged is lost, and the page sends
the rest again.
"""

from __future__ import annotations

import browsing
import sites
from browsing import Server, Tab, expect, labels
from fruit import KINDS, orchard, truth


def press(tab: Tab) -> tuple[str, str]:
    """The right key, without waiting for anything."""
    one = tab.name
    tab.page.keyboard.press(str(KINDS.index(truth(one)) + 1))
    return one, truth(one)


def test_killed_between_click_and_answer(browser, tmp_path):
    project = sites.begin(tmp_path / "run", orchard(tmp_path / "pool", 120), batch=60)
    server = Server(project.folder, "--name", "anna").start()
    tab = Tab(browser, server.url).open()
    given = {}
    page = tab.page
    try:
        for _ in range(10):
            one, label = tab.answer()
            given[one] = label
        tab.all_saved()
        assert tab.acknowledged == 10
        page.wait_for_load_state("networkidle")  # the next pictures are here

        tab.loaded_ahead()
        server.kill()
        assert labels(project) == given  # acknowledged, so there
        one, label = press(tab)  # the next is loaded already: the page goes on
        given[one] = label
        expect(page.locator("#name")).not_to_have_text(one)
        one, label = press(tab)
        given[one] = label
        expect(page.get_by_role("alert")).to_contain_text("2 answers are not saved yet")
        expect(page.locator("#saved")).to_have_text("2 not saved")
        assert len(labels(project)) == 10

        server.start()  # the page finds it by itself
        tab.all_saved()
        expect(page.get_by_role("alert")).to_be_hidden()
        assert labels(project) == given

        tab.loaded_ahead()
        server.kill()
        one, label = press(tab)
        given[one] = label
        expect(page.get_by_role("alert")).to_contain_text("1 answer is not saved yet")
        server.start()
        page.reload()  # a page that was closed meanwhile sends what it still has
        tab.all_saved()
        browsing.wait_for(lambda: labels(project) == given)
        history = page.evaluate("() => fetch('/api/history?n=50').then((r) => r.json())")["items"]
        assert {item["id"]: item["label"][0] for item in history} == given

        for _ in range(
            6
        ):  # killed while answers are on their way: what the page keeps no longer is in the store
            one, label = press(tab)
            given[one] = label
            expect(page.locator("#name")).not_to_have_text(one)
        server.kill()
        assert given.keys() - tab.unsent <= labels(project).keys()
        server.start()
        tab.all_saved()
        assert labels(project) == given
    finally:
        if server.process.poll() is None:
            server.kill()
    tab.close(but="Failed to load resource")  # it was down, after all
