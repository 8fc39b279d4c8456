"""Users on their page and by the command: roles, passwords, and who signed in."""

from __future__ import annotations

import json
import stat

import pytest
import sites
from fruit import orchard
from signing_in import TOKEN, sign_in
from typer.testing import CliRunner

from tailor.cli.app import app
from tailor.errors import InputError, UnknownName
from tailor.web.limits import Limits
from tailor.web.sign_in_log import SignInLog
from tailor.web.users import _HASHER, Users

PASSWORD = "correct horse"


@pytest.fixture
def users(tmp_path):
    users = Users(tmp_path, clock=iter(range(1, 1000)).__next__)
    users.add("olga", PASSWORD)
    users.add("anna", PASSWORD, by="olga")
    return users


def test_the_first_is_owner_and_the_others_are_annotators(users, tmp_path):
    assert [users.role(name) for name in ("olga", "anna", "nobody")] == ["owner", "annotator", None]
    users.add("rita", PASSWORD, "reviewer")
    assert users.role("rita") == "reviewer"
    users.add("anna", "another horse")
    assert users.role("anna") == "annotator"
    with pytest.raises(UnknownName, match="did you mean 'owner'"):
        users.add("bert", PASSWORD, "ownr")
    with pytest.raises(InputError, match="is the first user"):
        Users(tmp_path / "other").add("bert", PASSWORD, "reviewer")


def test_users_of_a_version_without_roles_are_kept(tmp_path):
    path = tmp_path / "web" / "users.json"
    path.parent.mkdir()
    hashes = {name: _HASHER.hash(PASSWORD) for name in ("zoe", "bert")}
    path.write_text(json.dumps({"users": hashes}))
    users = Users(tmp_path)
    assert users.check("zoe", PASSWORD)
    assert (users.role("zoe"), users.role("bert")) == ("owner", "reviewer")
    users.set_role("bert", "owner", by="zoe")
    users.remove("zoe", by="bert")
    users.add("anna", PASSWORD)
    assert (users.role("bert"), users.role("anna")) == ("owner", "annotator")


def test_an_owner_is_left_as_long_as_there_are_users(users):
    with pytest.raises(InputError, match="no owner would be left"):
        users.set_role("olga", "reviewer", by="olga")
    with pytest.raises(InputError, match="no owner would be left"):
        users.remove("olga")
    with pytest.raises(InputError, match="no owner would be left"):
        users.add("olga", PASSWORD, "annotator")
    users.remove("anna")
    users.remove("olga")
    assert users.names == []


def test_changes_have_authors_and_are_taken_back(users):
    users.set_role("anna", "reviewer", by="olga")
    users.undo(3, by="olga")
    assert users.role("anna") == "annotator"
    with pytest.raises(InputError, match="olga has taken this back already"):
        users.undo(3, by="olga")
    users.remove("anna", by="olga")
    users.undo(5, by="olga")
    assert users.check("anna", PASSWORD)
    assert users.role("anna") == "annotator"
    users.change_password("anna", "another horse")
    with pytest.raises(InputError, match="a password that was changed stays changed"):
        users.undo(7, by="olga")
    users.undo(2, by="olga")
    assert users.role("anna") is None
    with pytest.raises(InputError, match="there is no change 99"):
        users.undo(99, by="olga")
    told = [(change.number, change.by, change.what, change.undoes) for change in users.changes]
    assert told == [
        (1, "", "added", None),
        (2, "olga", "added", None),
        (3, "olga", "role", None),
        (4, "olga", "role", 3),
        (5, "olga", "removed", None),
        (6, "olga", "added", 5),
        (7, "anna", "password", None),
        (8, "olga", "removed", 2),
    ]


def test_a_role_that_was_changed_again_is_not_taken_back(users):
    users.set_role("anna", "reviewer", by="olga")
    users.set_role("anna", "owner", by="olga")
    with pytest.raises(InputError, match="was changed again since"):
        users.undo(3, by="olga")


@pytest.fixture
def site(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    Users(project.folder).add("olga", PASSWORD)
    with sites.serving(tmp_path, project=project, enter=False) as served:
        sign_in(served, "olga", PASSWORD)
        yield served


def test_a_password_is_changed_on_the_page(site):
    fields = {"old": PASSWORD, "new": "another horse", "again": "another horse"}
    wrong = site.form("/password/change", **fields | {"old": "wrong"})
    assert wrong.status_code == 401
    assert "the old password is another one" in wrong.text
    assert site.form("/password/change", **fields | {"again": "other"}).status_code == 422
    short = site.form("/password/change", **fields | {"new": "short", "again": "short"})
    assert (short.status_code, "at least 8" in short.text) == (422, True)
    before = dict(site.client.cookies)
    done = site.form("/password/change", **fields)
    assert "Your password is changed." in done.text
    assert site.client.get("/api/session").json()["name"] == "olga"
    site.client.cookies = before  # every session with the old one is over
    assert site.client.get("/api/session").status_code == 401
    assert sign_in(site, "olga", PASSWORD).status_code == 401
    assert sign_in(site, "olga", "another horse").status_code == 200


def test_the_old_password_is_not_guessed_on_the_page(tmp_path, pool):
    """Tries are counted as at signing in: here a wrong one a minute."""
    project = sites.begin(tmp_path / "run", pool)
    Users(project.folder).add("olga", PASSWORD)
    fields = {"old": "wrong", "new": "another horse", "again": "another horse"}
    with sites.serving(tmp_path, project=project, limits=Limits(tries=1), enter=False) as served:
        sign_in(served, "olga", PASSWORD)
        codes = [served.form("/password/change", **fields).status_code for _ in range(2)]
    assert codes == [401, 429]


def test_users_are_managed_on_the_page(site):
    users = Users(site.project.folder)
    added = site.form("/users/add", name="anna", secret=PASSWORD, role="annotator")
    assert "anna may sign in now, as annotator." in added.text
    twice = site.form("/users/add", name="anna", secret="another horse", role="owner")
    assert "is a user already" in twice.text
    assert users.check("anna", PASSWORD)
    assert "unknown role" in site.form("/users/role", name="anna", role="king").text
    assert "unknown user" in site.form("/users/role", name="nobody", role="owner").text
    assert "no owner would be left" in site.form("/users/role", name="olga", role="reviewer").text
    assert "remove yourself" in site.form("/users/remove", name="olga").text
    assert "may not sign in any more" in site.form("/users/remove", name="anna").text
    assert users.names == ["olga"]


def test_sign_ins_are_logged_and_passwords_are_not(site):
    sign_in(site, "olga", "wrong password")
    sign_in(site, "my secret password", "oops")  # into the wrong field
    site.client.cookies.clear()
    sign_in(site, "olga", PASSWORD)
    site.form("/logout")
    log = SignInLog(site.project.folder)
    told = [(entry.what, entry.name) for entry in reversed(log.latest(10))]
    wrong = "wrong password or token"
    assert told == [
        ("signed in", "olga"),
        (wrong, "olga"),
        (wrong, None),
        ("signed in", "olga"),
        ("signed out", "olga"),
    ]
    assert {entry.address for entry in log.latest(10)} == {"127.0.0.1"}
    text = log.path.read_text()
    assert "secret" not in text
    assert "horse" not in text
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    sign_in(site, "olga", PASSWORD)
    page = site.client.get("/users").text
    assert wrong in page
    assert "signed out" in page


def test_by_a_token_they_are_logged_too(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    with sites.serving(tmp_path, project=project, token=TOKEN, enter=False) as served:
        sign_in(served, "anna", "not-the-right-token")
        sign_in(served, "anna", TOKEN)
    entries = SignInLog(project.folder).latest(10)
    assert [entry.what for entry in entries] == ["signed in", "wrong password or token"]


def test_the_log_stays_small_and_outlives_a_torn_line(tmp_path):
    log = SignInLog(tmp_path, clock=iter(range(1000)).__next__, largest=1000)
    for _ in range(40):
        log.write("signed in", "olga", "10.0.0.1")
    files = sorted(path.name for path in log.path.parent.iterdir())
    assert files == ["sign-ins.1.jsonl", "sign-ins.jsonl"]
    assert all(path.stat().st_size < 1200 for path in log.path.parent.iterdir())
    log.path.write_text(log.path.read_text() + '{"time": 3, "wh')
    latest = log.latest(5)
    assert [entry.time for entry in latest] == [39, 38, 37, 36, 35]


def test_a_log_that_can_not_be_written_keeps_nobody_out(site, caplog):
    path = SignInLog(site.project.folder).path
    path.unlink()
    path.mkdir()
    assert sign_in(site, "olga", PASSWORD).status_code == 200
    assert "could not be logged" in caplog.text


def test_the_command_gives_roles_and_shows_the_log(tmp_path):
    project = sites.begin(tmp_path / "run", orchard(tmp_path / "pool", 2))

    def users(*words, stdin=""):
        return CliRunner().invoke(app, ["users", *words, "--run", str(project.folder)], input=stdin)

    assert "as owner" in users("add", "olga", stdin=f"{PASSWORD}\n").stdout
    added = users("add", "rita", "--role", "reviewer", stdin=f"{PASSWORD}\n")
    assert "rita may sign in now, as reviewer" in added.stdout
    assert users("role", "rita", "annotator").stdout == "rita is annotator now.\n"
    assert users("list").stdout == "olga\towner\nrita\tannotator\n"
    assert isinstance(users("add", "x", "--role", "king", stdin="").exception, UnknownName)
    assert isinstance(users("role", "olga", "reviewer").exception, InputError)
    SignInLog(project.folder).write("signed in", "rita", "10.0.0.1")
    told = users("log").stdout.splitlines()
    assert len(told) == 4
    assert "(command): role rita (annotator)" in told[2]
    assert told[3].endswith("rita: signed in, from 10.0.0.1")
