"""What goes wrong is said clearly, and the token is never in it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from studio_runs import WORDS, connected_run, label_of, pictures, settings, texts
from studio_server import TOKEN, AnnotatedProject, http

from tailor.errors import InputError
from tailor.integrations.label_studio.client import Studio
from tailor.integrations.label_studio.transport import StudioError, StudioUnreachable

SECRET = "b" * 40


def test_tokens(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    for wrong in (SECRET, "a.b.c"):
        with pytest.raises(InputError, match="does not accept the token") as refused:
            Studio(project.server.url, wrong, project.id).describe()
        assert wrong not in str(refused.value)
    with pytest.raises(InputError, match="odd characters"):
        Studio(project.server.url, "tok\nen", 1)
    personal = project.call("POST", "/api/token/")[
        "token"
    ]  # what Label Studio gives its users today
    pool = texts(tmp_path / "news.jsonl")
    with connected_run(
        project, tmp_path / "run", token=personal, pool=pool, settings=settings("text")
    ) as connection:
        sync = connection.sync
        sync.step()
        task = project.waiting()[0]
        project.annotate(task, "sport")
        sync.task_mirror.studio.transport._access_token = (
            sync.task_mirror.studio.transport._access_token[:-3] + "xxx"
        )  # it has run out
        sync.step()
        assert label_of(sync, task["data"]["tailor_id"]) == ("sport",)


def test_addresses(make_project, server):
    for odd in ("localhost:8080", "ftp://localhost", "http://", "", "Label Studio"):
        with pytest.raises(InputError, match="url is"):
            Studio(odd, SECRET, 1)
    with pytest.raises(StudioUnreachable, match="can't be reached") as refused:
        Studio("http://127.0.0.1:9", SECRET, 1).describe()
    assert SECRET not in str(refused.value)
    project = make_project("text", "single", WORDS)
    with pytest.raises(
        InputError,
        match=rf"no project 987 at {server.url}: there are .*{project.id} \('a project'\)",
    ):
        Studio(server.url, TOKEN, 987).describe()
    with pytest.raises(StudioError, match=r"refused POST /api/projects/\d+/import \(400\)"):
        Studio(server.url, TOKEN, project.id).tasks.add([{"data": {"wrong": 1}}])


def test_nothing_is_begun_that_does_not_fit(make_project, server, tmp_path):
    project = make_project("text", "single", WORDS)
    run = tmp_path / "run"
    photos = pictures(tmp_path / "photos", 6)
    wrong = [
        (project, {"pool": photos}, "the pool holds images, the label config shows texts"),
        (project, {"pool": tmp_path / "nowhere"}, "nothing at"),
        (
            make_project("text", "single", ["one"]),
            {"pool": texts(tmp_path / "a.jsonl")},
            "at least 2 classes",
        ),
        (
            AnnotatedProject(
                server,
                project.settings()["label_config"].replace(
                    '"$text"/>', '"$text"/><Text name="t" value="$title"/>'
                ),
            ),
            {"pool": texts(tmp_path / "b.jsonl")},
            r"also shows \$title",
        ),
    ]
    for unfit, options, words in wrong:
        with pytest.raises(InputError, match=words), connected_run(unfit, run, **options):
            pass
        assert not (run / "tailor.toml").exists()
        assert not (run / "label-studio.json").exists()
    pool = texts(tmp_path / "news.jsonl")
    with connected_run(project, run, pool=pool, settings=settings("text")):
        pass
    with (
        pytest.raises(InputError, match="names the pool already"),
        connected_run(project, run, pool=pool),
    ):
        pass
    several = make_project("text", "multiple", WORDS)
    with (
        pytest.raises(InputError, match="the label config is multi-label"),
        connected_run(several, run),
    ):
        pass


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a token"),
        (["--token", SECRET], "name the project"),
        (["--token", SECRET, "--project", "1", "--backend"], "--backend needs --listen"),
        (
            ["--token", SECRET, "--project", "1", "--url", "http://127.0.0.1:9", "--once"],
            "can't be reached",
        ),
        (
            ["--token", SECRET, "--project", "1", "--allow-links", "http://10.0.0.5/"],
            "links are allowed from 'http://",
        ),
    ],
)
def test_the_command_line(words, message, tmp_path):
    http()
    command = [sys.executable, "-m", "tailor", "label-studio", "connect", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []
