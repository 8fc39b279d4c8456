"""The page that tells how good the model is, which labels it doubts, and when to stop."""

from __future__ import annotations

import html
import re
import shutil

import browsing
import pytest
import sites
from browsing import Tab, expect, running
from fruit import KINDS, orchard, truth
from sites import tiles

from tailor.run.goals import Goals
from tailor.run.project import Project

LABELS = 70
WRONG = (11, 23, 37, 45, 58)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """A project with five wrong labels, whose model was measured: (project, wrong ids)."""
    folder = tmp_path_factory.mktemp("model")
    pool = orchard(folder / "pool", 100, 48, 36)
    project = sites.begin(folder / "run", pool, batch=20, holdout=0.3)
    wrong = set()
    with sites.serving(folder, project=project) as site:
        for number in range(LABELS):
            (item,) = site.next()
            kind = truth(item["id"])
            if number in WRONG:
                kind = KINDS[(KINDS.index(kind) + 1) % len(KINDS)]
                wrong.add(item["id"])
            site.coordinator.answer("me", item["id"], [kind])
        watch = site.coordinator.model_watch
        browsing.wait_for(lambda: watch.facts is not None and watch.facts.round >= 3)
    return Project(project.folder), wrong


@pytest.fixture(scope="module")
def address(labelled, tmp_path_factory):
    project, _ = labelled
    # A copy: the run itself is open for the tests without a browser.
    folder = tmp_path_factory.mktemp("copy") / "run"
    shutil.copytree(project.folder, folder)
    with running(Project(folder), name="anna") as (url, _):
        yield url


@pytest.fixture(scope="module")
def known(labelled, address, tmp_path_factory):
    project, _ = labelled
    with sites.serving(tmp_path_factory.mktemp("known"), project=project) as site:
        yield site


def test_before_anything_is_labelled_the_page_says_what_comes(site):
    page = site.client.get("/model").text
    assert "once a first round is labelled" in page
    assert "0 of the 20 hold-out labels" in page
    facts = site.client.get("/api/model").json()
    assert facts["holdout"] is None
    assert facts["advice"]["verdict"] == "go on"


def facts_and_page(site):
    """Of one measurement: in the background the model may be measured anew between two requests."""
    for _ in range(20):
        facts = site.client.get("/api/model").json()
        page = html.unescape(site.client.get("/model").text)
        if site.client.get("/api/model").json() == facts:
            return facts, page
    raise AssertionError("the model is measured again and again, although nothing is labelled")


def test_every_figure_says_from_how_many_examples_it_comes(known):
    facts, page = facts_and_page(known)
    accuracy = facts["holdout"]["accuracy"]
    assert f"{accuracy['count']} of {accuracy['n']} right" in page
    assert sum(sum(row) for row in facts["holdout"]["confusion"]) == accuracy["n"]
    counts = {row["name"]: row["labels"] for row in facts["classes"]}
    assert sum(counts.values()) == LABELS
    for row in facts["classes"]:
        assert row["in_pool"]["n"] == accuracy["n"]
        assert f"{row['in_pool']['count']} of {accuracy['n']}" in page
        assert row["in_pool"]["lower"] <= row["in_pool"]["share"] <= row["in_pool"]["upper"]
    assert facts["advice"]["sentence"] in page


def test_a_cell_of_the_matrix_opens_its_examples(known):
    facts, page = facts_and_page(known)
    cells = re.findall(r'<a href="(/review\?klass=[^"]*)" title="(\d+) of', page)
    assert cells
    for url, count in cells:
        shown = known.client.get(html.unescape(url)).text
        assert len(tiles(shown)) == int(count)
    assert sum(int(count) for _, count in cells) == facts["holdout"]["accuracy"]["n"]


def test_wrong_labels_come_first_in_the_review(known, labelled):
    _, wrong = labelled
    first = tiles(known.client.get("/review").text)
    assert len(wrong & set(first[:10])) >= 4
    in_order = tiles(known.client.get("/review", params={"order": "pool"}).text)
    assert in_order == sorted(in_order)
    assert in_order != first
    items = known.client.get("/api/labelled", params={"doubtful_first": True}).json()["items"]
    doubts = [item["doubt"] for item in items]
    assert doubts == sorted(doubts, reverse=True)


def test_a_corrected_label_is_doubted_no_more(known):
    """Here it was corrected to what the model says that never saw it."""
    before = known.client.get("/api/labelled", params={"disagrees": True}).json()["items"]
    item = next(each for each in before if each["model_says"] == truth(each["id"]))
    known.post("/api/answer", {"id": item["id"], "label": [truth(item["id"])]})
    after = known.client.get("/api/labelled", params={"limit": 200}).json()["items"]
    corrected = next(each for each in after if each["id"] == item["id"])
    assert corrected["doubt"] < item["doubt"]
    known.post("/api/answer", {"id": item["id"], "label": item["label"]})


def test_goals_are_set_by_form_and_by_api(known):
    page = known.form("/model/goals", budget="50", per_class="", accuracy="90 %").text
    assert "The goals are set." in page
    assert 'name="budget" inputmode="numeric" maxlength="12"' in page
    assert "Stop: the budget of 50 labels is spent." in page
    assert known.coordinator.session.run_state.goals == Goals(budget=50, accuracy=0.9)
    for fields in ({"budget": "many"}, {"accuracy": "120"}, {"per_class": "0"}):
        assert 'role="alert"' in known.form("/model/goals", **fields).text
    assert known.coordinator.session.run_state.goals == Goals(budget=50, accuracy=0.9)
    answer = known.post("/api/model/goals", {"per_class": 5})
    assert answer.json() == {"goals": {"budget": None, "per_class": 5, "accuracy": None}}
    assert known.post("/api/model/goals", {"accuracy": 2}).status_code == 422
    assert known.post("/api/model/goals", {}).json()["goals"]["per_class"] is None


def test_goals_need_the_token_of_the_session(known):
    assert known.client.post("/model/goals", data={"budget": "5"}).status_code == 403
    assert known.client.post("/api/model/goals", json={"budget": 5}).status_code == 403


@pytest.mark.parametrize("size", [(1280, 800), (820, 1180), (390, 844)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_cut_off(browser, address, size, scheme):
    from test_accessible import CONTRAST, NAMELESS, violations

    width, height = size
    tab = Tab(browser, address, color_scheme=scheme).open()
    tab.page.set_viewport_size({"width": width, "height": height})
    tab.open("/model")
    expect(tab.page.locator(".matrix")).to_be_visible()
    assert violations(tab) == []
    assert tab.page.evaluate(CONTRAST) == []
    assert tab.page.evaluate(NAMELESS) == []
    assert tab.page.evaluate("() => document.documentElement.scrollWidth") <= width
    tab.close()


def test_by_keyboard_alone_from_a_goal_to_the_examples_of_a_cell(browser, address):
    tab = Tab(browser, address).open()
    tab.open("/model")
    page = tab.page
    page.locator("[name=per_class]").focus()
    page.keyboard.type("500")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("The goals are set.")
    expect(page.locator("[name=per_class]")).to_have_value("500")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("() => Boolean(document.activeElement.closest('.matrix td'))"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Review")).to_be_visible()
    expect(page.locator(".tile").first).to_be_visible()
    tab.close()


def test_several_classes_have_figures_of_their_own(tmp_path):
    pool = orchard(tmp_path / "pool", 60, 48, 36)
    project = sites.begin(
        tmp_path / "run", pool, ["round", "yellow"], kind="multi-label", batch=15, holdout=0.3
    )
    with sites.serving(tmp_path, project=project) as site:
        for _ in range(40):
            (item,) = site.next()
            kind = truth(item["id"])
            classes = []
            if kind in ("apple", "plum"):
                classes.append("round")
            if kind in ("lemon", "pear"):
                classes.append("yellow")
            site.coordinator.answer("me", item["id"], classes)
        watch = site.coordinator.model_watch
        browsing.wait_for(lambda: watch.facts is not None and watch.facts.round >= 1)
        facts = site.client.get("/api/model").json()
        assert facts["holdout"]["confusion"] is None
        assert facts["holdout"]["mean_average_precision"] > 0.5
        page = site.client.get("/model").text
        assert "Average precision" in page
        assert "single answers right" in page
        assert site.client.get("/review", params={"model_says": "round"}).status_code == 200
