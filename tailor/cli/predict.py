"""tailor predict: what a trained model says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailor.cli.run_option import HERE, RunFolder, check_no_run
from tailor.cli.terminal import interruptible, progress_bars
from tailor.cli.trust_option import Trust, open_project, settle

if TYPE_CHECKING:
    import numpy as np

    from tailor.pools.base import Pool
    from tailor.run.project import Project
    from tailor.task import Task

#: settings of a run's pool that hold for another pool too
SHARED_OPTIONS = ("kind", "column", "key", "max_side")


def predict(
    model: Annotated[Path, typer.Argument(help="The folder that `tailor train` wrote.")] = Path(
        "model"
    ),
    out: Annotated[Path, typer.Option("--out", "-o", help="A .csv or .jsonl file.")] = Path(
        "predictions.csv"
    ),
    run: RunFolder = HERE,
    pool: Annotated[str, typer.Option(help="Other examples than the run's own.")] = "",
    trust: Trust = False,
) -> None:
    """Predict for the run's pool, or for another one, with a saved model."""
    import numpy as np

    from tailor.models.files import input_options
    from tailor.run.model_card import check_card
    from tailor.run.model_reaches import saved_model_reaches
    from tailor.run.row_files import check_suffix, write_rows
    from tailor.run.trust import untrusted

    check_no_run(model, "MODEL")
    check_suffix(out)
    project = open_project(run, trust)
    task = project.settings.task
    check_card(model, task)
    # What the run itself may reach, a model of it may too.
    reaches = untrusted(run, saved_model_reaches(model))
    settle(model, reaches, trust)
    examples = _open_pool(project, pool)
    trained = project.model(examples, **input_options(model))
    command = f"tailor predict {model} --run {run} --out {out}"
    if pool:
        command += f" --pool {pool}"
    with interruptible(command), progress_bars() as progress:
        unreadable = trained.prepare(progress)
        trained.load(model)
        readable = []
        for position in range(len(examples)):
            if position not in unreadable:
                readable.append(position)
        probs = trained.predict(np.array(readable, np.int64), progress).probs
    all_ids = examples.ids
    ids = [all_ids[position] for position in readable]
    count = write_rows(out, _rows(task, ids, probs))
    typer.echo(f"{count} predictions in {out}; {len(unreadable)} could not be read")


def _open_pool(project: Project, pool: str) -> Pool:
    from tailor.pools import open_pool

    if not pool:
        return project.pool()
    settings = project.config.section("pool")
    options = {}
    for name in SHARED_OPTIONS:
        if name in settings:
            options[name] = settings[name]
    return open_pool(pool, **options)


def _rows(task: Task, ids: Sequence[str], probs: np.ndarray) -> Iterator[dict[str, Any]]:
    """The predicted classes and the probability of each class, for ids (n,) and probs (n, K)."""
    import numpy as np

    for id, row, is_predicted in zip(ids, probs, task.predicted(probs)):
        names = []
        for k in np.flatnonzero(is_predicted):
            names.append(task.classes[k])
        columns: dict[str, Any] = {"id": id, "prediction": names}
        if task.kind == "multi-class":
            columns["prediction"] = names[0]
        for name, probability in zip(task.classes, row):
            columns[f"p_{name}"] = round(float(probability), 6)
        yield columns
