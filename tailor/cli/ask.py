"""tailor ask: examples to label, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.common import HERE, Run, bars, polite


def ask(
    out: Annotated[Path, typer.Option("--out", "-o", help="A .csv or .jsonl file.")] = Path(
        "ask.csv"
    ),
    run: Run = HERE,
    n: Annotated[
        int, typer.Option("-n", min=0, help="How many at the most; 0: all of the round.")
    ] = 0,
) -> None:
    """Write the next examples to a file with an empty label column; fill it and hand it to `tailor
    tell`.

    What was asked before and is not answered comes first.
    """
    import numpy as np

    from tailor.run.open_run import Run as OpenRun
    from tailor.run.project import Project
    from tailor.run.row_files import check_suffix, write_rows

    check_suffix(out)
    project = Project(run)
    with (
        polite(f"tailor ask --run {run}"),
        bars() as progress,
        OpenRun(project, progress) as opened,
    ):
        asked = opened.ask(n or None)
    if asked.stopped:
        typer.echo(f"Nothing to ask: {asked.stopped}.")
        return
    task = project.settings.task

    def said(probs: np.ndarray | None) -> str | list[str]:
        names = (
            []
            if probs is None
            else [task.classes[k] for k in np.flatnonzero(task.predicted(probs[None])[0])]
        )
        return names if task.kind == "multi-label" else "".join(names)

    write_rows(
        out,
        (
            {
                "id": s.id,
                "label": "",
                "skip": "",
                "prediction": said(s.predicted),
                "arm": s.arm,
                "round": s.round,
                "slot": s.slot,
                "chance": round(s.chance, 4),
            }
            for s in asked
        ),
    )
    where = "" if run == HERE else f" --run {run}"
    typer.echo(f"{len(asked)} examples in {out}. Fill in label, then: tailor tell {out}{where}")
