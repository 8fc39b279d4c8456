"""A person at the page, in a real browser."""

from __future__ import annotations

from urllib.parse import parse_qs

import numpy as np
import pytest
import sites
from browsing import Tab, drawn, expect, labels, running, wait_for
from fruit import KINDS, orchard, truth

from tailor.web.serve import sign_in_path
from tailor.web.users import Users


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    return orchard(tmp_path_factory.mktemp("pool"), 150)


def test_an_afternoon_of_labelling(browser, pool, tmp_path):
    """Fifty by keyboard; correct, skip, reload in the middle; review, rename and merge a class,
    export.
    """
    project = sites.begin(tmp_path / "run", pool, batch=20, holdout=0.3)
    with running(project, name="anna") as (url, coordinator):
        tab = Tab(browser, url).open()
        page = tab.page
        given = {}
        for _ in range(25):
            one, label = tab.answer()
            given[one] = label

        wrong = tab.name  # a wrong answer, and back to it
        page.keyboard.press("1" if truth(wrong) != KINDS[0] else "2")
        expect(page.locator("#name")).not_to_have_text(wrong)
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#name")).to_have_text(wrong)
        expect(page.locator("#question")).to_contain_text("You said: ")
        expect(page.locator(".choice.was")).to_have_count(1)
        tab.drawn()
        page.keyboard.press(str(KINDS.index(truth(wrong)) + 1))
        given[wrong] = truth(wrong)
        expect(page.locator("#name")).not_to_have_text(wrong)

        skipped = tab.name
        page.keyboard.press("ArrowRight")
        expect(page.locator("#name")).not_to_have_text(skipped)

        shown = tab.name
        page.reload()  # in the middle
        expect(page.locator("#name")).to_have_text(shown)  # the same one, nothing lost
        # Labelling never waits for training, so a machine that answers in no time would never see a
        # second round.
        wait_for(
            lambda: (
                coordinator.planner._ready is not None
                or coordinator.overview()["progress"]["round"] > 0
            )
        )
        while len(given) < 50:
            one, label = tab.answer()
            given[one] = label
        tab.all_saved()
        assert labels(project) == given
        assert skipped not in given
        expect(page.locator("[data-card=progress]")).to_contain_text(f"{len(given)} labelled")
        expect(page.locator("[data-card=holdout] svg.line")).to_be_visible()
        expect(page.locator("[data-card=arms]")).to_contain_text("confidence")

        review(tab, project, given)
        classes(tab, project, given)
        export(tab, given)
        tab.close()


def review(tab: Tab, project, given: dict[str, str]) -> None:
    page = tab.page
    page.get_by_role("link", name="Review", exact=True).click()
    page.wait_for_load_state("load")  # the script is there
    expect(page.locator(".tile")).to_have_count(50)
    page.locator("select[name=klass]").select_option("lemon")
    page.wait_for_url("**/review?klass=lemon*")
    expect(page.locator(".tile")).to_have_count(sum(label == "lemon" for label in given.values()))
    first = page.locator(".tile").first
    one = first.get_attribute("data-id")
    first.get_by_role("button").press("Enter")  # correct in place, by keyboard
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press(str(KINDS.index("pear") + 1))
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(first.locator(".now")).to_have_text("pear")
    given[one] = "pear"
    assert labels(project) == given


def classes(tab: Tab, project, given: dict[str, str]) -> None:
    page = tab.page
    page.get_by_role("link", name="Classes", exact=True).click()
    page.get_by_label("New class").fill("citrus")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status")).to_contain_text("citrus is a class now")
    page.get_by_label("Merge lemon into").fill("citrus")
    page.get_by_label("Merge lemon into").press("Enter")
    page.get_by_role("button", name="Merge").click()  # asked first
    expect(page.get_by_role("status")).to_contain_text("lemon is part of citrus now")
    page.get_by_label("New name of plum").fill("damson")
    page.get_by_label("New name of plum").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("plum is called damson now")
    renamed = {"lemon": "citrus", "plum": "damson"}
    given.update({one: renamed.get(label, label) for one, label in given.items()})
    assert labels(project) == given
    page.get_by_role("link", name="Label", exact=True).click()
    expect(page.locator(".choice")).to_have_count(4)
    expect(page.locator(".choices")).to_contain_text("damson")
    expect(page.locator(".choices")).not_to_contain_text("lemon")


def export(tab: Tab, given: dict[str, str]) -> None:
    page = tab.page
    page.get_by_role("link", name="Export", exact=True).click()
    for form in ("csv", "jsonl", "parquet"):
        with page.expect_download() as download:
            page.locator(f'a[href="/export/labels.{form}"]').click()
        with open(download.value.path(), "rb") as file:
            assert sites.rows(file.read(), form) == given


def test_two_browsers_at_once(browser, pool, tmp_path):
    """Two people, no picture twice, every answer kept under its name."""
    project = sites.begin(tmp_path / "run", pool, batch=30)
    with running(project, name="anna") as (url, coordinator):
        anna = Tab(browser, url).open()
        bert = Tab(browser, url).open()
        bert.page.locator(".me summary").click()
        bert.page.get_by_label("Label as").fill("bert")
        bert.page.get_by_role("button", name="Change name").click()
        expect(bert.page.locator(".who")).to_have_text("bert")
        seen = {"anna": [], "bert": []}
        for _ in range(12):
            assert anna.name != bert.name
            seen["anna"].append(anna.answer()[0])
            seen["bert"].append(bert.answer()[0])
        anna.all_saved()
        bert.all_saved()
        assert len({*seen["anna"], *seen["bert"]}) == 24
        assert {one["name"]: one["answered"] for one in coordinator.overview()["annotators"]} == {
            "anna": 12,
            "bert": 12,
        }
        assert {item.id for item in coordinator.review.labelled(annotator="bert").items} == set(
            seen["bert"]
        )
        anna.open("/team")
        expect(anna.page.get_by_role("row", name="bert")).to_contain_text("12")
        anna.close()
        bert.close()


def test_when_all_is_labelled_the_page_says_what_next(browser, tmp_path):
    project = sites.begin(tmp_path / "run", orchard(tmp_path / "pool", 6), batch=6)
    with running(project, name="anna") as (url, _):
        tab = Tab(browser, url).open()
        for _ in range(6):
            tab.answer()
        expect(tab.page.locator("#mat")).to_contain_text("That's it")
        expect(tab.page.locator("#picker")).to_be_hidden()
        expect(tab.page.get_by_role("link", name="Export them")).to_be_visible()
        tab.page.keyboard.press("ArrowLeft")  # the last one can still be corrected
        expect(tab.page.locator("#picker")).to_be_visible()
        expect(tab.page.locator("#question")).to_contain_text("You said: ")
        tab.close()


def test_a_restart_where_all_is_labelled_shows_that_nothing_is_left(browser, tmp_path):
    pool = orchard(tmp_path / "pool", 8)
    project = sites.begin(tmp_path / "run", pool, batch=8, start="random")
    with running(project) as (url, coordinator):
        tab = Tab(browser, url).open()
        done, _ = tab.answer()
        expect(tab.page.locator("[data-card=progress]")).to_contain_text("Left in it7")
        tab.all_saved()
        tab.close()
        coordinator.session.tell(
            {one: truth(one) for one in coordinator.session.pool.ids if one != done}, by="a program"
        )
    with running(project) as (url, _):
        tab = Tab(browser, url)
        with tab.page.expect_response("**/panel") as first:  # before the next one was asked for
            tab.open()
        assert "<dt>Left in it</dt><dd>0</dd>" in first.value.text()
        expect(tab.page.locator("#mat")).to_contain_text("That's it")
        expect(tab.page.locator("[data-card=progress]")).to_contain_text("Left in it0")
        tab.close()


def test_several_classes_by_toggles_and_enter(browser, pool, tmp_path):
    project = sites.begin(tmp_path / "run", pool, ["red", "round", "stalk"], kind="multi-label")
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        page = tab.page
        first = tab.name
        page.keyboard.press("1")
        page.keyboard.press("3")
        page.keyboard.press("2")
        page.keyboard.press("2")  # off again
        expect(page.locator(".choice[aria-pressed=true]")).to_have_count(2)
        expect(page.locator("#name")).to_have_text(first)
        page.keyboard.press("Enter")
        expect(page.locator("#name")).not_to_have_text(first)
        expect(page.locator(".choice[aria-pressed=true]")).to_have_count(0)
        second = tab.name
        page.keyboard.press("0")
        expect(page.locator("#name")).not_to_have_text(second)
        tab.all_saved()
        assert labels(project) == {first: ["red", "stalk"], second: []}
        tab.close()


def test_a_thousand_classes_by_a_few_letters(browser, pool, tmp_path):
    names = [f"species {a}{b}" for a in ("oak", "elm", "fir", "yew", "ash") for b in range(200)]
    project = sites.begin(tmp_path / "run", pool, names)
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        page = tab.page
        first = tab.name
        assert page.locator("button.choice").count() == 0
        expect(page.get_by_role("combobox")).to_be_focused()
        page.keyboard.type("fir177")
        expect(page.get_by_role("option")).to_have_count(1)
        page.keyboard.press("Enter")
        expect(page.locator("#name")).not_to_have_text(first)
        second = tab.name
        page.keyboard.press("1")  # the class used last
        expect(page.locator("#name")).not_to_have_text(second)
        third = tab.name
        page.keyboard.type("yew19")
        page.keyboard.press("ArrowDown")
        chosen = page.locator("[role=option][aria-selected=true]").text_content()
        page.keyboard.press("Enter")
        expect(page.locator("#name")).not_to_have_text(third)
        page.keyboard.press("Backspace")  # nothing typed: back
        expect(page.locator("#name")).to_have_text(third)
        tab.all_saved()
        assert labels(project) == {first: "species fir177", second: "species fir177", third: chosen}
        assert chosen.startswith("species yew19")
        tab.close()


def test_markup_in_names_and_texts_is_only_text(browser, tmp_path):
    nasty = "<img src=x onerror=document.title='owned'>"
    (tmp_path / "texts.jsonl").write_text(
        "".join(f'{{"text": "number {i} {nasty}"}}\n' for i in range(30))
    )
    project = sites.begin(
        tmp_path / "run",
        tmp_path / "texts.jsonl",
        [nasty, "</script><b>other"],
        model={"name": "probe(steps=20)", "backbone": "hashed-words"},
    )
    with running(project, name=nasty) as (url, _):
        tab = Tab(browser, url).open()
        page = tab.page
        expect(page.locator(".words")).to_contain_text(nasty)
        expect(page.locator(".choice").first).to_contain_text(nasty)
        tab.drawn()
        page.keyboard.press("1")
        tab.all_saved()
        for path in ("/review", "/model", "/classes", "/team", "/"):
            tab.open(path)
            expect(page.locator("header")).to_be_visible()
            assert page.locator("img[src=x]").count() == 0
            assert "owned" not in page.title()
        tab.close()


def test_no_wall_of_requests_and_nothing_from_elsewhere(browser, pool, tmp_path):
    """The page loads from its own server alone, and the next pictures before they are needed."""
    project = sites.begin(tmp_path / "run", pool)
    with running(project) as (url, _):
        tab = Tab(browser, url)
        asked: list[str] = []
        tab.page.on("request", lambda request: asked.append(request.url))
        tab.open()
        first = tab.name
        tab.page.wait_for_load_state("networkidle")
        assert not [one for one in asked if not one.startswith((url, "data:", "blob:"))]
        pictures = [one for one in asked if "/picture?" in one]
        assert len(pictures) >= 3
        assert any(first in one for one in pictures)
        before = len(pictures)
        tab.page.keyboard.press("1")
        following = tab.name
        assert any(following in one for one in pictures[:before])  # it was there already
        tab.page.wait_for_load_state("networkidle")
        tab.close()


def test_zoom_keys_and_help(browser, pool, tmp_path):
    project = sites.begin(tmp_path / "run", pool)
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        page = tab.page
        shown = tab.name
        page.keyboard.press("+")
        expect(page.locator("#mat.zoomed")).to_be_visible()
        page.keyboard.press("-")
        expect(page.locator("#mat.zoomed")).to_have_count(0)
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.press("1")  # an open box takes no answers
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
        expect(page.locator("#name")).to_have_text(shown)
        page.locator("#skip").focus()
        page.keyboard.press("Enter")  # a button that has the focus is pressed, as everywhere
        expect(page.locator("#name")).not_to_have_text(shown)
        tab.all_saved()
        assert labels(project) == {}
        tab.close()


def test_embeddings_can_be_labelled(browser, tmp_path):
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32))
    project = sites.begin(
        tmp_path / "run",
        tmp_path / "v.npy",
        ["a", "b"],
        model={"name": "probe(steps=20)", "backbone": "given"},
    )
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        one = tab.name
        expect(tab.page.locator(".numbers")).to_contain_text(one)
        tab.page.keyboard.press("2")
        tab.all_saved()
        assert labels(project) == {one: "b"}
        tab.close()


def test_signed_out_in_the_middle(browser, pool, tmp_path):
    """The answers wait in the browser until their owner has signed in again."""
    project = sites.begin(tmp_path / "run", pool)
    users = Users(project.folder)
    users.add("anna", "correct horse")
    with running(project) as (url, _):
        tab = Tab(browser, url).open()
        page = tab.page

        def sign_in(password: str) -> None:
            page.get_by_label("Name").fill("anna")
            page.get_by_label("Password").fill(password)
            page.get_by_role("button", name="Sign in").click()

        sign_in("correct horse")
        one, label = tab.answer()
        given = {one: label}
        tab.all_saved()
        users.add("anna", "another horse")  # ends the session
        one, label = tab.answer()
        given[one] = label
        expect(page.get_by_role("alert")).to_contain_text("Sign in again; nothing is lost")
        page.get_by_role("link", name="Sign in").click()
        sign_in("another horse")
        tab.all_saved()
        wait_for(lambda: labels(project) == given)
        tab.close(but="401")


def test_a_link_with_a_token_never_sends_it_in_an_address(browser, pool, tmp_path):
    """It is filled in from behind the #, posted with the name, and gone from the address."""
    token = "a token & more #1+2%20"
    asked = []
    posted = []
    project = sites.begin(tmp_path / "run", pool)
    with running(project, token=token) as (url, _):
        tab = Tab(browser, url)
        page = tab.page
        page.on("request", lambda request: asked.append(request.url))
        page.on(
            "request",
            lambda request: posted.append(request.post_data) if request.method == "POST" else None,
        )
        tab.open(sign_in_path(token))
        expect(page.get_by_label("Token")).to_have_value(token)
        assert page.url == url + "/login"
        page.get_by_label("Name").fill("anna")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator(".who")).to_have_text("anna")
        assert parse_qs(posted[0])["secret"] == [token]
        assert len(asked) > 3
        assert not [one for one in asked if "token=" in one or "more" in one]
        tab.close()


def test_a_second_window_never_repeats_what_the_first_has_sent(browser, pool, tmp_path):
    """Both know of an answer that could not be sent. One sends it, then a correction; the other
    must not repeat it.
    """
    project = sites.begin(tmp_path / "run", pool)
    with running(project) as (url, coordinator):
        tab = Tab(browser, url).open()
        first = tab.page
        first.route("**/api/answer", lambda route: route.abort())
        one = tab.name
        first.keyboard.press("1")
        expect(first.locator("#saved")).to_have_text("1 not saved")
        second = first.context.new_page()
        second.route("**/api/answer", lambda route: route.abort())
        second.goto(url)
        expect(second.locator("#saved")).to_have_text("1 not saved")
        for sender, other, keys in ((first, second, "12"), (second, first, "34")):
            sender.unroute("**/api/answer")
            expect(sender.locator("#saved")).to_have_text("All saved")
            assert coordinator.item(one).label == (KINDS[int(keys[0]) - 1],)
            sender.evaluate(f"""async () => {{
                const {{ call }} = await import("/static/api.js");
                await call("/api/answer", {{ id: {one!r}, label: [{KINDS[int(keys[1]) - 1]!r}] }});
            }}""")
            other.unroute("**/api/answer")
            expect(other.locator("#saved")).to_have_text("All saved")
            assert coordinator.item(one).label == (KINDS[int(keys[1]) - 1],)
            if sender is first:  # and the other way round
                for page in (first, second):
                    page.route("**/api/answer", lambda route: route.abort())
                first.keyboard.press("ArrowLeft")
                drawn(first)
                first.keyboard.press("3")
                expect(first.locator("#saved")).to_have_text("1 not saved")
                second.reload()
                expect(second.locator("#saved")).to_have_text("1 not saved")
        tab.close(but="ERR_FAILED")
