"""Every route by every role: the server says who may do what, whatever a page shows."""

from __future__ import annotations

import contextlib

import pytest
import sites
from signing_in import routes, sign_in

from tailor.annotation.roles import ROLES
from tailor.web.sign_in_log import SignInLog
from tailor.web.users import Users

PASSWORD = "correct horse"
NAMES = {"owner": "olga", "reviewer": "rita", "annotator": "anna"}
EVERYBODY = ("annotator", "reviewer", "owner")
REVIEWERS = ("reviewer", "owner")
OWNERS = ("owner",)

#: (method, path) -> who may. A route without a row fails test_every_route_has_a_row.
WHO_MAY = {
    ("GET", "/api/session"): EVERYBODY,
    ("GET", "/api/next"): EVERYBODY,
    ("GET", "/api/history"): EVERYBODY,
    ("POST", "/api/answer"): EVERYBODY,
    ("POST", "/api/leave"): EVERYBODY,
    ("GET", "/api/overview"): EVERYBODY,
    ("GET", "/api/why"): EVERYBODY,
    ("GET", "/api/labelled"): EVERYBODY,
    ("GET", "/api/agreement"): EVERYBODY,
    ("GET", "/api/disagreements"): EVERYBODY,
    ("POST", "/api/settle"): REVIEWERS,
    ("POST", "/api/classes/add"): OWNERS,
    ("POST", "/api/classes/rename"): OWNERS,
    ("POST", "/api/classes/merge"): OWNERS,
    ("GET", "/api/classes/merged"): EVERYBODY,
    ("POST", "/api/classes/undo"): OWNERS,
    ("GET", "/api/acts"): EVERYBODY,
    # whose act it is decides: see test_undoing_takes_the_right_of_the_act
    ("POST", "/api/acts/undo"): EVERYBODY,
    ("GET", "/openapi.json"): EVERYBODY,
    ("GET", "/picture"): EVERYBODY,
    ("GET", "/"): EVERYBODY,
    ("GET", "/panel"): EVERYBODY,
    ("GET", "/review"): EVERYBODY,
    ("GET", "/team"): EVERYBODY,
    ("GET", "/model"): EVERYBODY,
    ("GET", "/api/model"): EVERYBODY,
    ("POST", "/model/goals"): OWNERS,
    ("POST", "/api/model/goals"): OWNERS,
    ("GET", "/classes"): EVERYBODY,
    ("POST", "/classes/add"): OWNERS,
    ("POST", "/classes/rename"): OWNERS,
    ("POST", "/classes/merge"): OWNERS,
    ("POST", "/classes/undo"): OWNERS,
    ("GET", "/history"): EVERYBODY,
    ("POST", "/history/undo"): EVERYBODY,
    ("GET", "/users"): OWNERS,
    ("POST", "/users/add"): OWNERS,
    ("POST", "/users/role"): OWNERS,
    ("POST", "/users/remove"): OWNERS,
    ("POST", "/users/undo"): OWNERS,
    ("GET", "/password"): EVERYBODY,
    ("POST", "/password/change"): EVERYBODY,
    ("POST", "/name"): EVERYBODY,
    ("POST", "/logout"): EVERYBODY,
    ("GET", "/login"): EVERYBODY,
    ("POST", "/login"): EVERYBODY,
    ("GET", "/export"): REVIEWERS,
    ("GET", "/export/labels.{form}"): REVIEWERS,
}


@contextlib.contextmanager
def team(folder, pool):
    """role -> someone of this role, signed in."""
    from fastapi.testclient import TestClient

    project = sites.begin(folder / "run", pool)
    users = Users(project.folder)
    for role, name in NAMES.items():
        users.add(name, PASSWORD, role)
    with sites.serving(folder, project=project, enter=False) as site:
        members = {}
        for role, name in NAMES.items():
            client = TestClient(site.client.app, base_url=sites.HOST)
            members[role] = sites.Served(project, site.coordinator, client)
            sign_in(members[role], name, PASSWORD)
        yield members


@pytest.fixture(scope="module")
def visitors(tmp_path_factory, pool):
    with team(tmp_path_factory.mktemp("roles"), pool) as members:
        yield members


@pytest.fixture
def newcomers(tmp_path, pool):
    with team(tmp_path, pool) as members:
        yield members


def test_every_route_has_a_row():
    known = {(method, route.path) for route in routes() for method in route.methods}
    assert known == set(WHO_MAY)


def test_every_role_has_someone():
    assert set(NAMES) == set(ROLES)


@pytest.mark.parametrize("role", ROLES)
def test_the_server_refuses_what_a_role_may_not(visitors, role):
    """Requests that hold nothing: where the role may, they get as far as what is missing."""
    visitor = visitors[role]
    csrf = visitor.csrf
    for (method, path), who in WHO_MAY.items():
        if path == "/logout":
            continue  # it would end the session; everybody who is in may go
        address = path.replace("{form}", "csv")
        headers = {"X-CSRF-Token": csrf, "Accept": "application/json"}
        answer = visitor.client.request(method, address, headers=headers, follow_redirects=False)
        if role in who:
            assert answer.status_code in (200, 303, 422), (method, path, answer.text)
        else:
            assert answer.status_code == 403, (method, path, answer.status_code)
            assert f"yours is {role}" in answer.json()["error"]


def test_answers_count_for_what_was_asked_of_that_person(newcomers):
    anna, rita = newcomers["annotator"], newcomers["reviewer"]
    (item,) = anna.next(1)
    stolen = rita.post("/api/answer", {"id": item["id"], "label": ["apple"]})
    assert stolen.status_code == 409
    assert "was not asked of rita" in stolen.json()["error"]
    forged = rita.post(
        "/api/answer", {"id": item["id"], "label": ["apple"], "ticket": item["ticket"]}
    )
    assert forged.status_code == 409  # anna's ticket is worth nothing to rita
    table = anna.coordinator.session.run_state.label_table
    unasked = anna.coordinator.session.run_state.ids[int(table.untouched().argmax())]
    refused = anna.post("/api/answer", {"id": unasked, "label": ["apple"]})
    assert refused.status_code == 409
    marked = anna.post("/api/answer", {"id": unasked, "label": ["apple"], "unasked": True})
    assert marked.status_code == 403
    assert rita.post("/api/answer", {"id": unasked, "label": ["apple"]}).status_code == 409
    told = rita.post("/api/answer", {"id": unasked, "label": ["apple"], "unasked": True})
    assert told.status_code == 200
    assert anna.post("/api/answer", {"id": item["id"], "label": ["pear"]}).status_code == 200
    overwritten = anna.post("/api/answer", {"id": unasked, "label": ["pear"]})
    assert overwritten.status_code == 409
    assert "rita has answered" in overwritten.json()["error"]
    assert rita.post("/api/answer", {"id": item["id"], "label": ["plum"]}).status_code == 200
    acts = anna.client.get("/api/acts").json()["acts"]
    assert [(act["by"], act["kind"], act["can_undo"]) for act in acts[:2]] == [
        ("rita", "overwrote", False),
        ("rita", "told unasked", False),
    ]


def test_a_ticket_outlives_the_server(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    Users(project.folder).add("olga", PASSWORD)
    Users(project.folder).add("anna", PASSWORD)
    with sites.serving(tmp_path, project=project, enter=False) as before:
        sign_in(before, "anna", PASSWORD)
        first, second = before.next(2)
    with sites.serving(tmp_path, project=project, enter=False) as after:
        after.client.cookies = before.client.cookies
        body = {"id": first["id"], "label": ["apple"]}
        other = {"ticket": second["ticket"]}
        assert after.post("/api/answer", body).status_code == 409
        assert after.post("/api/answer", body | other).status_code == 409
        assert after.post("/api/answer", body | {"ticket": first["ticket"]}).status_code == 200


def test_undoing_takes_the_right_of_the_act(visitors):
    olga, rita = visitors["owner"], visitors["reviewer"]
    olga.post("/api/classes/add", {"name": "quince"})
    act = olga.client.get("/api/acts", params={"n": 1}).json()["acts"][0]
    assert (act["by"], act["kind"]) == ("olga", "added")
    body = {"event": act["event"], "of": "olga"}
    assert rita.post("/api/acts/undo", body).status_code == 403
    page = rita.client.post("/history/undo", data=body | {"csrf": rita.csrf})
    assert page.status_code == 403
    history = rita.client.get("/history").text
    assert "added the class" in history
    assert "Undo what olga did" not in history
    assert "Undo what olga did" in olga.client.get("/history").text
    undone = olga.client.post("/history/undo", data=body | {"csrf": olga.csrf})
    assert "It is taken back" in undone.text
    assert "undone by <bdi>olga</bdi>" in undone.text
    assert "quince" not in olga.coordinator.classes
    again = olga.client.post("/history/undo", data=body | {"csrf": olga.csrf})
    assert "olga has taken this back already" in again.text


def test_pages_offer_what_the_role_may(visitors):
    anna, olga = visitors["annotator"], visitors["owner"]
    pages = {visitor: visitor.client.get("/classes").text for visitor in (anna, olga)}
    for text in ('action="/classes/add"', 'href="/export"', 'href="/users"'):
        assert text in pages[olga]
        assert text not in pages[anna]
    assert "Your role: annotator" in pages[anna]
    refused = anna.client.get("/export")
    assert refused.status_code == 403
    assert "takes the role reviewer or owner; yours is annotator" in refused.text


def test_a_new_role_counts_at_once(visitors):
    anna, olga = visitors["annotator"], visitors["owner"]
    olga.form("/users/role", name="anna", role="reviewer")
    assert anna.client.get("/export").status_code == 200
    page = olga.client.get("/users").text
    assert "made <bdi>anna</bdi> reviewer" in page
    change = Users(olga.project.folder).changes[-1]
    assert (change.by, change.role_before, change.role_after) == ("olga", "annotator", "reviewer")
    anna.client.get("/export/labels.csv")
    taken = SignInLog(olga.project.folder).latest(1)[0]
    assert (taken.what, taken.name) == ("exported labels.csv", "anna")
    undone = olga.form("/users/undo", change=str(change.number))
    assert "undone by <bdi>olga</bdi>" in undone.text
    assert anna.client.get("/export").status_code == 403


@pytest.mark.parametrize("token", [None, "a-long-enough-token"])
def test_without_users_whoever_is_let_in_is_owner(tmp_path, pool, token):
    project = sites.begin(tmp_path / "run", pool)
    with sites.serving(tmp_path, project=project, token=token, enter=token is None) as site:
        if token:
            sign_in(site, "anna", token)
        assert site.client.get("/api/session").json()["role"] == "owner"
        assert site.client.get("/users").status_code == 200
        told = site.form("/users/add", name="x", secret=PASSWORD, role="owner")
        assert "there are no users here yet" in told.text
