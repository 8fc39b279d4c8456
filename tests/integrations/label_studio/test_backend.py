"""Called by Label Studio: webhooks, and as its machine-learning backend."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest
from studio_runs import WORDS, connected_run, settings, texts, topic
from studio_server import http, wait_for

from tailor.errors import InputError
from tailor.integrations.label_studio.client import Studio

httpx = http()
from tailor.integrations.label_studio import webhooks
from tailor.integrations.label_studio.webhooks import SECRET_HEADER

WEBHOOKS = "/api/webhooks/"
BACKENDS = "/api/ml"


@contextlib.contextmanager
def running(project, tmp_path, messages=None, backend=False, **options):
    """The loop with its port, looking by itself only every ten minutes: (link, address, secret)."""
    stop = threading.Event()
    pool = texts(tmp_path / "news.jsonl")
    messages = [] if messages is None else messages
    options = {"pool": pool, "settings": settings("text"), "ahead": 0} | options
    with connected_run(project, tmp_path / "run", messages=messages, **options) as connection:
        sync = connection.sync
        secret = connection.project_link.secret
        sync.step()
        with webhooks.listening(
            sync, secret, "127.0.0.1", 0, backend=backend, say=messages.append
        ) as address:
            thread = threading.Thread(target=sync.run, args=(600, stop))
            thread.start()
            try:
                yield sync, address, secret
            finally:
                stop.set()
                sync.wake()
                thread.join()


def test_webhooks_bring_annotations_at_once(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    with running(project, tmp_path) as (sync, _, _):
        (hook,) = project.call("GET", WEBHOOKS, params={"project": project.id})
        assert not hook["send_payload"]  # we only want to be woken
        tasks = project.waiting()
        marks = [project.annotate(task, topic(task["data"]["text"])) for task in tasks[:-1]]
        wait_for(lambda: sync.session.run_state.answered() == 7)
        project.delete(marks[0])
        wait_for(lambda: sync.session.run_state.answered() == 6)
        project.annotate(tasks[0], "sport")
        project.annotate(tasks[-1], "sport")
        wait_for(lambda: len(project.tasks()) == 16)  # the round is over: the next batch is there
    assert (
        project.call("GET", WEBHOOKS, params={"project": project.id}) == []
    )  # nobody listens any more


def test_a_webhook_that_label_studio_refuses(make_project, tmp_path):
    """As it does with local addresses unless it is told otherwise: then looking now and then is
    enough.
    """
    project = make_project("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    messages = []
    stop = threading.Event()
    with connected_run(
        project, tmp_path / "run", pool=pool, settings=settings("text"), ahead=0
    ) as connection:
        sync = connection.sync
        secret = connection.project_link.secret
        with webhooks.listening(
            sync, secret, "127.0.0.1", 0, reach="http://no such host", say=messages.append
        ):
            thread = threading.Thread(target=sync.run, args=(0.1, stop))
            thread.start()
            try:
                project.annotate(wait_for(project.waiting)[0], "sport")
                wait_for(lambda: sync.session.run_state.answered() == 1)
            finally:
                stop.set()
                sync.wake()
                thread.join()
        assert any(
            "No webhook" in text and "SSRF_PROTECTION_ENABLED=false" in text for text in messages
        )
        with pytest.raises(InputError, match=r"as a backend: .*ML_BLOCK_LOCAL_IP=false"):
            webhooks.set_backend(sync.task_mirror.studio, "http://127.0.0.1:9", secret)


def test_as_a_backend(make_project, tmp_path):
    """Added and asked for predictions through Label Studio itself."""
    project = make_project("text", "single", WORDS)
    with running(project, tmp_path, backend=True) as (sync, address, _):
        (backend,) = project.call("GET", BACKENDS, params={"project": project.id})
        assert (backend["url"], backend["title"], backend["readable_state"]) == (
            address,
            webhooks.BACKEND_TITLE,
            "Connected",
        )
        assert (
            len(project.call("GET", WEBHOOKS, params={"project": project.id})) == 1
        )  # Label Studio's own is ours
        for task in project.waiting():
            project.annotate(task, topic(task["data"]["text"]))
        wait_for(lambda: len(project.tasks()) == 16)
        wait_for(lambda: sync.frozen_predictions.version == "TAILOR round 1")
        test = project.call(
            "POST", f"{BACKENDS}/{backend['id']}/predict/test", params={"random": "true"}
        )
        assert test["status"] == 200
        asked = [t for t in project.tasks() if t["data"]["tailor_round"] == 0]
        selected = {"all": False, "included": [t["id"] for t in asked]}
        action = {"project": project.id, "id": "retrieve_tasks_predictions"}
        project.call("POST", "/api/dm/actions/", params=action, json={"selectedItems": selected})
        predicted = {
            t["data"]["tailor_id"]: t["predictions"]
            for t in project.tasks()
            if t["data"]["tailor_round"] == 0
        }
        for task in asked:
            predictions = predicted[task["data"]["tailor_id"]]
            if task["data"]["tailor_arm"] == "hold-out":
                assert predictions == []
                continue
            probs = sync.frozen_predictions.get(task["data"]["tailor_id"])
            assert predictions[0]["model_version"] == "TAILOR round 1"
            assert predictions[0]["result"][0]["value"]["choices"] == [
                list(WORDS)[int(probs.argmax())]
            ]
            assert predictions[0]["score"] == pytest.approx(float(probs.max()), abs=1e-3)

        before = sync.session.run_state.answered()
        for task in project.waiting()[:3]:
            project.annotate(task, topic(task["data"]["text"]))
        wait_for(lambda: sync.session.run_state.answered() == before + 3)
        project.call("POST", f"{BACKENDS}/{backend['id']}/train", json={})
        wait_for(lambda: sync.frozen_predictions.version == f"TAILOR round 1, {before + 3} labels")
        refreshed = project.call("GET", BACKENDS, params={"project": project.id})[0]
        assert refreshed["model_version"] == sync.frozen_predictions.version
    with running(project, tmp_path, backend=True, pool=None) as (
        sync,
        address,
        _,
    ):  # after a restart, on another port
        (backend,) = project.call("GET", BACKENDS, params={"project": project.id})
        assert (backend["url"], backend["readable_state"]) == (address, "Connected")


def test_added_by_hand_before_we_listen(make_project, tmp_path):
    """Label Studio makes a webhook without our secret then; it gets one."""
    project = make_project("text", "single", WORDS)
    with running(project, tmp_path, backend=True) as (_, address, secret):
        (hook,) = project.call("GET", WEBHOOKS, params={"project": project.id})
        project.call("PATCH", f"{WEBHOOKS}{hook['id']}/", json={"headers": {}, "url": hook["url"]})
        studio = Studio(
            project.server.url, project.http.headers["authorization"].split()[1], project.id
        )
        webhooks.set_webhook(studio, f"{address}/webhook", secret)
        studio.close()
        (hook,) = project.call("GET", WEBHOOKS, params={"project": project.id})
        assert hook["headers"] == {SECRET_HEADER: secret}


def test_who_may_call(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    with running(project, tmp_path) as (sync, address, secret):
        assert httpx.get(f"{address}/health").json()["status"] == "UP"
        task = project.tasks()[0]
        bodies = {
            "setup": {"project": f"{project.id}.1", "access_token": "a" * 40},
            "predict": {"tasks": [task]},
            "webhook": {"action": "ANNOTATION_CREATED"},
        }
        for path, body in bodies.items():
            url = f"{address}/{path}"
            assert httpx.post(url, json=body).status_code == 401
            assert httpx.post(url, json=body, headers={SECRET_HEADER: "wrong"}).status_code == 401
            assert httpx.post(url, json=body, headers={SECRET_HEADER: ""}).status_code == 401
            assert (
                httpx.post(url, json=body, headers={"Authorization": "Basic !"}).status_code == 401
            )
            assert httpx.post(url, json=body, auth=(webhooks.USER, "wrong")).status_code == 401
            assert httpx.post(url, json=body, headers={SECRET_HEADER: secret}).status_code == 200
            assert httpx.post(url, json=body, auth=(webhooks.USER, secret)).status_code == 200
            for odd in (b"{", b"[]", b"[" * 100_000, b'"x"', b"\xff"):
                assert (
                    httpx.post(url, content=odd, headers={SECRET_HEADER: secret}).status_code == 400
                )
        setup = httpx.post(
            f"{address}/setup", json={"project": "999.1"}, headers={SECRET_HEADER: secret}
        )
        assert (setup.status_code, setup.json()["detail"]) == (
            400,
            f"this backend serves project {project.id}, not 999",
        )
        for tasks in (None, "x", [1], {"a": 1}):
            assert (
                httpx.post(
                    f"{address}/predict", json={"tasks": tasks}, headers={SECRET_HEADER: secret}
                ).status_code
                == 400
            )
        foreign = [
            {"id": 1, "data": {"text": "x"}},
            {"id": "x", "data": None},
            {},
            {"id": 2, "data": {"tailor_id": 3}},
        ]
        answer = httpx.post(
            f"{address}/predict", json={"tasks": foreign}, headers={SECRET_HEADER: secret}
        ).json()
        assert answer["results"] == [[], [], [], []]
        assert (
            httpx.get(f"{address}/docs").status_code
            == httpx.get(f"{address}/openapi.json").status_code
            == 404
        )
        assert sync.session.run_state.answered() == 0


def test_a_port_in_use(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    pool = texts(tmp_path / "news.jsonl")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with connected_run(
            project, tmp_path / "run", pool=pool, settings=settings("text")
        ) as connection:
            trying = webhooks.listening(
                connection.sync, connection.project_link.secret, "127.0.0.1", port, say=print
            )
            with pytest.raises(InputError, match=f"can't listen on 127.0.0.1:{port}"), trying:
                pass
