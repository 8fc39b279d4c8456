"""What the commands share: where the run is, progress bars, and stopping politely."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tailor.models.base import ProgressCallback


def runs_here(incomplete: str = "") -> list[str]:
    """The folders below this one that hold a run, of those that begin so."""
    from tailor.run.config import runs_in

    return [name for name in runs_in(HERE) if name.startswith(incomplete)]


HERE = Path(".")
Run = Annotated[
    Path, typer.Option("--run", "-r", help="The folder of the run.", autocompletion=runs_here)
]


def check_no_run(given: Path, argument: str) -> None:
    """A run's folder where another file or folder is expected."""
    from tailor.errors import InputError
    from tailor.run.config import FILE

    if (given / FILE).is_file():
        raise InputError(
            f"{given} is the folder of a run, given as {argument}: name it with --run {given}"
        )


def printable(text: str) -> str:
    """Text from outside without the control characters that a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


class _Compiling(logging.Handler):
    """One line when the first loop is compiled, so that nobody wonders why nothing else happens for
    seconds.
    """

    told = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.told:
            self.told = True
            print("Compiling (once on this machine)", file=sys.stderr)


def tell_of_compiling() -> None:
    """At a terminal, here and in the processes that a command starts. See
    tailor/common/compiled.py.
    """
    if sys.stderr.isatty():
        log = logging.getLogger("tailor.common.compiled")
        log.setLevel(logging.INFO)
        log.addHandler(_Compiling())


@contextlib.contextmanager
def bars() -> Iterator[ProgressCallback]:
    """A progress bar with rate and time left for each long step; nothing where there is no
    terminal.
    """
    from tailor.models.base import quiet

    if not sys.stderr.isatty():
        yield quiet
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:.0f}/s" if task.speed else "")

    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), Rate())
    with Progress(
        *columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as progress:
        tasks: dict[str, TaskID] = {}

        def step(done: int, total: int, what: str) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)
            if done >= total:
                progress.refresh()  # however quick it was, it is seen full
                progress.remove_task(tasks.pop(what))

        yield step


@contextlib.contextmanager
def polite(go_on: str | Callable[[], str]) -> Iterator[None]:
    """Ctrl-C: everything acknowledged is in the store already; say how to go on, as it is by
    then.
    """
    try:
        yield
    except KeyboardInterrupt:
        command = go_on if isinstance(go_on, str) else go_on()
        print(f"\nStopped; everything answered is saved. Go on with: {command}", file=sys.stderr)
        raise typer.Exit(130) from None
