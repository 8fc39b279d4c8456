"""`tailor label` and `tailor users`, as typed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sites
from browsing import wait_for
from fruit import orchard
from typer.testing import CliRunner

import tailor
from tailor.cli.app import app
from tailor.cli.label import find_or_begin
from tailor.errors import InputError
from tailor.web import serve as serving
from tailor.web.serve import listening
from tailor.web.users import Users

ROOT = Path(tailor.__file__).parents[1]


def command(*words, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tailor", *map(str, words)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
    )


def begin(path: Path, classes: str = "a,b", run: Path | None = None, multi_label: bool = False):
    return find_or_begin(path, run, classes, multi_label, 20, "pixels(size=8)")


def test_a_folder_becomes_a_run_beside_it_and_goes_on(tmp_path, capsys):
    pool = orchard(tmp_path / "photos", 5)
    project = begin(pool, "cat,dog,fox")
    assert project.folder == tmp_path / "photos-labels"
    assert project.settings.classes == ("cat", "dog", "fox")
    assert len(project.pool()) == 5
    again = begin(pool, "cat,dog,fox")
    assert again.settings == project.settings
    assert "Going on" not in capsys.readouterr().out
    begin(pool, "cat,cow")  # a run keeps its classes, and says so
    assert "which has classes already" in capsys.readouterr().out
    assert begin(project.folder, "").settings == project.settings  # the run itself can be named too


def test_a_run_of_other_examples_is_not_taken_for_theirs(tmp_path):
    project = begin(orchard(tmp_path / "photos", 3))
    other = orchard(tmp_path / "more", 3)
    with pytest.raises(InputError, match=r"photos-labels labels .*photos, not .*more: .*--run"):
        begin(other, run=project.folder)
    (tmp_path / "link").symlink_to(tmp_path / "photos")
    assert begin(tmp_path / "link", run=project.folder).settings == project.settings


def test_a_file_becomes_a_run_beside_it(tmp_path):
    (tmp_path / "reviews.csv").write_text("text\ngood\nbad\n")
    project = begin(tmp_path / "reviews.csv", "good,bad", multi_label=True)
    assert project.folder == tmp_path / "reviews-labels"
    assert project.settings.kind == "multi-label"


def test_the_columns_of_ids_and_texts_are_named_as_for_init(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text("number,title,body\nr1,Fine,good\nr2,Bad,bad\n")
    ambiguous = command("label", path, "--classes", "good,bad", "--no-open")
    assert ambiguous.returncode == 2
    assert "may be in number, title, body: name the column (--column" in ambiguous.stderr
    wrong = command(
        "label", path, "--classes", "good,bad", "--no-open", "--key", "numbr", "--column", "body"
    )
    assert wrong.returncode == 2
    assert "did you mean 'number'" in wrong.stderr
    assert not (tmp_path / "reviews-labels").exists()
    project = find_or_begin(path, None, "good,bad", False, 20, "", key="number", column="body")
    assert list(project.pool().ids) == ["r1", "r2"]
    assert project.pool().read([0, 1]) == ["good", "bad"]
    again = find_or_begin(path, None, "", False, 20, "", key="number")
    assert again.settings == project.settings
    other = command("label", path, "--no-open", "--column", "title")
    assert other.returncode == 2
    assert "--column is 'title', the run in" in other.stderr
    assert "was begun with 'body'" in other.stderr


def test_bad_input_is_told_and_leaves_nothing(tmp_path):
    pool = orchard(tmp_path / "photos", 2)
    with pytest.raises(InputError, match="name the classes"):
        begin(pool, "")
    with pytest.raises(InputError, match="at least 2 classes"):
        begin(pool, "cat")
    with pytest.raises(InputError, match="nothing at"):
        begin(tmp_path / "nowhere")
    assert not (tmp_path / "photos-labels").exists()


def test_the_command_opens_the_browser_and_ends_politely(tmp_path):
    """BROWSER is what Python asks for a browser: here a script that writes down where it was
    sent.
    """
    pool = orchard(tmp_path / "photos", 6)
    seen = tmp_path / "seen"
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > {seen}.part && mv {seen}.part {seen}\n')
    script.chmod(0o755)
    words = ["label", pool, "--classes", "a,b", "--port", "0", "--backbone", "pixels(size=8)"]
    server = subprocess.Popen(
        [sys.executable, "-m", "tailor", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"BROWSER": f"{script} %s", "TAILOR_TOKEN": "open sesame, please"},
    )
    wait_for(seen.exists)
    url = seen.read_text().strip()
    assert url.startswith("http://127.0.0.1:")
    server.send_signal(signal.SIGINT)
    out, error = server.communicate(timeout=180)
    assert "sesame" not in url  # nor in the list of processes
    assert f"Label at {url}/login#token=open%20sesame%2C%20please\n" in out
    assert server.returncode == 130
    assert "everything answered is saved" in error
    assert "Traceback" not in error


def test_other_addresses_are_refused(tmp_path):
    project = sites.begin(tmp_path / "run", orchard(tmp_path / "pool", 5))
    refused = command("label", project.folder, "--host", "0.0.0.0", "--no-open")
    assert refused.returncode == 2
    assert "tailor users add" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_users_are_added_and_removed(tmp_path):
    project = sites.begin(tmp_path / "run", orchard(tmp_path / "pool", 5))

    def users(*words, stdin="", run=project.folder):
        return CliRunner().invoke(app, ["users", *words, "--run", str(run)], input=stdin)

    assert users("add", "anna", stdin="correct horse\n").exit_code == 0
    assert isinstance(users("add", "bert", stdin="short\n").exception, InputError)
    assert isinstance(users("add", "bert", stdin="").exception, InputError)
    assert users("list").stdout == "anna\towner\n"
    assert Users(project.folder).check("anna", "correct horse")
    assert not Users(project.folder).check("anna", "correct horse ")
    assert stat.S_IMODE((project.folder / "web" / "users.json").stat().st_mode) == 0o600
    assert isinstance(users("remove", "bert").exception, InputError)
    assert users("remove", "anna").exit_code == 0
    assert users("list").stdout == ""
    assert isinstance(users("list", run=tmp_path).exception, InputError)  # no run there


def test_without_the_extra_it_says_what_to_install(tmp_path):
    (tmp_path / "fastapi.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'fastapi'\", name='fastapi')"
    )
    pool = orchard(tmp_path / "photos", 2)
    told = command("label", pool, "--classes", "a,b", PYTHONPATH=str(tmp_path))
    assert told.returncode == 2
    assert "pip install 'tailor-active-learning[web]'" in told.stderr
    assert command("--help", PYTHONPATH=str(tmp_path)).returncode == 0


def test_every_file_of_the_page_is_in_the_wheel():
    """setuptools takes what these patterns match."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
        "package-data"
    ]["tailor"]
    packed = {path for pattern in patterns for path in (ROOT / "tailor").glob(pattern)}
    files = {
        p
        for p in (ROOT / "tailor" / "web").rglob("*")
        if p.is_file() and p.suffix not in (".py", ".pyc")
    }
    assert len(files) >= 15
    assert files <= packed


def test_many_added_at_once_are_all_kept(tmp_path):
    """Each process reads the file, adds one and writes it: nobody else may write in between."""
    project = sites.begin(tmp_path / "run", orchard(tmp_path / "pool", 2))
    names = [f"annotator{number:02d}" for number in range(24)]
    adding = [
        subprocess.Popen(
            [sys.executable, "-m", "tailor", "users", "add", name, "--run", str(project.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for process in adding:  # all have started by now, and wait for their line
        process.stdin.write("correct horse\n")
        process.stdin.flush()
    said = [process.communicate(timeout=300)[0] for process in adding]
    assert all("may sign in now" in line for line in said)
    assert Users(project.folder).names == names


def test_nothing_comes_between_reading_and_writing_users(tmp_path, monkeypatch):
    """Two at once in one process: the second waits until the first has written."""
    from tailor.web import users

    real = users.write_private
    inside = []
    most = []

    def slow(path, content):
        inside.append(path)
        most.append(len(inside))
        time.sleep(0.05)  # long enough for the others to read what is about to be replaced
        real(path, content)
        inside.pop()

    monkeypatch.setattr(users, "write_private", slow)
    with ThreadPoolExecutor(6) as crowd:
        list(crowd.map(lambda n: Users(tmp_path).add(f"anna{n}", "correct horse"), range(6)))
    assert Users(tmp_path).names == [f"anna{n}" for n in range(6)]
    assert max(most) == 1


def test_adding_someone_again_says_that_the_password_is_another(tmp_path):
    project = sites.begin(tmp_path / "run", orchard(tmp_path / "pool", 2))

    def add(password):
        return CliRunner().invoke(
            app, ["users", "add", "anna", "--run", str(project.folder)], input=f"{password}\n"
        )

    assert "anna may sign in now" in add("correct horse").stdout
    again = add("another horse").stdout
    assert "was a user already: the password is changed" in again
    assert "may sign in now" not in again
    assert Users(project.folder).check("anna", "another horse")


def test_a_token_for_a_run_with_users_is_refused(tmp_path):
    """Their passwords count, and the token would let nobody in: better said than found out."""
    project = sites.begin(tmp_path / "run", orchard(tmp_path / "pool", 2))
    Users(project.folder).add("anna", "correct horse")
    refused = command("label", project.folder, "--token", "new", "--no-open", "--port", "0")
    assert refused.returncode == 2
    assert "has users (anna)" in refused.stderr
    assert "Leave out --token" in refused.stderr
    assert "Label at" not in refused.stdout


def test_a_port_in_use_is_said(tmp_path):
    project = sites.begin(tmp_path / "run", orchard(tmp_path / "pool", 2))
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        refused = command("label", project.folder, "--port", port, "--no-open")
    assert refused.returncode == 2
    assert f"port {port} at 127.0.0.1 is in use: name another --port, or 0" in refused.stderr


def test_the_usual_port_in_use_is_said_and_the_next_is_taken(tmp_path, monkeypatch):
    project = sites.begin(tmp_path / "run", orchard(tmp_path / "pool", 2))
    said = []

    class Ended(Exception):
        pass

    def end(*_, **__):
        raise Ended

    with listening("127.0.0.1", 0) as taken:
        usual = taken.getsockname()[1]
        monkeypatch.setattr(serving, "PORT", usual)
        monkeypatch.setattr("uvicorn.Server.run", end)
        with pytest.raises(Ended):
            serving.serve(project, open_browser=False, say=said.append)
    assert said[0].startswith(f"Port {usual} is in use")
    there = int(said[0].rstrip(".").rpartition(" ")[2])
    assert usual < there < usual + serving.TRIES
    assert said[1] == f"Label at http://127.0.0.1:{there}"
