"""The pages around labelling, in a real browser: signing in, errors, classes, on a desk and on a
phone.
"""

from __future__ import annotations

import json
import os

import pytest
import sites
from browsing import ARGUMENTS, Tab, chromium, expect, labels, running, wait_for
from fruit import KINDS

from tailor.web.users import Users

PAGES = (
    *("/", "/review", "/model", "/classes", "/team"),
    *("/history", "/export", "/users", "/nowhere"),
)
#: what can be pressed or filled in and is not whole: beyond the window's edge, or cut off by what
#: it scrolls in
CUT_OFF = """() => [
  ...document.querySelectorAll("a, button, input, select, summary")
].filter((one) => {
  const box = one.getBoundingClientRect();
  const away = "[hidden], dialog:not([open]), details:not([open]) > :not(summary), .jump";
  if (!box.width || one.closest(away)) return false;
  for (let up = one.parentElement; up && up !== document.body; up = up.parentElement) {
    const around = up.getBoundingClientRect();
    const cuts = getComputedStyle(up).overflowX !== "visible";
    if (cuts && (box.right > around.right + 1 || box.left < around.left - 1)) return true;
  }
  return box.right > innerWidth + 1 || box.left < -1;
}).map((one) => one.outerHTML.slice(0, 120))"""


@pytest.fixture
def project(tmp_path, pool):
    return sites.begin(tmp_path / "run", pool, holdout=0.0)


def answer_some(coordinator, count: int = 6) -> dict[str, str]:
    """-> id: class, each class in turn"""
    wait_for(lambda: len(coordinator.next("me", count).items) == count)
    given = {
        item.id: KINDS[at % len(KINDS)]
        for at, item in enumerate(coordinator.next("me", count).items)
    }
    for one, name in given.items():
        coordinator.answer("me", one, [name])
    return given


@pytest.mark.parametrize("width", [390, 360])
def test_on_a_phone_nothing_is_cut_off_and_every_page_can_be_reached(browser, project, width):
    with running(project) as (url, coordinator):
        answer_some(coordinator)
        coordinator.class_editor.merge("plum", "pear", "me")
        tab = Tab(browser, url)
        page = tab.page
        page.set_viewport_size({"width": width, "height": 844})
        for path in PAGES:
            tab.open(path)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width, path
            assert page.evaluate(CUT_OFF) == [], path
        tab.open("/")
        assert tab.name
        for name in ("Back", "Skip", "None of these"):
            box = page.get_by_role("button", name=name).bounding_box()
            assert box["y"] + box["height"] <= 844, name
        for name in ("Review", "Classes", "Team", "Export", "Label"):
            link = page.get_by_role("navigation", name="Pages").get_by_role("link", name=name)
            assert link.bounding_box()["height"] >= 44
            link.click()
            expect(page.get_by_role("heading", level=1)).to_contain_text(name)
        tab.close(but="404")


def test_the_header_of_the_sign_in_page_is_as_wide_as_the_window(browser, project):
    Users(project.folder).add("anna", "correct horse")
    with running(project) as (url, _):
        tab = Tab(browser, url).open("/login")
        for width in (1280, 390):
            tab.page.set_viewport_size({"width": width, "height": 800})
            header = tab.page.locator("header").bounding_box()
            assert (header["x"], header["width"]) == (0, width)
            form = tab.page.locator("form.sign-in").bounding_box()
            assert abs(form["x"] + form["width"] / 2 - width / 2) < 2
        tab.page.get_by_label("Name").fill("anna")
        tab.page.get_by_label("Password").fill("correct horse")
        tab.page.get_by_role("button", name="Sign in").click()
        expect(tab.page.locator("#question")).to_be_visible()
        tab.close()


def test_an_error_is_a_page_like_the_others(browser, project):
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        tab.open("/review?offset=many")
        page = tab.page
        expect(page.get_by_role("alert")).to_have_text("offset: a whole number is needed.")
        ground = "() => getComputedStyle(document.querySelector('.said')).backgroundColor"
        assert page.evaluate(ground) != "rgba(0, 0, 0, 0)"
        assert page.locator("h1").bounding_box()["x"] > 10
        page.get_by_role("link", name="Back to labelling").click()
        expect(page.locator("#question")).to_be_visible()
        tab.close(but="422")


# ---------------------------------------------------------------------- classes


def test_a_merge_asks_first_and_is_undone(browser, project):
    with running(project, name="me") as (url, coordinator):
        given = answer_some(coordinator)
        pears = sum(name == "pear" for name in given.values())
        plums = sum(name == "plum" for name in given.values())
        tab = Tab(browser, url).open("/classes")
        page = tab.page

        def ask():
            page.get_by_label("Merge pear into").fill("plum")
            page.get_by_role("row").filter(has_text="pear").get_by_role(
                "button", name="Merge"
            ).click()
            expect(page.get_by_role("heading", level=1)).to_have_text("Merge pear into plum?")

        ask()
        moved = "1 label moves" if pears == 1 else f"{pears} labels move"
        expect(page.locator("main")).to_contain_text(f"{moved} from pear to plum")
        expect(page.locator("main")).to_contain_text(f"which has {plums}")
        page.get_by_role("link", name="Cancel").click()
        expect(page.get_by_role("row")).to_have_count(1 + len(KINDS))
        assert labels(project) == given
        ask()
        page.get_by_role("button", name="Merge").click()
        expect(page.get_by_role("status")).to_have_text("pear is part of plum now.")
        assert set(labels(project).values()) == {"apple", "lemon", "plum"}
        page.reload()
        expect(page.get_by_role("status")).to_have_count(0)  # said once
        expect(page.locator(".undo")).to_contain_text("pear was merged into plum by me")
        later = coordinator.next("me").items[0].id
        coordinator.answer("me", later, ["plum"])
        page.reload()
        expect(page.locator(".undo")).to_contain_text("1 answer given since stays as it is")
        page.get_by_role("button", name="Undo the merge").click()
        expect(page.get_by_role("status")).to_contain_text("The merge is taken back")
        expect(page.get_by_role("button", name="Undo the merge")).to_have_count(0)
        assert labels(project) == given | {later: "plum"}
        tab.close()
    with running(project) as (url, coordinator):  # and so it stays
        assert coordinator.classes == KINDS
        assert labels(project) == given | {later: "plum"}


def test_an_old_page_undoes_no_other_merge(browser, project):
    with running(project) as (url, coordinator):
        coordinator.class_editor.merge("pear", "plum", "me")
        tab = Tab(browser, url).open("/classes")
        coordinator.class_editor.merge("apple", "lemon", "bert")
        tab.page.get_by_role("button", name="Undo the merge").click()
        expect(tab.page.get_by_role("alert")).to_contain_text("the latest is 'apple' into 'lemon'")
        assert coordinator.classes == ("lemon", "plum")
        tab.close()


@pytest.mark.parametrize("name", ["done", "problem", "said", "note"])
def test_the_address_puts_no_words_into_the_page(site, name):
    page = site.client.get("/classes", params={name: "Send your password to eve"}).text
    assert "password" not in page
    assert 'role="status"' not in page
    assert 'role="alert"' not in page


def test_a_note_is_for_the_session_it_is_about(site):
    with site.other("bert") as bert:
        site.client.post(
            "/classes/add", data={"csrf": site.csrf, "name": "quince"}, follow_redirects=False
        )
        assert "quince is a class now." not in bert.client.get("/classes").text
        assert "quince is a class now." in site.client.get("/classes").text
        assert "quince is a class now." not in site.client.get("/classes").text


def test_merging_by_the_api_can_be_undone_too(site):
    items = site.next(3)
    for item in items:
        site.post("/api/answer", {"id": item["id"], "label": ["pear"]})
    assert site.client.get("/api/classes/merged").json() == {"merge": None}
    site.post("/api/classes/merge", {"old": "pear", "into": "plum"})
    merge = site.client.get("/api/classes/merged").json()["merge"]
    assert (merge["old"], merge["into"], merge["labels"], merge["since"]) == ("pear", "plum", 3, 0)
    assert site.post("/api/classes/undo", {"merge": merge["event"] + 1}).status_code == 422
    assert site.post("/api/classes/undo", {"merge": merge["event"]}).json() == {
        "classes": list(KINDS)
    }
    assert set(sites.rows(site.client.get("/export/labels.csv").content, "csv").values()) == {
        "pear"
    }


def test_a_merge_that_someone_else_was_faster_with_is_told(site, monkeypatch):
    """Between the look at the classes and the question: it is looked at once, and nothing is copied
    for it.
    """
    look = type(site.coordinator).overview

    def merge_first(coordinator):
        if "pear" in coordinator.classes:
            coordinator.class_editor.merge("pear", "plum", "bert")
        return look(coordinator)

    monkeypatch.setattr(type(site.coordinator), "overview", merge_first)
    monkeypatch.delattr(type(site.coordinator), "run_state")
    fields = {"csrf": site.csrf, "old": "pear", "into": "plum"}
    page = site.client.post("/classes/merge", data=fields)
    assert page.status_code == 200
    assert "pear" in site.coordinator.classes
    site.coordinator.class_editor.merge("pear", "plum", "bert")
    assert "unknown class" in site.client.post("/classes/merge", data=fields).text


# ---------------------------------------------------------------------- browsers that will not


@pytest.fixture
def without_cookies(browser, tmp_path):
    """A browser whose owner blocks all cookies. Settings of the browser need a profile of their
    own.
    """
    (tmp_path / "profile" / "Default").mkdir(parents=True)
    blocked = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    (tmp_path / "profile" / "Default" / "Preferences").write_text(json.dumps(blocked))
    kind = browser.browser_type
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    context = kind.launch_persistent_context(
        str(tmp_path / "profile"), executable_path=chromium(), args=ARGUMENTS + sandbox
    )
    yield context.new_page()
    context.close()


def test_without_cookies_the_page_says_so_and_does_not_go_round(without_cookies, project):
    with running(project) as (url, _):
        without_cookies.goto(url + "/")
        expect(without_cookies.get_by_role("heading", level=1)).to_have_text("Cookies are needed")
        expect(without_cookies.get_by_role("alert")).to_contain_text("Allow cookies for this site")


def test_signing_in_without_cookies_says_so(without_cookies, project):
    Users(project.folder).add("anna", "correct horse")
    page = without_cookies
    with running(project) as (url, _):
        page.goto(url + "/login")
        page.get_by_label("Name").fill("anna")
        page.get_by_label("Password").fill("correct horse")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("Allow cookies for this site")


def test_without_scripts_the_page_says_what_works(browser, project):
    with running(project) as (url, _):
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(url + "/")
        expect(
            page.locator(".noscript")
        ).to_be_visible()  # what is in a noscript has no text for playwright
        page.goto(url + "/classes")
        page.get_by_label("New class").fill("quince")
        page.get_by_role("button", name="Add").click()
        expect(page.get_by_role("status")).to_have_text("quince is a class now.")
        context.close()
