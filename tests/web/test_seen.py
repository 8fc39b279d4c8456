"""What a person sees is what is answered: slow pictures, long and right-to-left texts, two windows,
going back.
"""

from __future__ import annotations

import json
from collections import Counter
from urllib.parse import quote

import pytest
import sites
from browsing import Tab, drawn, expect, labels, running, wait_for
from fruit import KINDS, orchard

PICTURES = "**/picture?*"


class Held:
    """Requests that wait until they are let go."""

    def __init__(self, page, pattern: str) -> None:
        self.page = page
        self.routes = []
        self.holds = True
        page.route(
            pattern, lambda route: self.routes.append(route) if self.holds else route.continue_()
        )

    def arrive(self) -> None:
        """Waits until there is one."""
        wait_for(lambda: self.page.wait_for_timeout(20) or self.routes)

    def let_go(self) -> None:
        self.holds = False
        while self.routes:
            self.routes.pop().continue_()


@pytest.mark.parametrize("kind", ["multi-class", "multi-label"])
def test_nothing_is_answered_before_it_is_seen(browser, pool, tmp_path, kind):
    """By key, by button, by finger: neither a class, nor none of them, nor a skip."""
    project = sites.begin(tmp_path / "run", pool, kind=kind)
    with running(project) as (url, _):
        tab = Tab(browser, url, has_touch=True)
        page = tab.page
        held = Held(tab.page, PICTURES)
        tab.open()
        held.arrive()
        name = page.locator("#name")
        expect(name).not_to_have_text("")
        one = name.text_content()
        expect(page.locator(".awaited .spinner")).to_be_visible()
        expect(page.locator(".awaited")).to_have_text("Loading the picture")
        for key in ("1", "0", "Enter", "ArrowRight"):
            page.keyboard.press(key)
        for button in (
            ".choice >> nth=1",
            "#none",
            "#skip",
            *(["#save"] if kind == "multi-label" else []),
        ):
            expect(page.locator(button)).to_have_attribute("aria-disabled", "true")
            page.locator(button).click(force=True)
            page.locator(button).tap(force=True)
        expect(page.locator("#announce")).to_have_text("Not yet. Loading the picture")
        expect(name).to_have_text(one)
        expect(page.locator("#saved")).to_have_text("All saved")
        held.let_go()
        assert tab.name == one
        expect(page.locator(".awaited")).to_have_count(0)
        expect(page.locator("[aria-pressed=true]")).to_have_count(
            0
        )  # what was pressed too early is forgotten
        page.keyboard.press("2")
        if kind == "multi-label":
            page.keyboard.press("Enter")
        expect(name).not_to_have_text(one)
        tab.all_saved()
        assert labels(project) == {one: KINDS[1] if kind == "multi-class" else [KINDS[1]]}
        tab.close()


@pytest.mark.parametrize("fault", ["the server", "an extension"])
def test_a_picture_that_never_comes_can_be_skipped_and_nothing_else(browser, tmp_path, pool, fault):
    project = sites.begin(tmp_path / "run", pool)
    with running(project) as (url, coordinator):
        tab = Tab(browser, url)
        page = tab.page
        asked = []

        def refuse(route):
            asked.append(route.request.url)
            if fault == "the server":
                route.fulfill(status=503, json={"error": "not now"})
            else:
                route.abort("blockedbyclient")

        page.route(PICTURES, refuse)
        tab.open()
        name = page.locator("#name")
        skip = page.locator("#skip")
        expect(page.locator(".awaited")).to_have_text(
            "The picture can't be fetched. Trying again … You can skip it."
        )
        expect(skip).to_have_attribute("aria-disabled", "false")
        one = name.text_content()
        for key in ("1", "0", "Enter"):
            page.keyboard.press(key)
        expect(page.locator("#announce")).to_contain_text("Not yet.")
        for button in (".choice >> nth=1", "#none"):
            expect(page.locator(button)).to_have_attribute("aria-disabled", "true")
            page.locator(button).click(force=True)
        expect(name).to_have_text(one)
        picture = next(at for at in asked if quote(one, safe="") in at or one in at)
        skip.click()
        expect(name).not_to_have_text(one)
        tab.all_saved()
        assert labels(project) == {}
        assert coordinator.item(one).skipped
        seen = len(asked)

        def others_were_tried_again() -> bool:
            page.wait_for_timeout(20)
            return any(count >= 8 for count in Counter(asked[seen:]).values())

        wait_for(others_were_tried_again)
        assert asked[seen:].count(picture) <= 2  # what was under way: nobody looks at it any more
        tab.close(but="Failed to load resource")


def test_where_the_server_is_gone_nothing_is_skipped_unseen(browser, tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    with running(project) as (url, _):
        tab = Tab(browser, url)
        page = tab.page
        asked = []

        def away(route):
            asked.append(route.request.url)
            route.abort()

        page.route(PICTURES, away)
        page.route("**/static/icon.svg", away)
        tab.open()
        wait_for(
            lambda: (
                page.wait_for_timeout(20) or any(count >= 10 for count in Counter(asked).values())
            )
        )
        expect(page.locator(".awaited")).to_have_text(
            "The picture can't be fetched. Trying again …"
        )
        expect(page.locator("#skip")).to_have_attribute("aria-disabled", "true")
        one = page.locator("#name").text_content()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#announce")).to_contain_text("Not yet.")
        expect(page.locator("#name")).to_have_text(one)
        tab.close(but="Failed to load resource")


def test_a_picture_that_does_not_come_is_awaited_and_one_that_is_broken_can_only_be_skipped(
    browser, tmp_path, pool
):
    project = sites.begin(tmp_path / "run", pool)
    with running(project) as (url, coordinator):
        tab = Tab(browser, url)
        page = tab.page
        broken = {"error": "this picture can't be read: broken image"}
        page.route(PICTURES, lambda route: route.abort())
        tab.open()
        expect(page.locator(".awaited")).to_contain_text(
            "The picture can't be fetched. Trying again …"
        )
        page.keyboard.press("1")
        page.unroute(PICTURES)
        one = tab.name
        expect(page.get_by_role("img", name=f"Picture {one}")).to_be_visible()
        page.route(PICTURES, lambda route: route.fulfill(status=404, json=broken))
        page.reload()
        assert tab.name == one
        expect(page.locator("#mat")).to_have_text(
            f"This one can't be shown: {broken['error']}. Skip it."
        )
        page.keyboard.press("1")
        expect(page.locator("#announce")).to_have_text(
            "This one can't be shown: it can only be skipped"
        )
        page.keyboard.press("ArrowRight")
        expect(page.locator("#name")).not_to_have_text(one)
        tab.all_saved()
        assert labels(project) == {}
        assert coordinator.item(one).skipped
        tab.close(but="Failed to load resource")


def test_waiting_for_the_network_is_not_called_choosing(browser, pool, tmp_path):
    project = sites.begin(tmp_path / "run", pool, batch=12, holdout=0.0)
    with running(project) as (url, _):
        tab = Tab(browser, url)
        message = tab.page.locator("#mat h2")
        held = Held(tab.page, "**/api/next*")
        tab.open()
        held.arrive()
        expect(message).to_have_text("Fetching the first ones")
        held.let_go()
        assert tab.name
        tab.page.wait_for_load_state("networkidle")
        held = Held(tab.page, "**/api/next*")
        while message.count() == 0:  # what was loaded ahead
            tab.answer()
        expect(message).to_have_text("Fetching the next ones")
        expect(tab.page.locator("#mat .spinner")).to_be_visible()
        held.let_go()
        assert tab.name
        tab.page.route(
            "**/api/next*",
            lambda route: route.fulfill(
                json={
                    "items": [],
                    "state": "preparing",
                    "reason": None,
                    "classes": list(KINDS),
                }
            ),
        )
        while message.count() == 0:
            tab.answer()
        expect(message).to_have_text("Choosing the next ones")  # now that the server says so
        tab.close()


def long_texts(folder, write) -> str:
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": write(i)}) + "\n" for i in range(30)))
    return path


def test_a_long_text_scrolls_by_keyboard_and_keys_still_answer(browser, tmp_path):
    path = long_texts(tmp_path, lambda i: f"number {i} " + "word after word " * 2000)
    model = {"name": "probe(steps=20)", "backbone": "hashed-words"}
    project = sites.begin(tmp_path / "run", path, ["a", "b"], model=model)
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        page = tab.page
        one = tab.name
        text = page.locator(".words")

        def top() -> float:
            return text.evaluate("(e) => e.scrollTop")

        seen = [top()]
        for key, grows in (
            ("ArrowDown", True),
            ("PageDown", True),
            ("Space", True),
            ("ArrowUp", False),
            ("PageUp", False),
            ("End", True),
            ("Home", False),
        ):
            page.keyboard.press(key)
            wait_for(lambda: top() != seen[-1])
            seen.append(top())
            assert (seen[-1] > seen[-2]) == grows, key
        assert seen[-1] == 0
        page.locator(".choice").first.focus()
        page.keyboard.press("PageDown")  # wherever the focus is
        wait_for(lambda: top() > 0)
        expect(page.locator("#name")).to_have_text(one)
        page.keyboard.press("Space")  # a button that has the focus is pressed
        expect(page.locator("#name")).not_to_have_text(one)
        assert tab.name
        page.keyboard.press("2")
        tab.all_saved()
        assert sorted(labels(project).values()) == ["a", "b"]
        tab.close()


def test_right_to_left_texts_and_names(browser, tmp_path):
    """Each is laid out by its own first letter, whatever stands around it."""
    arabic, hebrew = "مرحبا بالعالم (1)", "תפוח (2)"
    path = long_texts(tmp_path, lambda i: f"{arabic} {i}.")
    model = {"name": "probe(steps=20)", "backbone": "hashed-words"}
    project = sites.begin(tmp_path / "run", path, [hebrew, "apple"], model=model)
    right = "(e) => getComputedStyle(e).direction"
    with running(project, name=hebrew) as (url, _):
        tab = Tab(browser, url).open()
        page = tab.page
        assert tab.name
        expect(page.locator("#why p").first).not_to_have_text("…")
        shown = [
            ".words p",
            ".choice span >> nth=0",
            ".who",
            "[data-card=classes] .label >> text=" + hebrew,
        ]
        for selector in shown:
            assert page.locator(selector).first.evaluate(right) == "rtl", selector
        assert page.locator(".choice span").last.evaluate(right) == "ltr"
        page.keyboard.press("1")
        tab.all_saved()
        for path, selectors in {
            "/review": [
                ".snippet",
                ".correct .now",
                ".origin bdi >> nth=1",
                "select[name=klass] option >> nth=1",
            ],
            "/team": ["tbody th a"],
        }.items():
            tab.open(path)
            for selector in selectors:
                assert page.locator(selector).first.evaluate(right) == "rtl", (path, selector)
        tab.close()


def test_a_second_window_learns_of_an_answer_in_the_first(browser, pool, tmp_path):
    project = sites.begin(tmp_path / "run", pool, holdout=0.0)
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        first = tab.page
        one = tab.name
        second = tab.context.new_page()
        second.goto(url)
        expect(second.locator("#name")).to_have_text(one)
        drawn(second)
        tab.page.route(
            "**/api/answer", lambda route: route.abort()
        )  # by the browser itself: the server knows nothing
        first.keyboard.press("2")
        expect(first.locator("#name")).not_to_have_text(one)
        following = tab.name
        expect(second.locator("#name")).to_have_text(following)
        expect(second.locator("#announce")).to_have_text(f"{one} was answered in another window")
        second.keyboard.press("ArrowLeft")
        expect(second.locator("#name")).to_have_text(one)
        expect(second.locator("#question")).to_have_text(f"You said: {KINDS[1]}")
        first.keyboard.press("1")  # what the second window looks at stays
        expect(first.locator("#name")).not_to_have_text(following)
        last = tab.name
        expect(second.locator("#name")).to_have_text(one)
        second.keyboard.press("ArrowRight")
        expect(second.locator("#name")).to_have_text(following)
        second.keyboard.press("ArrowRight")
        expect(second.locator("#name")).to_have_text(last)
        first.unroute("**/api/answer")
        expect(first.locator("#saved")).to_have_text("All saved")
        assert labels(project) == {one: KINDS[1], following: KINDS[0]}
        tab.close(but="ERR_FAILED")


@pytest.mark.parametrize("kind", ["image", "text"])
def test_back_after_a_reload_knows_what_is_not_saved_yet(browser, pool, tmp_path, kind):
    model = None
    if kind == "text":
        pool = long_texts(tmp_path, lambda i: f"text number {i}")
        model = {"name": "probe(steps=20)", "backbone": "hashed-words"}
    project = sites.begin(tmp_path / "run", pool, model=model, holdout=0.0)
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        page = tab.page
        given = []
        for key in "1234":
            if key == "2":
                tab.all_saved()  # the first is known to the server
                page.route("**/api/answer", lambda route: route.abort())
            given.append(tab.name)
            page.keyboard.press(key)
            expect(page.locator("#name")).not_to_have_text(given[-1])
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#name")).to_have_text(given[2])
        tab.drawn()
        page.keyboard.press("1")  # a correction, not saved either
        expect(page.locator("#saved")).to_have_text("4 not saved")
        page.reload()
        tab.drawn()
        expect(page.locator("#saved")).to_have_text("4 not saved")
        for one, label in (
            (given[2], "apple"),
            (given[3], "plum"),
            (given[1], "lemon"),
            (given[0], "apple"),
        ):
            page.keyboard.press("ArrowLeft")
            expect(page.locator("#name")).to_have_text(one)
            expect(page.locator("#question")).to_have_text(f"You said: {label}")
            tab.drawn()
            if kind == "text":
                expect(page.locator(".words")).to_contain_text("text number")
        page.unroute("**/api/answer")
        tab.all_saved()
        assert labels(project) == dict(zip(given, ("apple", "lemon", "apple", "plum")))
        tab.close(but="ERR_FAILED")


@pytest.mark.parametrize("kind", ["multi-class", "multi-label"])
def test_none_of_these_and_a_skip_differ_when_going_back(browser, pool, tmp_path, kind):
    project = sites.begin(tmp_path / "run", pool, kind=kind)
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        page = tab.page
        none = tab.name
        page.keyboard.press("0")
        expect(page.locator("#name")).not_to_have_text(none)
        skipped = tab.name
        page.keyboard.press("ArrowRight")
        expect(page.locator("#name")).not_to_have_text(skipped)
        tab.all_saved()
        for _ in range(2):  # the second time after a reload
            page.keyboard.press("ArrowLeft")
            expect(page.locator("#name")).to_have_text(skipped)
            expect(page.locator("#question")).to_have_text("You skipped this one")
            expect(page.locator(".actions .was")).to_have_id("skip")
            page.keyboard.press("ArrowLeft")
            expect(page.locator("#name")).to_have_text(none)
            expect(page.locator("#question")).to_have_text("You said: none of these")
            expect(page.locator(".actions .was")).to_have_id("none")
            page.reload()
            assert tab.name
        assert labels(project) == ({} if kind == "multi-class" else {none: []})
        tab.close()


def test_the_round_is_told_in_numbers_that_can_be_counted(browser, tmp_path):
    pool = orchard(tmp_path / "pool", 30)
    # More than the page loads ahead: no spare pick is asked, and no other round begins.
    project = sites.begin(tmp_path / "run", pool, batch=20, holdout=0.0, start="random")
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        progress = tab.page.locator("[data-card=progress]")
        expect(progress).to_contain_text("Answered in it0 of 20")
        expect(progress).to_contain_text("Left in it20")
        tab.answer()
        assert tab.name
        tab.page.keyboard.press("ArrowRight")
        expect(progress).to_contain_text("Round1")
        expect(progress).to_contain_text("Answered in it1 of 20")
        expect(progress).to_contain_text("Left in it18")
        expect(progress).to_contain_text("1 skipped")
        expect(tab.page.locator("#why")).to_contain_text("Asked for in round 1.")
        tab.close()


def test_files_that_cannot_be_read_are_told_on_the_page(browser, tmp_path):
    pool = orchard(tmp_path / "pool", 12)
    for name in ("torn.jpg", "empty.png"):
        (pool / name).write_bytes(b"no picture" if name == "torn.jpg" else b"")
    project = sites.begin(tmp_path / "run", pool, batch=4)
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        card = tab.page.locator("[data-card=unreadable]")
        expect(card).to_contain_text("2 files or examples")
        card.locator("summary").click()
        expect(card.get_by_text("torn.jpg: not an image")).to_be_visible()
        expect(card.get_by_text("empty.png: empty")).to_be_visible()
        tab.close()
    whole = sites.begin(tmp_path / "other", orchard(tmp_path / "whole", 12), batch=4)
    with running(whole) as (url, coordinator):
        tab = Tab(browser, url).open()
        assert tab.name
        wait_for(lambda: coordinator.planner._pool_is_read)
        expect(tab.page.locator("[data-card=unreadable]")).to_be_hidden()
        tab.close()
