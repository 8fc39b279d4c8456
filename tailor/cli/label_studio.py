"""tailor label-studio: people answer in Label Studio."""

from __future__ import annotations

import contextlib
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailor.cli.group import CommandGroup
from tailor.cli.run_option import HERE, RunFolder
from tailor.cli.terminal import interruptible, printable, progress_bars
from tailor.cli.trust_option import Trust, settle
from tailor.common.distribution import pip_install
from tailor.errors import InputError

if TYPE_CHECKING:
    from tailor.integrations.label_studio.connect import StudioConnection

label_studio = CommandGroup(help="Label in Label Studio, as a live loop.")


@label_studio.callback()
def group() -> None:
    """Label in Label Studio, as a live loop."""


@label_studio.command()
def connect(
    url: Annotated[str, typer.Option(help="Label Studio's address.")] = "http://localhost:8080",
    token: Annotated[
        str,
        typer.Option(
            envvar="LABEL_STUDIO_API_KEY", help="An access token, better in the environment."
        ),
    ] = "",
    project: Annotated[int, typer.Option(min=0, help="The number of the project.")] = 0,
    run: RunFolder = HERE,
    pool: Annotated[
        str, typer.Option(help="What is to be labelled; without it, the project's own tasks.")
    ] = "",
    batch: Annotated[int, typer.Option(min=1, help="Tasks a round, for a new run.")] = 100,
    budget: Annotated[
        int, typer.Option(min=0, help="Stop after so many labels, for a new run; 0: no limit.")
    ] = 0,
    ahead: Annotated[
        int,
        typer.Option(
            min=-1, help="Push the next batch when no more tasks wait; -1: a quarter of a batch."
        ),
    ] = -1,
    poll: Annotated[
        float, typer.Option(min=0.1, help="Seconds between two looks at the annotations.")
    ] = 5.0,
    listen: Annotated[
        str, typer.Option(help="HOST:PORT for webhooks and the backend, such as 127.0.0.1:9090.")
    ] = "",
    reach: Annotated[
        str, typer.Option(help="The address under which Label Studio reaches --listen.")
    ] = "",
    allow_links: Annotated[
        list[str] | None,
        typer.Option(
            help="A host or network that is not public, whose pictures tasks may link to; more "
            "than once."
        ),
    ] = None,
    backend: Annotated[
        bool, typer.Option("--backend", help="Add it to the project's models.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="One pass: take answers, push what is due, end.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Push each batch as tasks with predictions, take annotations in as they are submitted,
    retrain, push the next.

    Goes on until Ctrl-C, and waits where Label Studio is away. Run it again to go on where it
    stopped.
    """
    from tailor.integrations.label_studio.client import Studio
    from tailor.integrations.label_studio.connect import connected
    from tailor.integrations.label_studio.project_link import FILE
    from tailor.run import config
    from tailor.run.reaches import run_reaches, studio_reaches

    _check_options(token, project, listen, backend)
    if (run / config.FILE).exists():
        reaches = [*run_reaches(config.read(run)), *studio_reaches(run)]
        trust = settle(run, reaches, trust)
    settings: dict[str, dict[str, Any]] = {"selection": {"batch": batch}, "stop": {}}
    if budget:
        settings["stop"]["budget"] = budget
    studio = Studio(url, token, project, allow_links=allow_links or ())

    def command_to_go_on() -> str:
        words = ["tailor label-studio connect", f"--url {url} --project {project} --run {run}"]
        words += [f"--allow-links {host}" for host in allow_links or ()]
        has_begun = (run / config.FILE).exists()
        if not has_begun:
            if pool:
                words.append(f"--pool {pool}")
            words.append(f"--batch {batch}")
            if budget:
                words.append(f"--budget {budget}")
        return " ".join(words)

    if not once:
        # As a service is stopped: politely, like Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        interruptible(command_to_go_on),
        progress_bars() as progress,
        connected(
            studio,
            run,
            pool=Path(pool) if pool else None,
            settings=settings,
            ahead=None if ahead < 0 else ahead,
            patience=None if once else poll,
            trust=trust,
            say=_say,
            progress=progress,
        ) as connection,
    ):
        if once:
            connection.sync.step()
            return
        with contextlib.ExitStack() as stack:
            if listen:
                webhook_url = stack.enter_context(_listening(connection, listen, reach, backend))
                _say(
                    f"Label Studio calls us at {webhook_url}; as a backend: user tailor, password "
                    f"the secret in {run / FILE}."
                )
            connection.sync.run(poll, threading.Event())


def _check_options(token: str, project: int, listen: str, backend: bool) -> None:
    if not token:
        raise InputError("name a token: set LABEL_STUDIO_API_KEY, or give --token")
    if not project:
        raise InputError("name the project: --project 1")
    if backend and not listen:
        raise InputError("--backend needs --listen, such as --listen 127.0.0.1:9090")


def _listening(
    connection: StudioConnection,
    listen: str,
    reach: str,
    backend: bool,
) -> contextlib.AbstractContextManager[str]:
    try:
        from tailor.integrations.label_studio.webhooks import listening
    except ImportError:
        raise InputError(f"--listen needs a web server: {pip_install('label-studio')}") from None
    host, port = _address(listen)
    return listening(
        connection.sync,
        connection.project_link.secret,
        host,
        port,
        reach=reach,
        backend=backend,
        say=_say,
    )


def _address(listen: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT."""
    host, _, port = listen.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise InputError(f"--listen is {listen!r}: give HOST:PORT, such as 127.0.0.1:9090")
    return host.strip("[]") or "127.0.0.1", int(port)


def _say(text: str) -> None:
    typer.echo(printable(text), err=True)
