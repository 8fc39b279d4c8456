"""What commands show at a terminal: progress bars, and how to go on after Ctrl-C."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from tailor.models.base import ProgressCallback


def printable(text: str) -> str:
    """Text from outside without the control characters that a terminal would obey."""
    characters = []
    for character in text:
        is_harmless = character.isprintable() or character == "\n"
        if is_harmless:
            characters.append(character)
        else:
            characters.append("\N{REPLACEMENT CHARACTER}")
    return "".join(characters)


class _CompilingNotice(logging.Handler):
    """One line when the first loop is compiled, so that nobody wonders why nothing else happens for
    seconds.
    """

    was_given = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.was_given:
            self.was_given = True
            print("Compiling (once on this machine)", file=sys.stderr)


def announce_compiling() -> None:
    """At a terminal, here and in the processes that a command starts. See
    tailor/common/compiled.py.
    """
    if sys.stderr.isatty():
        log = logging.getLogger("tailor.common.compiled")
        log.setLevel(logging.INFO)
        log.addHandler(_CompilingNotice())


@contextlib.contextmanager
def progress_bars() -> Iterator[ProgressCallback]:
    """A progress bar with rate and time left for each long step; nothing where there is no
    terminal.
    """
    from tailor.models.base import quiet

    if not sys.stderr.isatty():
        yield quiet
        return
    with _progress_display() as display:
        bars: dict[str, TaskID] = {}  # by the name of the step

        def show_progress(done: int, total: int, step: str) -> None:
            if step not in bars:
                bars[step] = display.add_task(step, total=total)
            display.update(bars[step], completed=done, total=total)
            if done >= total:
                display.refresh()  # however quick it was, it is seen full
                display.remove_task(bars.pop(step))

        yield show_progress


def _progress_display() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class RateColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            if task.speed:
                rate = f"{task.speed:.0f}/s"
            else:
                rate = ""
            return Text(rate)

    return Progress(
        TextColumn("{task.description:<24}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


@contextlib.contextmanager
def interruptible(go_on: str | Callable[[], str]) -> Iterator[None]:
    """On Ctrl-C, say with which command to go on, and end: everything acknowledged is in the store
    already.

    go_on: the command, or what gives it, since it may be another one by then
    """
    try:
        yield
    except KeyboardInterrupt:
        if isinstance(go_on, str):
            command = go_on
        else:
            command = go_on()
        print(f"\nStopped; everything answered is saved. Go on with: {command}", file=sys.stderr)
        raise typer.Exit(130) from None
