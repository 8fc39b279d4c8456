"""What goes wrong is said in our own words: on a page with a way on, or as JSON to programs."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest
import sites
from fastapi.testclient import TestClient
from signing_in import sign_in

from tailor.errors import TailorError, without_paths
from tailor.storage import StoreError
from tailor.web.limits import Limits
from tailor.web.validation_messages import MESSAGES, validation_message

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PROGRAM = {"Accept": "application/json"}
#: how pydantic and starlette would say it
NOT_OURS = re.compile(
    r"Input should|Field required|valid integer|unable to parse|Not Found|Not Allowed|String should"
)


def is_page(answer) -> bool:
    """One that is drawn like the others, with a sentence and a way on."""
    styled = "/static/tables.css" in answer.text or "<style>" in answer.text
    alert = re.search(r'role="alert">([^<]+[.!?])<', answer.text)
    is_html = answer.headers["content-type"].startswith("text/html")
    return is_html and styled and bool(alert) and 'href="/' in answer.text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nowhere", 404),
        ("/static/nothing.css", 404),
        ("/review?offset=many", 422),
        ("/review?offset=-1", 422),
        ("/review?disagrees=perhaps", 422),
        ("/review?klass=zebra", 422),
        ("/export/labels.exe", 422),
        ("/classes/add", 405),
    ],
)
def test_a_browser_gets_a_page_and_a_program_json(site, path, status):
    page = site.client.get(path, headers=BROWSER)
    assert page.status_code == status
    assert is_page(page)
    assert not NOT_OURS.search(page.text)
    plain = site.client.get(path, headers=PROGRAM)
    assert plain.status_code == status
    assert list(plain.json()) == ["error"]
    assert not NOT_OURS.search(plain.text)


def test_a_form_from_nowhere_gets_a_page(site):
    page = site.client.post("/classes/add", data={"name": "x", "csrf": "wrong"}, headers=BROWSER)
    assert page.status_code == 403
    assert is_page(page)


def test_a_stranger_is_shown_the_way_in(with_users):
    page = with_users.client.get("/nowhere", headers=BROWSER)
    assert page.status_code == 404
    assert 'href="/login"' in page.text
    assert is_page(page)


def test_a_fault_of_ours_is_told_and_hides_its_reason(site, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("the secret reason")

    monkeypatch.setattr(site.coordinator, "overview", broken)
    client = TestClient(site.client.app, base_url=sites.HOST, raise_server_exceptions=False)
    client.cookies = site.client.cookies
    page = client.get("/export", headers=BROWSER)
    assert page.status_code == 500
    assert is_page(page)
    assert "secret" not in page.text
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    plain = client.get("/api/overview")
    assert plain.status_code == 500
    assert "server's log" in plain.json()["error"]


def test_too_often_and_the_wrong_name_are_pages_too(tmp_path, pool):
    """They need nothing else of the server: it would refuse their style sheet as well."""
    project = sites.begin(tmp_path / "run", pool)
    with sites.serving(tmp_path, project=project, limits=Limits(rate=1, burst=20)) as site:
        elsewhere = site.client.get("/", headers=BROWSER | {"Host": "evil.example"})
        assert elsewhere.status_code == 421
        assert is_page(elsewhere)
        pages = [site.client.get("/", headers=BROWSER) for _ in range(25)]
        assert pages[-1].status_code == 429
        assert is_page(pages[-1])
        assert "/static" not in pages[-1].text
        assert site.client.get("/", headers=PROGRAM).json() == {
            "error": "too many requests: slow down"
        }


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/api/answer", {"label": ["apple"]}, "id: it is missing"),
        ("/api/answer", {"id": 3, "label": None}, "id: a text is needed"),
        ("/api/answer", {"id": "", "label": None}, "id: it is empty"),
        ("/api/answer", {"id": "x" * 5000, "label": None}, "id: it may have 4096 characters"),
        ("/api/answer", {"id": "x", "label": "apple"}, "label: a list is needed"),
        (
            "/api/answer",
            {"id": "x", "label": [], "more": 1},
            "more: nothing of this name is expected",
        ),
        ("/api/answer", {"id": "x\0", "label": []}, "id: the text holds a NUL character"),
        (
            "/api/classes/add",
            {"name": "a\nb"},
            "name: a class name may not hold control characters",
        ),
        ("/api/classes/add", ["a"], "an object with named values is needed"),
    ],
)
def test_what_is_wrong_with_a_request_is_said_in_our_words(site, path, body, said):
    answer = site.post(path, body)
    assert answer.status_code == 422
    assert answer.json() == {"error": said}


def test_half_a_request_is_said_in_our_words(site):
    headers = {"X-CSRF-Token": site.csrf, "Content-Type": "application/json"}
    answer = site.client.post("/api/answer", content="{", headers=headers)
    assert answer.json() == {"error": "the request is not valid JSON"}


def test_what_the_validator_may_find_has_words():
    """A kind of error that nobody thought of is told all the same, without the validator's own
    words.
    """
    odd = {
        "type": "never_heard_of",
        "loc": ("query", "offset"),
        "msg": "Input should be odd",
        "ctx": {},
    }
    assert validation_message(odd) == "offset: it can't be used"
    for kind, words in MESSAGES.items():
        assert "{" not in validation_message(
            {"type": kind, "loc": ("body",), "msg": "", "ctx": None}
        ), words


# ---------------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            StoreError("can't write to /home/jane doe/run/run.db: disk is full; free some space"),
            "can't write to run/run.db: disk is full; free some space",
        ),
        (StoreError("event 3 of /home/jane doe/run is damaged"), "event 3 of run is damaged"),
        (
            TailorError("'/srv/My Data (2)/pictures, all/a b.jpg' is damaged"),
            "'pictures, all/a b.jpg' is damaged",
        ),
        (TailorError("../somewhere/else/users.json is damaged"), "else/users.json is damaged"),
        (
            OSError(errno.ENOSPC, "No space left on device", "/a/secret/place"),
            "No space left on device",
        ),
        (
            TailorError("yes and/or no, 3/4 of s3://bucket/photos"),
            "yes and/or no, 3/4 of s3://bucket/photos",
        ),
    ],
)
def test_folders_are_left_out(error, said):
    folders = ["/home/jane doe/run", "/srv/My Data (2)/pictures, all", "../somewhere/else", "."]
    assert without_paths(error, map(Path, folders)) == said


def test_the_users_own_folder_is_left_out(monkeypatch):
    monkeypatch.setenv("HOME", "/home/jane doe")
    assert (
        without_paths(TailorError("no weights in /home/jane doe/.cache/x y"))
        == "no weights in ~/.cache/x y"
    )


def test_annotators_see_no_folder_with_a_space_in_its_name(tmp_path, pool, monkeypatch):
    """Neither of the run, nor of its pool; nor where the next round can't be prepared."""
    place = tmp_path / "jane doe"
    pictures = place / "all my pictures"
    place.mkdir()
    pictures.symlink_to(pool)
    project = sites.begin(place / "the run", pictures)

    def broken(*_, **__):
        raise StoreError(f"{place}/the run/run.db, {pictures}/1.jpg: disk is full")

    with sites.serving(tmp_path, project=project) as site:
        (item,) = site.next(1)
        with monkeypatch.context() as patch:
            patch.setattr(site.coordinator.session.store, "append", broken)
            answer = site.post("/api/answer", {"id": item["id"], "label": ["apple"]})
        said = "the run/run.db, all my pictures/1.jpg: disk is full"
        planner = site.coordinator.planner
        monkeypatch.setattr(planner, "_next_job", broken)
        planner.step()
        assert planner.trouble == f"the next round could not be prepared: {said}"
    assert answer.status_code == 503
    assert answer.json() == {"error": said}


def test_the_folders_of_a_project(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    assert project.folders == [tmp_path / "run", pool, tmp_path / "run"]
    project.config.values["pool"] |= {
        "path": "s3://bucket/photos",
        "cache": str(tmp_path / "copies"),
    }
    assert project.folders == [tmp_path / "run", tmp_path / "copies", tmp_path / "run"]


def test_one_kind_of_error_hides_no_other_in_the_log(site, monkeypatch, caplog):
    def fail_with(error):
        def fail(*_, **__):
            raise error

        monkeypatch.setattr(site.coordinator.session.store, "append", fail)
        return site.post("/api/answer", {"id": item["id"], "label": ["apple"]})

    (item,) = site.next(1)
    for error in (
        StoreError("one"),
        StoreError("one"),
        OSError(errno.EIO, "two"),
        OSError(errno.EIO, "two"),
    ):
        assert fail_with(error).status_code == 503
    said = [
        record.getMessage()
        for record in caplog.records
        if record.name == "tailor.web.error_handlers"
    ]
    assert said == ["one", "[Errno 5] two"]


def test_a_full_disk_shows_annotators_no_path(site, monkeypatch):
    folder = str(site.project.folder)

    def full(*_, **__):
        raise StoreError(
            f"can't write to {folder}/run.db: database or disk is full; free some space"
        )

    (item,) = site.next(1)
    with monkeypatch.context() as patch:
        patch.setattr(site.coordinator.session.store, "append", full)
        answer = site.post("/api/answer", {"id": item["id"], "label": ["apple"]})
        assert answer.status_code == 503
        assert "disk is full" in answer.text
        assert folder not in answer.text
    assert site.post("/api/answer", {"id": item["id"], "label": ["apple"]}).status_code == 200


# ---------------------------------------------------------------------- description


def test_the_description_is_for_those_who_are_signed_in(with_users):
    assert with_users.client.get("/openapi.json").status_code == 401
    sign_in(with_users)
    assert "/api/next" in with_users.client.get("/openapi.json").json()["paths"]
