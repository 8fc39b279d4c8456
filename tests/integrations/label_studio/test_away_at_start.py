"""Label Studio is away when we begin: we wait for it, say so, and can be stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from studio_runs import WORDS, texts
from studio_server import TOKEN, LateAddress, http, wait_for

from tailor.errors import InputError
from tailor.integrations.label_studio import connect
from tailor.integrations.label_studio.transport import StudioUnreachable


class Away:
    """A Label Studio that can't be reached a few times, and then has no such project."""

    def __init__(self, times):
        self.times = times

    def describe(self):
        self.times -= 1
        if self.times >= 0:
            raise StudioUnreachable("Label Studio can't be reached: nobody is there")
        raise InputError("no project 7")


def test_the_pauses_grow_and_it_is_said_once(tmp_path, monkeypatch):
    pauses = []
    messages = []
    monkeypatch.setattr(connect.time, "sleep", pauses.append)
    with (
        pytest.raises(InputError, match="no project 7"),
        connect.connected(Away(6), tmp_path / "run", patience=5.0, say=messages.append),
    ):
        pass
    assert pauses == [10, 20, 30, 30, 30, 30]  # seconds: at least twice a minute
    assert messages == [
        "Label Studio can't be reached: nobody is there. Waiting for it; Ctrl-C ends this."
    ]
    assert not (tmp_path / "run").exists()


def test_after_many_hours_it_still_waits():
    assert connect.pause(5.0, 10**6) == 30


def test_without_patience_it_is_an_error(tmp_path):
    with pytest.raises(StudioUnreachable), connect.connected(Away(1), tmp_path / "run"):
        pass


def start(url, run, *more, log):
    words = [
        "label-studio",
        "connect",
        "--url",
        url,
        "--run",
        run,
        "--poll",
        "0.1",
        "--batch",
        6,
        *more,
    ]
    environment = os.environ | {"LABEL_STUDIO_API_KEY": TOKEN, "COLUMNS": "200"}
    command = [sys.executable, "-m", "tailor", *map(str, words)]
    return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def test_the_command_waits_until_it_is_there(make_project, server, tmp_path):
    project = make_project("text", "single", WORDS)
    late_address = LateAddress(server)
    pool = texts(tmp_path / "news.jsonl")
    log = tmp_path / "log"
    with log.open("w") as file:
        child = start(
            late_address.url, tmp_path / "run", "--project", project.id, "--pool", pool, log=file
        )
        try:
            wait_for(
                lambda: f"Label Studio at {late_address.url} can't be reached" in log.read_text(),
                180,
                log.read_text,
            )
            assert child.poll() is None
            assert not (tmp_path / "run").exists()
            late_address.open()
            wait_for(lambda: len(project.tasks()) == 6, 180, log.read_text)
            child.send_signal(signal.SIGINT)
            assert child.wait(180) == 130
        finally:
            child.kill()
            child.wait()
            late_address.close()
    text = log.read_text()
    assert text.count("Waiting for it; Ctrl-C ends this.") == 1
    assert "Label Studio is there." in text
    go_on = (
        f"tailor label-studio connect --url {late_address.url} --project {project.id} --run "
        f"{tmp_path / 'run'}\n"
    )
    assert f"Go on with: {go_on}" in text


def test_ctrl_c_while_it_waits(tmp_path):
    http()
    log = tmp_path / "log"
    with log.open("w") as file:
        pool = texts(tmp_path / "news.jsonl")
        child = start(
            "http://127.0.0.1:9", tmp_path / "run", "--project", 1, "--pool", pool, log=file
        )
        try:
            wait_for(lambda: "Waiting for it" in log.read_text(), 180, log.read_text)
            child.send_signal(signal.SIGINT)
            assert child.wait(180) == 130
        finally:
            child.kill()
            child.wait()
    text = log.read_text()
    assert f"--run {tmp_path / 'run'} --pool {pool} --batch 6" in text  # nothing was begun yet
    assert "Traceback" not in text
    assert TOKEN not in text
    assert not (tmp_path / "run").exists()
