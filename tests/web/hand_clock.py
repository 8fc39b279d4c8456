"""Time for the server's patience that passes only when a test says so."""

from __future__ import annotations

import threading

import uvicorn
from browsing import wait_for

from tailor.web.connections import impatient_protocol

FOREVER = 1e6  # seconds


class HandClock:
    """Put in the place of the server's clock; uvicorn's own time-out between two requests is out of
    the way too.
    """

    def __init__(self, monkeypatch, module: str = "tailor.web.serve") -> None:
        self.now = 0.0
        self.connections: list = []  # in the order they came
        monkeypatch.setattr(f"{module}.impatient_protocol", self._protocol)
        config = uvicorn.Config
        monkeypatch.setattr(
            uvicorn, "Config", lambda *a, **k: config(*a, **{"timeout_keep_alive": FOREVER, **k})
        )

    def _protocol(self, patience):
        clock = self

        class ByHand(impatient_protocol(patience)):
            received = 0

            def connection_made(self, transport):
                clock.connections.append(self)
                super().connection_made(transport)

            def data_received(self, data):
                super().data_received(data)
                self.received += len(data)

            def _set_timer(self, seconds, then):
                super()._set_timer(FOREVER, then)
                self.due = clock.now + seconds
                self.then = then

            def strike(self):
                if self._timer is not None and self.due <= clock.now:
                    self.then()

        return ByHand

    def advance(self, seconds: float) -> None:
        """What is due by then has happened when this returns."""
        self.now += seconds
        for connection in self.connections:
            struck = threading.Event()
            connection.loop.call_soon_threadsafe(connection.strike)
            connection.loop.call_soon_threadsafe(struck.set)
            assert struck.wait(180)

    def wait_until_read(self, number: int, size: int) -> None:
        """Until the server has so many bytes of this connection."""
        wait_for(
            lambda: len(self.connections) > number and self.connections[number].received >= size
        )
