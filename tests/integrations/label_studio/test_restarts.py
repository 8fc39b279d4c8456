"""Either side may stop at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from studio_runs import WORDS, connected_run, label_of, labels, settings, texts, topic
from studio_server import TOKEN, wait_for

from tailor.errors import InputError
from tailor.integrations.label_studio.transport import StudioUnreachable
from tailor.run.project import Project


def test_annotations_made_while_we_were_away(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    with connected_run(
        project, tmp_path / "run", pool=pool, settings=settings("text"), ahead=0
    ) as connection:
        connection.sync.step()
        a, b, c, *_ = project.waiting()
        marks = [project.annotate(t, "sport") for t in (a, b)]
        skip = project.skip(c)
        connection.sync.step()
        before = labels(connection.sync)
    ids = [t["data"]["tailor_id"] for t in (a, b, c)]
    assert before == {ids[0]: ("sport",), ids[1]: ("sport",)}
    project.correct(marks[0], "science")
    project.delete(marks[1])
    project.delete(skip)
    d = project.waiting()[-1]
    project.annotate(d, "politics")
    with connected_run(project, tmp_path / "run", ahead=0) as connection:
        connection.sync.step()
        assert labels(connection.sync) == {
            ids[0]: ("science",),
            d["data"]["tailor_id"]: ("politics",),
        }
        assert {ids[1], ids[2]} <= {s.id for s in connection.sync.session.waiting()}
        assert len(project.tasks()) == 8  # nothing was pushed twice


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_push_that_fails_half_way(make_project, tmp_path, moment):
    """Label Studio took the tasks, or did not, and we never heard of it."""
    project = make_project("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    with connected_run(
        project, tmp_path / "run", pool=pool, settings=settings("text")
    ) as connection:
        sync = connection.sync
        push = sync.task_mirror.studio.tasks.add

        def fail(tasks):
            if moment == "after":
                push(tasks)
            raise StudioUnreachable("the line went dead")

        sync.task_mirror.studio.tasks.add = fail
        with pytest.raises(StudioUnreachable):
            sync.step()
        assert len(sync.session.waiting()) == 8
        assert len(project.tasks()) == (8 if moment == "after" else 0)
        sync.task_mirror.studio.tasks.add = push
        sync.step()
        assert len(project.tasks()) == 8
        assert len(project.by_example()) == 8
    with connected_run(project, tmp_path / "run") as connection:
        connection.sync.step()
        assert len(project.tasks()) == 8


def test_label_studio_restarts_in_the_middle(make_project, server, tmp_path):
    project = make_project("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    messages = []
    stop = threading.Event()
    options = {"pool": pool, "settings": settings("text"), "ahead": 2, "messages": messages}
    with connected_run(project, tmp_path / "run", **options) as connection:
        sync = connection.sync
        thread = threading.Thread(target=sync.run, args=(0.2, stop))
        thread.start()
        try:
            tasks = wait_for(project.waiting)
            project.annotate(tasks[0], "sport")
            wait_for(lambda: sync.session.run_state.answered() == 1)
            server.stop()
            wait_for(lambda: any("can't be reached" in text for text in messages))
            server.start()
            wait_for(lambda: "Label Studio is back." in messages)
            for task in project.waiting()[:5]:
                project.annotate(task, topic(task["data"]["text"]))
            wait_for(lambda: len(project.tasks()) == 16)
        finally:
            stop.set()
            sync.wake()
            thread.join()
        assert sync.session.run_state.answered() == 6
        assert len(project.by_example()) == 16
        assert (
            sum("Trying again" in text for text in messages) == 1
        )  # said once, however long it takes


def command(project, run, *more):
    words = [
        "label-studio",
        "connect",
        "--url",
        project.server.url,
        "--project",
        project.id,
        "--run",
        run,
        *more,
    ]
    return [sys.executable, "-m", "tailor", *map(str, words)]


def environment():
    return os.environ | {"LABEL_STUDIO_API_KEY": TOKEN, "COLUMNS": "200"}


def test_the_command_is_killed_and_goes_on(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    texts(tmp_path / "news.jsonl")
    run = tmp_path / "run"
    log = tmp_path / "log"
    prepare = [
        sys.executable,
        "-m",
        "tailor",
        "init",
        tmp_path / "news.jsonl",
        "--run",
        run,
        "--key",
        "key",
        "--classes",
        ",".join(WORDS),
        "--backbone",
        "hashed-words",
        "--batch",
        "8",
    ]
    subprocess.run(prepare, check=True, capture_output=True)

    def answered():
        return Project(run).run_state().answered()

    with log.open("w") as file:
        words = command(project, run, "--listen", "127.0.0.1:0", "--poll", "600", "--ahead", "0")
        first = subprocess.Popen(words, env=environment(), stdout=file, stderr=file)
        try:
            wait_for(lambda: len(project.tasks()) == 8, 120, log.read_text)
            hooks = wait_for(
                lambda: project.call("GET", "/api/webhooks/", params={"project": project.id})
            )
            assert len(hooks) == 1
            project.annotate(project.waiting()[0], "sport")
            wait_for(
                lambda: answered() == 1, 60, log.read_text
            )  # the next look is minutes away: the webhook did it
        finally:
            first.send_signal(signal.SIGKILL)
            first.wait()
        project.annotate(project.waiting()[0], "science")  # nobody listens
        assert answered() == 1
        second = subprocess.Popen(words, env=environment(), stdout=file, stderr=file)
        try:
            wait_for(lambda: answered() == 2, 120, log.read_text)
            second.send_signal(signal.SIGTERM)  # as a service is stopped; the same as Ctrl-C
            assert second.wait(180) == 130
        finally:
            second.kill()
            second.wait()
    assert "Go on with: tailor label-studio connect" in log.read_text()
    secret = (run / "label-studio.json").read_text()
    assert TOKEN not in log.read_text() + secret
    assert oct((run / "label-studio.json").stat().st_mode & 0o777) == "0o600"
    # The killed one could not take its webhook away; the one that was stopped politely did, for
    # both.
    assert project.call("GET", "/api/webhooks/", params={"project": project.id}) == []


def test_one_pass(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    done = subprocess.run(
        command(project, tmp_path / "run", "--pool", pool, "--batch", 6, "--once"),
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "6 tasks pushed" in done.stderr
    assert len(project.tasks()) == 6


def test_the_run_of_another_project(make_project, tmp_path):
    first = make_project("text", "single", WORDS)
    second = make_project("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    with connected_run(first, tmp_path / "run", pool=pool, settings=settings("text")):
        pass
    with (
        pytest.raises(InputError, match="belongs to project"),
        connected_run(second, tmp_path / "run"),
    ):
        pass


def test_the_address_of_label_studio_may_change(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    with connected_run(
        project, tmp_path / "run", pool=pool, settings=settings("text")
    ) as connection:
        connection.sync.step()
        task = project.waiting()[0]
        project.annotate(task, "sport")
    project.server.url, before = (
        project.server.url.replace("127.0.0.1", "localhost"),
        project.server.url,
    )
    try:
        with connected_run(project, tmp_path / "run") as connection:
            connection.sync.step()
            assert label_of(connection.sync, task["data"]["tailor_id"]) == ("sport",)
            assert connection.project_link.url == project.server.url
    finally:
        project.server.url = before
