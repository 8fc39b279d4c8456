"""A line between a store and its server that can be cut, or go dead."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

#: seconds that a line is silent at the most
LONGEST = 300.0
#: seconds that a store waits for its server: of a silent one, which would be waited for in vain,
#: and of a slow one
SHORT, LONG = 1.5, 60.0


class Wire:
    """It passes everything on. A request that holds `word` is passed on, and its answer is not: it
    hangs up.

    While it is silent it takes what comes, new connections too, and passes nothing on until it
    speaks again. It does so by itself after LONGEST seconds: whoever waits for it without a limit
    gets an answer, and the test fails.
    """

    def __init__(self, server) -> None:
        self.server = server
        self.word = None
        self.passed = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self._speaks = threading.Event()
        self._speaks.set()
        self._alarm = threading.Timer(LONGEST, self._speaks.set)
        threading.Thread(target=self._listen, daemon=True).start()

    def url(self) -> str:
        """A run of one's own, reached by this line."""
        return self.server.url().replace(f":{self.server.port}/", f":{self.port}/")

    def silence(self) -> None:
        self._speaks.clear()
        self._alarm = threading.Timer(LONGEST, self._speaks.set)
        self._alarm.daemon = True
        self._alarm.start()

    def speak(self) -> None:
        self._alarm.cancel()
        self._speaks.set()

    def close(self) -> None:
        self.speak()
        self.listener.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.server.port))
                threading.Thread(
                    target=self._pass, args=(client, server, False), daemon=True
                ).start()
                threading.Thread(
                    target=self._pass, args=(server, client, True), daemon=True
                ).start()

    def _pass(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._speaks.wait()
                if answers and self.passed:  # the server has answered: what was asked for is done
                    break
                self.passed |= not answers and self.word is not None and self.word in data
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Patience:
    """How long stores wait for their server, by a clock of its own: it moves only where something
    was waited for in vain, however slow the machine is.
    """

    def __init__(self, monkeypatch) -> None:
        from tailor.storage import postgres_session

        self._module = postgres_session
        self._set = monkeypatch.setattr
        self._hanging_up = postgres_session.hanging_up_after
        self._connect = postgres_session.connect
        self.now = 1000.0
        self.waits: list[tuple[str, float]] = []  # for what, and how many seconds
        monkeypatch.setattr(postgres_session, "ANSWER_SECONDS", LONG)
        monkeypatch.setattr(postgres_session, "time", self)
        monkeypatch.setattr(postgres_session, "hanging_up_after", self._answer)
        monkeypatch.setattr(postgres_session, "connect", self._connection)

    def silence(self, wire: Wire) -> None:
        self._set(self._module, "ANSWER_SECONDS", SHORT)
        wire.silence()

    def speak(self, wire: Wire) -> None:
        self._set(self._module, "ANSWER_SECONDS", LONG)
        wire.speak()
        self.rest()

    def rest(self) -> None:
        """So long that a store tries again."""
        self.now += LONG

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return time.time()

    @contextlib.contextmanager
    def _answer(self, db, after):
        try:
            with self._hanging_up(db, after):
                yield
        except BaseException:
            self._waited("an answer", after)
            raise

    def _connection(self, address, readonly, again=False):
        from tailor.storage.postgres_connection import RECONNECT_SECONDS, TIMEOUTS

        try:
            return self._connect(address, readonly, again)
        except BaseException:
            self._waited(
                "a connection", RECONNECT_SECONDS if again else TIMEOUTS["connect_timeout"]
            )
            raise

    def _waited(self, what: str, seconds: float) -> None:
        self.waits.append((what, seconds))
        self.now += seconds
