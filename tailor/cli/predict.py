"""tailor predict: what a trained model says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.common import HERE, Run, bars, check_no_run, polite


def predict(
    model: Annotated[Path, typer.Argument(help="The folder that `tailor train` wrote.")] = Path(
        "model"
    ),
    out: Annotated[Path, typer.Option("--out", "-o", help="A .csv or .jsonl file.")] = Path(
        "predictions.csv"
    ),
    run: Run = HERE,
    pool: Annotated[str, typer.Option(help="Other examples than the run's own.")] = "",
) -> None:
    """Predict for the run's pool, or for another one, with a saved model."""
    import numpy as np

    from tailor.models.files import input_options
    from tailor.pools import open_pool
    from tailor.run.model_card import check_card
    from tailor.run.project import Project
    from tailor.run.row_files import check_suffix, write_rows

    check_no_run(model, "MODEL")
    check_suffix(out)
    project = Project(run)
    check_card(model, project.settings.task)
    how = {
        k: v
        for k, v in project.config.section("pool").items()
        if k in ("kind", "column", "key", "max_side")
    }
    again = f"tailor predict {model} --run {run} --out {out}" + (f" --pool {pool}" if pool else "")
    opened = open_pool(pool, **how) if pool else project.pool()
    made = project.model(opened, **input_options(model))
    with polite(again), bars() as progress:
        unreadable = made.prepare(progress)
        made.load(model)
        where = np.array([p for p in range(len(opened)) if p not in unreadable], np.int64)
        probs = made.predict(where, progress).probs
    task = project.settings.task
    ids = opened.ids
    own = task.predicted(probs)

    def rows():  # type: ignore[no-untyped-def]
        for row, position in enumerate(where.tolist()):
            names = [task.classes[k] for k in np.flatnonzero(own[row])]
            single = names[0] if task.kind == "multi-class" else names
            yield {"id": ids[position], "prediction": single} | {
                f"p_{name}": round(float(p), 6) for name, p in zip(task.classes, probs[row])
            }

    count = write_rows(out, rows())
    typer.echo(f"{count} predictions in {out}; {len(unreadable)} could not be read")
