"""`tailor label` for benchmarks/soak.py: started again and again, with a clock that can be stepped.

A process imports the program once and forks for every life of the server, so that a life begins
within a second. What is forked runs the command with all that belongs to it: its port, its store,
its threads; it can be killed without a trace in the process that forked it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

#: what every life needs, imported once
MODULES = (
    *("numpy", "scipy.stats", "sklearn.linear_model", "torch"),
    *("tailor.annotation", "tailor.cli.label", "tailor.models.probe", "tailor.run.project"),
    *("tailor.storage.sqlite", "tailor.web.app", "tailor.web.serve"),
)


class LabelServer:
    """One server on one port, alive or not.

    run     the run's folder
    folder  for the log and the clock, on a disk that never is full
    words   further ones for `tailor label`
    """

    def __init__(self, run: Path, folder: Path, *words: str) -> None:
        self.log = folder / "server.log"
        self._clock = folder / "clock"
        self._clock.write_text("0")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, str(Path(__file__)), str(self.log), str(self._clock)]
        label = ["label", str(run), "--no-open", "--port", str(self.port), *words]
        self._forker = subprocess.Popen(
            [*command, *label],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid: int | None = None
        self.lives = 0

    def start(self) -> None:
        self.pid = int(self._tell("start"))
        self.lives += 1

    def kill(self) -> None:
        """As the power goes: SIGKILL. Returns when the process is gone."""
        self._tell("kill")
        self.pid = None

    def is_alive(self) -> bool:
        return self._tell("alive") == "yes"

    def step_clock(self, seconds: float) -> None:
        """The time of day is so much later from now on, or earlier."""
        other = self._clock.with_suffix(".new")
        other.write_text(str(float(self._clock.read_text()) + seconds))
        os.replace(other, self._clock)

    def answers(self) -> bool:
        """Whether someone listens on the port."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5):
            return True
        return False

    def close(self) -> None:
        """End it as by Ctrl-C, and the process that forks."""
        self._tell("stop")
        self.pid = None
        assert self._forker.stdin is not None
        self._forker.stdin.close()
        self._forker.wait(60)

    def _tell(self, word: str) -> str:
        assert self._forker.stdin is not None
        assert self._forker.stdout is not None
        self._forker.stdin.write(word + "\n")
        self._forker.stdin.flush()
        reply = self._forker.stdout.readline()
        if not reply:
            raise RuntimeError(f"the process that starts servers has ended; see {self.log}")
        return reply.strip()


# ---------------------------------------------------------------------- the process that forks


def fork_at_command(log: Path, clock: Path, words: Sequence[str], commands: IO[str]) -> None:
    """Obey one word a line: start, kill, alive, stop. Where they end, the server is killed."""
    for module in MODULES:
        importlib.import_module(module)
    pid = 0
    for line in commands:
        word = line.strip()
        if word == "start":
            pid = os.fork()
            if pid == 0:
                _live(log, clock, words)
            print(pid, flush=True)
            continue
        if word == "alive":
            pid = _left(pid, os.WNOHANG)
            print("yes" if pid else "no", flush=True)
            continue
        if pid:
            os.kill(pid, signal.SIGKILL if word == "kill" else signal.SIGINT)
        pid = _left(pid, 0)
        print("gone", flush=True)
    if pid:
        os.kill(pid, signal.SIGKILL)


def _left(pid: int, options: int) -> int:
    """The process, or 0 where it has ended."""
    if not pid:
        return 0
    ended, _ = os.waitpid(pid, options)
    return 0 if ended else pid


def _live(log: Path, clock: Path, words: Sequence[str]) -> None:
    """In the forked process: the command, until it is killed or ends."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    from tailor.cli import main

    sys.argv = ["tailor", *words]
    with contextlib.suppress(SystemExit):
        main()
    os._exit(0)


def install_clock(clock: Path) -> None:
    """The time of day as the file says: so many seconds from the machine's."""
    machine_time = time.time

    def stepped_time() -> float:
        return machine_time() + float(clock.read_text())

    time.time = stepped_time


def main() -> None:
    log, clock, *words = sys.argv[1:]
    # Before anything is imported: functions take time.time as a default.
    install_clock(Path(clock))
    fork_at_command(Path(log), Path(clock), words, sys.stdin)


if __name__ == "__main__":
    main()
