"""Either side may stop at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from studio_runs import WORDS, label_of, labels, linked, settings, texts, topic
from studio_server import TOKEN, wait_for

from tailor.errors import InputError
from tailor.integrations.label_studio.client import Unreachable
from tailor.run.project import Project


def test_annotations_made_while_we_were_away(answer_writer, tmp_path):
    there = answer_writer("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    with linked(
        there, tmp_path / "run", pool=pool, settings=settings("text"), ahead=0
    ) as connection:
        connection.sync.step()
        a, b, c, *_ = there.waiting()
        marks = [there.annotate(t, "sport") for t in (a, b)]
        skip = there.skip(c)
        connection.sync.step()
        before = labels(connection.sync)
    name = [t["data"]["tailor_id"] for t in (a, b, c)]
    assert before == {name[0]: ("sport",), name[1]: ("sport",)}
    there.correct(marks[0], "science")
    there.delete(marks[1])
    there.delete(skip)
    d = there.waiting()[-1]
    there.annotate(d, "politics")
    with linked(there, tmp_path / "run", ahead=0) as connection:
        connection.sync.step()
        assert labels(connection.sync) == {
            name[0]: ("science",),
            d["data"]["tailor_id"]: ("politics",),
        }
        assert {name[1], name[2]} <= {s.id for s in connection.sync.session.waiting()}
        assert len(there.tasks()) == 8  # nothing was pushed twice


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_push_that_fails_half_way(answer_writer, tmp_path, moment):
    """Label Studio took the tasks, or did not, and we never heard of it."""
    there = answer_writer("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    with linked(there, tmp_path / "run", pool=pool, settings=settings("text")) as connection:
        sync = connection.sync
        push = sync.task_mirror.studio.add_tasks

        def fail(tasks):
            if moment == "after":
                push(tasks)
            raise Unreachable("the line went dead")

        sync.task_mirror.studio.add_tasks = fail
        with pytest.raises(Unreachable):
            sync.step()
        assert len(sync.session.waiting()) == 8
        assert len(there.tasks()) == (8 if moment == "after" else 0)
        sync.task_mirror.studio.add_tasks = push
        sync.step()
        assert len(there.tasks()) == 8
        assert len(there.by_example()) == 8
    with linked(there, tmp_path / "run") as connection:
        connection.sync.step()
        assert len(there.tasks()) == 8


def test_label_studio_restarts_in_the_middle(answer_writer, server, tmp_path):
    there = answer_writer("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    said = []
    stop = threading.Event()
    options = {"pool": pool, "settings": settings("text"), "ahead": 2, "said": said}
    with linked(there, tmp_path / "run", **options) as connection:
        sync = connection.sync
        thread = threading.Thread(target=sync.run, args=(0.2, stop))
        thread.start()
        try:
            tasks = wait_for(there.waiting)
            there.annotate(tasks[0], "sport")
            wait_for(lambda: sync.session.run_state.answered() == 1)
            server.stop()
            wait_for(lambda: any("can't be reached" in text for text in said))
            server.start()
            wait_for(lambda: "Label Studio is back." in said)
            for task in there.waiting()[:5]:
                there.annotate(task, topic(task["data"]["text"]))
            wait_for(lambda: len(there.tasks()) == 16)
        finally:
            stop.set()
            sync.wake()
            thread.join()
        assert sync.session.run_state.answered() == 6
        assert len(there.by_example()) == 16
        assert sum("Trying again" in text for text in said) == 1  # said once, however long it takes


def command(there, run, *more):
    words = [
        "label-studio",
        "connect",
        "--url",
        there.server.url,
        "--project",
        there.id,
        "--run",
        run,
        *more,
    ]
    return [sys.executable, "-m", "tailor", *map(str, words)]


def environment():
    return os.environ | {"LABEL_STUDIO_API_KEY": TOKEN, "COLUMNS": "200"}


def test_the_command_is_killed_and_goes_on(answer_writer, tmp_path):
    there = answer_writer("text", "single", WORDS)
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
        words = command(there, run, "--listen", "127.0.0.1:0", "--poll", "600", "--ahead", "0")
        first = subprocess.Popen(words, env=environment(), stdout=file, stderr=file)
        try:
            wait_for(lambda: len(there.tasks()) == 8, 120, log.read_text)
            hooks = wait_for(
                lambda: there.call("GET", "/api/webhooks/", params={"project": there.id})
            )
            assert len(hooks) == 1
            there.annotate(there.waiting()[0], "sport")
            wait_for(
                lambda: answered() == 1, 60, log.read_text
            )  # the next look is minutes away: the webhook did it
        finally:
            first.send_signal(signal.SIGKILL)
            first.wait()
        there.annotate(there.waiting()[0], "science")  # nobody listens
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
    assert there.call("GET", "/api/webhooks/", params={"project": there.id}) == []


def test_one_pass(answer_writer, tmp_path):
    there = answer_writer("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    done = subprocess.run(
        command(there, tmp_path / "run", "--pool", pool, "--batch", 6, "--once"),
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "6 tasks pushed" in done.stderr
    assert len(there.tasks()) == 6


def test_the_run_of_another_project(answer_writer, tmp_path):
    first = answer_writer("text", "single", WORDS)
    second = answer_writer("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    with linked(first, tmp_path / "run", pool=pool, settings=settings("text")):
        pass
    with pytest.raises(InputError, match="belongs to project"), linked(second, tmp_path / "run"):
        pass


def test_the_address_of_label_studio_may_change(answer_writer, tmp_path):
    there = answer_writer("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    with linked(there, tmp_path / "run", pool=pool, settings=settings("text")) as connection:
        connection.sync.step()
        one = there.waiting()[0]
        there.annotate(one, "sport")
    there.server.url, before = there.server.url.replace("127.0.0.1", "localhost"), there.server.url
    try:
        with linked(there, tmp_path / "run") as connection:
            connection.sync.step()
            assert label_of(connection.sync, one["data"]["tailor_id"]) == ("sport",)
            assert connection.project_link.url == there.server.url
    finally:
        there.server.url = before
