"""The port that Label Studio calls: slow and half-sent requests keep it from nobody."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import replace

import pytest
from studio_server import http

httpx = http()
from fastapi import FastAPI

from tailor.integrations.label_studio import webhooks

HALF = b"POST /webhook HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
TIMEOUT = 120


@pytest.fixture
def receiver(monkeypatch):
    """With room for four connections, and all the time of the world."""
    monkeypatch.setattr(
        webhooks, "PATIENCE", replace(webhooks.PATIENCE, seconds=1e6, connections=4)
    )
    app = FastAPI()
    app.get("/health")(lambda: {"status": "UP"})
    receiver = webhooks.Receiver(app, "127.0.0.1", 0)
    yield receiver
    receiver.close()


def test_half_sent_requests_push_out_each_other(receiver):
    with contextlib.ExitStack() as stack:
        half = []
        for _ in range(8):
            half.append(
                stack.enter_context(
                    socket.create_connection(("127.0.0.1", receiver.port), timeout=TIMEOUT)
                )
            )
            half[-1].sendall(HALF)
        assert half[0].recv(100).startswith(b"HTTP/1.1 408")
        assert httpx.get(f"http://127.0.0.1:{receiver.port}/health", timeout=TIMEOUT).json() == {
            "status": "UP"
        }


def test_a_request_has_its_time(monkeypatch):
    patience = replace(webhooks.PATIENCE, seconds=0.05)
    monkeypatch.setattr(webhooks, "PATIENCE", patience)
    impatient = webhooks.Receiver(FastAPI(), "127.0.0.1", 0)
    try:
        with socket.create_connection(("127.0.0.1", impatient.port), timeout=TIMEOUT) as connection:
            assert connection.recv(100).startswith(b"HTTP/1.1 408")
    finally:
        impatient.close()
