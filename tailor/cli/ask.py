"""tailor ask: examples to label, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailor.cli.run_option import HERE, RunFolder, run_words
from tailor.cli.terminal import interruptible, progress_bars
from tailor.cli.trust_option import Trust, open_project

if TYPE_CHECKING:
    import numpy as np

    from tailor.run.records import PickRecord
    from tailor.task import Task


def ask(
    out: Annotated[Path, typer.Option("--out", "-o", help="A .csv or .jsonl file.")] = Path(
        "ask.csv"
    ),
    run: RunFolder = HERE,
    n: Annotated[
        int, typer.Option("-n", min=0, help="How many at the most; 0: all of the round.")
    ] = 0,
    trust: Trust = False,
) -> None:
    """Write the next examples to a file with an empty label column; fill it and hand it to `tailor
    tell`.

    What was asked before and is not answered comes first.
    """
    from tailor.run.open_run import Run
    from tailor.run.row_files import check_suffix, write_rows

    check_suffix(out)
    project = open_project(run, trust)
    with (
        interruptible(f"tailor ask --run {run}"),
        progress_bars() as progress,
        Run(project, progress) as opened,
    ):
        asked = opened.ask(n or None)
    if asked.stopped:
        typer.echo(f"Nothing to ask: {asked.stopped}.")
        return
    task = project.settings.task
    write_rows(out, (_row(task, pick_record) for pick_record in asked))
    next_command = f"tailor tell {out}{run_words(run)}"
    typer.echo(f"{len(asked)} examples in {out}. Fill in label, then: {next_command}")


def _row(task: Task, pick_record: PickRecord) -> dict[str, Any]:
    """What is written of one example: label and skip are to be filled in."""
    return {
        "id": pick_record.id,
        "label": "",
        "skip": "",
        "prediction": _predicted_names(task, pick_record.predicted),
        "arm": pick_record.arm,
        "round": pick_record.round,
        "slot": pick_record.slot,
        "chance": round(pick_record.chance, 4),
    }


def _predicted_names(task: Task, probs: np.ndarray | None) -> str | list[str]:
    """probs (K,), or None where there was no model: the classes that the model said."""
    import numpy as np

    names = []
    if probs is not None:
        is_predicted = task.predicted(probs[None])[0]
        for k in np.flatnonzero(is_predicted):
            names.append(task.classes[k])
    if task.kind == "multi-label":
        return names
    return "".join(names)
