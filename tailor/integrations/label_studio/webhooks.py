"""Being called by Label Studio: a port of ours, and the webhook and the backend that lead to it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from fastapi import FastAPI

from tailor.errors import InputError
from tailor.integrations.label_studio.backend import HEADER, make_app
from tailor.integrations.label_studio.client import Studio, StudioError
from tailor.integrations.label_studio.sync import StudioSync
from tailor.web.connections import Patience, impatient_protocol

USER = "tailor"  # for HTTP's basic authentication, which is what Label Studio knows for backends
TITLE = "TAILOR (live)"
WEBHOOKS, BACKENDS = "/api/webhooks/", "/api/ml"
ACTIONS = [
    "ANNOTATION_CREATED",
    "ANNOTATIONS_CREATED",
    "ANNOTATION_UPDATED",
    "ANNOTATIONS_DELETED",
    "TASKS_CREATED",
    "TASKS_DELETED",
]
#: with whoever calls: a request may be large, and all come from Label Studio's address
PATIENCE = Patience(seconds=60.0, of_address=None)
LOCAL = "It calls addresses in private networks only where it was started with"


@contextlib.contextmanager
def listening(
    sync: StudioSync,
    secret: str,
    host: str,
    port: int,
    *,
    reach: str = "",
    backend: bool = False,
    say: Callable[[str], None],
) -> Iterator[str]:
    """Label Studio's calls reach the link inside -> the address it calls.

    reach: that address, where it is not HOST:PORT. backend: add us to the project's models.
    """
    receiver = Receiver(make_app(sync, secret), host, port)
    studio = sync.task_mirror.studio
    at = reach.rstrip("/") or f"http://{f'[{host}]' if ':' in host else host}:{receiver.port}"
    try:
        try:
            set_webhook(studio, f"{at}/webhook", secret)
        except StudioError as error:
            say(
                f"No webhook, so we look now and then: {error}. {LOCAL} "
                "SSRF_PROTECTION_ENABLED=false."
            )
        if backend:
            set_backend(studio, at, secret)
        yield at
    finally:
        with contextlib.suppress(StudioError, InputError):
            remove_webhooks(studio, secret)
        receiver.close()


class Receiver:
    """An app behind a socket, in a thread of its own. Port 0 finds a free one."""

    def __init__(self, app: FastAPI, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family)
        except OSError as error:
            problem = error.strerror or error
            raise InputError(
                f"can't listen on {host}:{port}: {problem}; name another --listen"
            ) from None
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
            http=impatient_protocol(PATIENCE),
            ws="none",
            log_level="warning",
            access_log=False,
            lifespan="off",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=10)
        self._socket.close()


def set_webhook(studio: Studio, url: str, secret: str) -> None:
    """Have the project call us. One that is there for this address, such as a backend's own, gets
    the secret; those that a process of ours left behind when it was killed go.
    """
    values: dict[str, Any] = {
        "url": url,
        "headers": {HEADER: secret},
        "actions": ACTIONS,
        "send_payload": False,
        "send_for_all_actions": False,
        "is_active": True,
    }
    listed = studio.listed(WEBHOOKS)
    known = [w["id"] for w in listed if w["url"] == url]
    for one in known:
        studio.update(WEBHOOKS, one, **values)
    if not known:
        studio.add(WEBHOOKS, **values)
    for webhook in listed:
        if webhook["url"] != url and _is_ours(webhook, secret):
            studio.remove(WEBHOOKS, webhook["id"])


def remove_webhooks(studio: Studio, secret: str) -> None:
    """While nobody listens, every annotation would wait for the call to fail."""
    for webhook in studio.listed(WEBHOOKS):
        if _is_ours(webhook, secret):
            studio.remove(WEBHOOKS, webhook["id"])


def _is_ours(webhook: dict[str, Any], secret: str) -> bool:
    return (webhook.get("headers") or {}).get(HEADER) == secret


def set_backend(studio: Studio, url: str, secret: str) -> None:
    """Add us to the project's models, or renew what is there under our title."""
    values = {
        "url": url,
        "title": TITLE,
        "auth_method": "BASIC_AUTH",
        "basic_auth_user": USER,
        "basic_auth_pass": secret,
    }
    known = [b["id"] for b in studio.listed(BACKENDS) if b["title"] == TITLE]
    try:
        if known:
            studio.update(BACKENDS, known[0], project=studio.project, **values)
        else:
            studio.add(BACKENDS, **values)
    except StudioError as error:
        raise InputError(
            f"Label Studio can't have {url} as a backend: {error}. {LOCAL} ML_BLOCK_LOCAL_IP=false"
        ) from None
