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
from tailor.integrations.label_studio.backend import SECRET_HEADER, make_app
from tailor.integrations.label_studio.client import Studio
from tailor.integrations.label_studio.sync import StudioSync
from tailor.integrations.label_studio.transport import StudioError
from tailor.web.connections import Patience, impatient_protocol

#: For HTTP's basic authentication, which is what Label Studio knows for backends.
USER = "tailor"
#: The title of our backend in a project.
BACKEND_TITLE = "TAILOR (live)"
#: What the webhook is called for.
ACTIONS = [
    "ANNOTATION_CREATED",
    "ANNOTATIONS_CREATED",
    "ANNOTATION_UPDATED",
    "ANNOTATIONS_DELETED",
    "TASKS_CREATED",
    "TASKS_DELETED",
]
#: With callers: a request may be large, and all come from Label Studio's address.
PATIENCE = Patience(seconds=60.0, of_address=None)
LOCAL_ADDRESSES = "It calls addresses in private networks only where it was started with"


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
    """Inside the context Label Studio's calls reach the sync -> the address that it calls.

    host, port  where to listen; port 0 finds a free one
    reach       the address under which Label Studio reaches it, where that is another one
    backend     whether to add us to the project's models
    say         called with a message where Label Studio refuses the webhook

    Raises InputError where the port is taken or Label Studio refuses the backend.
    """
    receiver = Receiver(make_app(sync, secret), host, port)
    studio = sync.task_mirror.studio
    if ":" in host:
        url_host = f"[{host}]"
    else:
        url_host = host
    address = reach.rstrip("/") or f"http://{url_host}:{receiver.port}"
    try:
        try:
            set_webhook(studio, f"{address}/webhook", secret)
        except StudioError as error:
            say(
                f"No webhook, so we look now and then: {error}. {LOCAL_ADDRESSES} "
                "SSRF_PROTECTION_ENABLED=false."
            )
        if backend:
            set_backend(studio, address, secret)
        yield address
    finally:
        with contextlib.suppress(StudioError, InputError):
            remove_webhooks(studio, secret)
        receiver.close()


class Receiver:
    """An application behind a socket, in a thread of its own. Raises InputError where the port is
    taken; port 0 finds a free one.
    """

    def __init__(
        self,
        app: FastAPI,
        host: str,
        port: int,
    ) -> None:
        if ":" in host:
            family = socket.AF_INET6
        else:
            family = socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"can't listen on {host}:{port}: {reason}; name another --listen"
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
    """Have the project call a URL. A webhook that is there for it, such as a backend's own, gets
    the secret. Those of ours for other URLs are removed: a killed process left them behind.
    """
    values: dict[str, Any] = {
        "url": url,
        "headers": {SECRET_HEADER: secret},
        "actions": ACTIONS,
        "send_payload": False,
        "send_for_all_actions": False,
        "is_active": True,
    }
    webhooks = studio.webhooks.list_items()
    ids_for_url = [webhook["id"] for webhook in webhooks if webhook["url"] == url]
    for webhook_id in ids_for_url:
        studio.webhooks.update(webhook_id, **values)
    if not ids_for_url:
        studio.webhooks.add(**values)
    for webhook in webhooks:
        if webhook["url"] != url and _is_ours(webhook, secret):
            studio.webhooks.remove(webhook["id"])


def remove_webhooks(studio: Studio, secret: str) -> None:
    """Remove our webhooks: while nobody listens, every annotation would wait for a call to fail."""
    for webhook in studio.webhooks.list_items():
        if _is_ours(webhook, secret):
            studio.webhooks.remove(webhook["id"])


def _is_ours(webhook: dict[str, Any], secret: str) -> bool:
    return (webhook.get("headers") or {}).get(SECRET_HEADER) == secret


def set_backend(studio: Studio, url: str, secret: str) -> None:
    """Add us to the project's models, or renew the entry under our title. Raises InputError where
    Label Studio refuses it.
    """
    values = {
        "url": url,
        "title": BACKEND_TITLE,
        "auth_method": "BASIC_AUTH",
        "basic_auth_user": USER,
        "basic_auth_pass": secret,
    }
    backends = {}
    for backend in studio.backends.list_items():
        backends[backend["title"]] = backend["id"]
    our_id = backends.get(BACKEND_TITLE)
    try:
        if our_id is None:
            studio.backends.add(**values)
        else:
            studio.backends.update(our_id, project=studio.project, **values)
    except StudioError as error:
        raise InputError(
            f"Label Studio can't have {url} as a backend: {error}. {LOCAL_ADDRESSES} "
            "ML_BLOCK_LOCAL_IP=false"
        ) from None
