"""A PostgreSQL server of one's own, on loopback and with a password, for tests and benchmarks.

with postgres_server() as server:
    store = PostgresStore(server.url(run="photos"))
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

USER = "tailor"


class NotInstalled(Exception):
    """There is no PostgreSQL on this machine."""


def programs() -> Path:
    """The folder of initdb and pg_ctl: the one on the PATH, or Debian's newest."""
    initdb = shutil.which("initdb")
    if initdb:
        return Path(initdb).resolve().parent
    versions = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if not versions:
        raise NotInstalled(
            "PostgreSQL's initdb is not installed (Debian: apt-get install postgresql)"
        )
    return max(versions, key=lambda path: float(path.parent.name))


class Server:
    """A server with a data folder of its own, started and stopped at will. It answers with a
    password only, on loopback only.

    folder   an empty one
    options  for the server, as postgres_server() takes them
    """

    def __init__(self, folder: Path, options: str = "") -> None:
        self.folder = folder
        self.options = options
        self.password = secrets.token_hex(12)
        self._programs = programs()
        secret = folder / "password"
        secret.write_text(self.password)
        # PostgreSQL refuses to run as root: its own user, which its package made, gets the folder
        # then.
        self._user_options: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._user_options = {"user": "postgres", "group": "postgres", "extra_groups": []}
            for path in (folder, secret):
                shutil.chown(path, "postgres", "postgres")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._run(
            "initdb",
            *("-U", USER, "-A", "scram-sha-256", f"--pwfile={secret}"),
            *("-E", "UTF8", "--locale=C", "--no-sync"),
        )

    def url(self, database: str = "postgres", *, run: str | None = None) -> str:
        """A URL with its password; by default of a run that nobody else uses."""
        name = run or f"run-{uuid.uuid4().hex[:12]}"
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{database}?run={name}"

    def execute(
        self,
        statement: str,
        *values: Any,
        database: str = "postgres",
    ) -> list[Any]:
        """Run one statement on a connection of its own -> the rows that it gives."""
        import psycopg

        url_without_run = self.url(database).partition("?")[0]
        connection = psycopg.connect(url_without_run, autocommit=True)
        with contextlib.closing(connection):
            cursor = connection.execute(statement, values)
            if cursor.description:
                return cursor.fetchall()
            return []

    def start(self) -> None:
        options = (
            f"{self.options} -p {self.port} -c listen_addresses=127.0.0.1 -c "
            "unix_socket_directories=''"
        )
        if int((self.folder / "data" / "PG_VERSION").read_text()) >= 14:
            # after a crash: one call instead of a thousand files
            options += " -c recovery_init_sync_method=syncfs"
        self._run(
            "pg_ctl",
            "-o",
            options,
            "-l",
            str(self.folder / "log"),
            "-w",
            "start",
        )

    def stop(self, mode: str = "fast") -> None:
        """Stop the server.

        mode  "fast": as it should be; "immediate": as in a crash
        """
        self._run(
            "pg_ctl",
            "-m",
            mode,
            "-w",
            "stop",
        )

    def running(self) -> bool:
        return self._run("pg_ctl", "status", check=False) == 0

    def _run(
        self,
        program: str,
        *words: str,
        check: bool = True,
    ) -> int:
        command = [str(self._programs / program), "-D", str(self.folder / "data"), *words]
        # Into a file: the server inherits it, and a pipe would stay open as long as it runs.
        with tempfile.TemporaryFile("w+") as output:
            finished = subprocess.run(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                **self._user_options,
            )
            if check and finished.returncode:
                output.seek(0)
                raise RuntimeError(f"{program} failed: {output.read()}")
        return finished.returncode


@contextlib.contextmanager
def postgres_server(options: str = "") -> Iterator[Server]:
    """A server that is started, and in the end stopped and removed.

    options  for the server, such as "-c fsync=off"

    Raises NotInstalled.
    """
    programs()
    with tempfile.TemporaryDirectory(prefix="tailor-postgres-") as folder:
        server = Server(Path(folder), options)
        server.start()
        try:
            yield server
        finally:
            if server.running():
                server.stop("immediate")  # nothing of it is kept
