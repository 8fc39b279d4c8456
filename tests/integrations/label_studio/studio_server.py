"""A real Label Studio on loopback, and people who work in it through its API as its pages do."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import parts

ROOT = Path(__file__).parents[3]
TOKEN = "0123456789abcdef0123456789abcdef01234567"
OWNER = "owner@example.com"
STARTS_WITHIN = 900  # seconds; a machine with two busy cores may need minutes for the first start


def http():
    """httpx, which only the extra brings."""
    parts.need("Label Studio")
    import httpx

    return httpx


class NotInstalled(Exception):
    """There is no Label Studio on this machine."""


def executable() -> Path:
    named = os.environ.get("TAILOR_LABEL_STUDIO")
    found = Path(named) if named else ROOT / ".label-studio" / "bin" / "label-studio"
    if not found.exists():
        found = Path(shutil.which("label-studio") or found)
    if not found.exists():
        raise NotInstalled(
            ".ci/parts/label-studio.sh installs it; TAILOR_LABEL_STUDIO names one that is elsewhere"
        )
    return found


class Server:
    """One data folder, started and stopped at will."""

    def __init__(self, data: Path) -> None:
        self.data = data
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {
            "LABEL_STUDIO_BASE_DATA_DIR": str(self.data),
            "LABEL_STUDIO_USERNAME": OWNER,
            "LABEL_STUDIO_PASSWORD": "a-long-password",
            "LABEL_STUDIO_USER_TOKEN": TOKEN,
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
            # so that it calls us on loopback: webhooks, and the backend
            "SSRF_PROTECTION_ENABLED": "false",
            "ML_BLOCK_LOCAL_IP": "false",
        }
        words = ["start", "--no-browser", "--port", str(self.port), "--internal-host", "127.0.0.1"]
        with open(self.data / "log", "ab") as log:
            self._process = subprocess.Popen(
                [executable(), *words], env=environment, cwd=self.data, stdout=log, stderr=log
            )
        wait_for(
            self._answers,
            STARTS_WITHIN,
            lambda: f"Label Studio did not start: {self.log()[-2000:]}",
        )

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.log()[-2000:]
        try:
            return http().get(f"{self.url}/health", timeout=5).status_code == 200
        except http().HTTPError:
            return False

    def log(self) -> str:
        return (self.data / "log").read_text(errors="replace")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class LateAddress:
    """Another address of a server, at which nobody answers before it is opened."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.listener = socket.socket()
        self.listener.bind(
            ("127.0.0.1", 0)
        )  # the port is ours; connections are refused until we listen
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def open(self) -> None:
        self.listener.listen()
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        self.listener.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server.port))
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


def prepared(cache: Path) -> Path:
    """A data folder whose database is set up, which takes Label Studio most of its first start;
    made once.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / "ready").exists():
            shutil.rmtree(cache / "data", ignore_errors=True)
            server = Server(cache / "data")
            try:
                server.start()
                # Every save makes Django write a counter through a thread of its own; let it finish
                # before we copy.
                http().get(
                    f"{server.url}/api/projects", headers={"Authorization": f"Token {TOKEN}"}
                ).raise_for_status()
            finally:
                server.stop()
            (cache / "ready").touch()
    return cache / "data"


def wait_for(condition, seconds: float = 120, otherwise=lambda: "it did not happen in time"):
    """What the condition gives, as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, otherwise()
        time.sleep(0.05)
    return found


class AnnotatedProject:
    """A project in Label Studio, and an annotator at work in it."""

    def __init__(self, server: Server, config: str, title: str = "a project") -> None:
        self.server = server
        self.http = http().Client(
            base_url=server.url,
            headers={"Authorization": f"Token {TOKEN}"},
            timeout=60,
            follow_redirects=True,
        )
        self.id = self.call("POST", "/api/projects", json={"title": title, "label_config": config})[
            "id"
        ]
        self.control = "answer"
        self.subject = "subject"

    def call(self, method: str, path: str, **options):
        answer = self.http.request(method, path, **options)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:1000]}"
        return answer.json() if answer.content else None

    def settings(self) -> dict:
        return self.call("GET", f"/api/projects/{self.id}")

    def change_settings(self, **settings) -> None:
        self.call("PATCH", f"/api/projects/{self.id}", json=settings)

    def load(self, *data: dict) -> list[int]:
        """Tasks that someone imports."""
        path = f"/api/projects/{self.id}/import"
        return self.call(
            "POST", path, params={"return_task_ids": "true"}, json=[{"data": d} for d in data]
        )["task_ids"]

    def tasks(self, **options) -> list[dict]:
        found = self.call(
            "GET",
            "/api/tasks",
            params={"project": self.id, "fields": "all", "page_size": 1000, **options},
        )
        return found["tasks"]

    def waiting(self) -> list[dict]:
        """Tasks without an annotation, a skip included, in the order in which annotators get
        them.
        """
        return [t for t in self.tasks() if not t["annotations"]]

    def by_example(self) -> dict[str, dict]:
        return {t["data"]["tailor_id"]: t for t in self.tasks()}

    def next(self) -> dict:
        """The task that Label Studio hands to an annotator."""
        return self.call("GET", f"/api/projects/{self.id}/next")

    def result(self, classes) -> list[dict]:
        if not classes:
            return []
        value = {"choices": list(classes)}
        return [
            {"from_name": self.control, "to_name": self.subject, "type": "choices", "value": value}
        ]

    def annotate(self, task: dict | int, *classes: str, by: int | None = None) -> int:
        number = task if isinstance(task, int) else task["id"]
        body = {"result": self.result(classes), "lead_time": 1.5} | (
            {"completed_by": by} if by else {}
        )
        return self.call("POST", f"/api/tasks/{number}/annotations/", json=body)["id"]

    def skip(self, task: dict | int) -> int:
        number = task if isinstance(task, int) else task["id"]
        body = {"result": [], "was_cancelled": True}
        return self.call("POST", f"/api/tasks/{number}/annotations/", json=body)["id"]

    def correct(self, annotation: int, *classes: str) -> None:
        self.call("PATCH", f"/api/annotations/{annotation}/", json={"result": self.result(classes)})

    def delete(self, annotation: int) -> None:
        self.call("DELETE", f"/api/annotations/{annotation}/")

    def delete_task(self, task: int) -> None:
        self.call("DELETE", f"/api/tasks/{task}/")

    def colleague(self, email: str) -> int:
        """Another annotator -> the user's number."""
        return self.call(
            "POST", "/api/users/", json={"email": email, "username": email.partition("@")[0]}
        )["id"]
