"""A line between a store and its server that can be cut, or go dead."""

from __future__ import annotations

import contextlib
import socket
import threading


class Wire:
    """It passes everything on. A request that holds `word` is passed on, and its answer is not: it hangs up.

    While it is silent it takes what comes, new connections too, and passes nothing on until it speaks again.
    """

    def __init__(self, server) -> None:
        self.server, self.word, self.passed = server, None, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self._speaks = threading.Event()
        self._speaks.set()
        threading.Thread(target=self._listen, daemon=True).start()

    def url(self) -> str:
        """A run of one's own, reached by this line."""
        return self.server.url().replace(f":{self.server.port}/", f":{self.port}/")

    def silence(self) -> None:
        self._speaks.clear()

    def speak(self) -> None:
        self._speaks.set()

    def close(self) -> None:
        self.speak()
        self.listener.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.server.port))
                threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

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
