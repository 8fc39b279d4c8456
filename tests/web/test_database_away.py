"""The database says nothing for a while: the page waits a few seconds at most, says so, loses
nothing and goes on.
"""

from __future__ import annotations

import html

import pytest
import sites
from browsing import Tab, expect, running, wait_for
from fruit import orchard, truth
from wires import SHORT, Patience


@pytest.fixture
def project(tmp_path, wire, monkeypatch):
    monkeypatch.setenv("TAILOR_STORE", wire.url())
    monkeypatch.setattr("tailor.storage.postgres_session.ANSWER_SECONDS", SHORT)
    monkeypatch.setattr("tailor.annotation.planner.PATIENCE", 0.2)
    return sites.begin(tmp_path / "run", orchard(tmp_path / "pool", 60), batch=30)


def test_a_call_waits_in_bounds_and_says_when_to_come_back(tmp_path, wire, project, monkeypatch):
    patience = Patience(monkeypatch)
    with sites.serving(tmp_path, project=project) as site:
        items = site.next(4)
        first, second, third = (
            {"id": item["id"], "label": [truth(item["id"])]} for item in items[:3]
        )
        assert site.post("/api/answer", first).status_code == 200
        patience.silence(wire)
        for path, body in (
            ("/api/answer", second),
            ("/api/answer", third),
            ("/api/classes/add", {"name": "quince"}),
        ):
            said = site.post(path, body)
            assert said.status_code == 503
            assert said.json() == {
                "error": "the database can't be reached"
            }  # not where it is, nor who may use it
            assert int(said.headers["retry-after"]) >= 1
        assert (
            site.client.get("/").status_code == site.client.get("/review").status_code == 200
        )  # looking is fine
        assert site.client.get("/api/overview").json()["progress"]["answered"] == 1
        assert patience.waits == [
            ("an answer", pytest.approx(SHORT, abs=0.1))
        ]  # all of them together
        page = site.form("/classes/add", name="quince")
        assert page.status_code == 503
        assert "the database can't be reached" in html.unescape(page.text)
        patience.speak(wire)
        for body in (second, third):
            wait_for(
                lambda body=body: (
                    patience.rest() or site.post("/api/answer", body).status_code == 200
                )
            )
        assert {i.id: i.label for i in site.coordinator.review.labelled().items} == {
            one["id"]: tuple(one["label"]) for one in (first, second, third)
        }
        wait_for(lambda: len(site.next(5)) == 5)  # and further ones come
        assert site.coordinator.classes == ("apple", "lemon", "pear", "plum")


def test_the_page_says_so_keeps_the_answer_and_sends_it_again(browser, wire, project):
    with running(project, name="anna") as (url, coordinator):
        tab = Tab(browser, url).open()
        page = tab.page
        given = dict([tab.answer()])
        tab.all_saved()
        wire.silence()
        one = tab.name
        page.keyboard.press("1")  # an apple, whatever it shows
        expect(page.locator("#name")).not_to_have_text(one)  # the next one is here already
        expect(page.get_by_role("alert")).to_contain_text(
            "1 answer is not saved yet: the database can't be reached. It is kept here and sent "
            "again"
        )
        wire.speak()
        tab.all_saved()
        expect(page.get_by_role("alert")).to_be_hidden()
        given |= {one: "apple"} | dict([tab.answer()])
        tab.all_saved()
        assert {i.id: i.label[0] for i in coordinator.review.labelled().items} == given
        tab.close(but="503")
