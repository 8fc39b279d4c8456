"""tailor demo: the main job on embedded data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np
    from rich.table import Table

    from tailor_experiments.demo import DemoRow, DemoSetting
    from tailor_experiments.figures import Curves


def demo(
    out: Annotated[Path, typer.Option(help="Where the figures and rows go.")] = Path("demo"),
    seeds: Annotated[int, typer.Option(min=1, help="Trials for each contender.")] = 4,
    classes: Annotated[
        int, typer.Option(min=2, max=10, help="Classes: K-1 digits and all others as one.")
    ] = 10,
    batch: Annotated[int, typer.Option(min=1, max=100, help="Labels a round.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, max=12, help="Rounds after the first batch.")] = 12,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
) -> None:
    """TAILOR as a new run has it, against the paper's form, random, each family alone, random meta
    and ALBL, on scikit-learn's digits.
    """
    import time

    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from tailor.errors import InputError
    from tailor_experiments.demo import CONTENDERS, DemoSetting, run, verdict

    setting = DemoSetting(classes, batch, rounds, seeds)
    if (rounds + 1) * batch > 1797:
        raise InputError(
            f"{rounds + 1} x {batch} labels are more than the pool's 1797: ask for fewer rounds "
            "or labels"
        )
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    console.print(
        f"{class_sentence(classes)}; {rounds} rounds of {batch} labels after a first {batch}; "
        f"{seeds} seeds."
    )
    bars = Progress(
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )
    bar = {contender.label: bars.add_task(contender.label, total=seeds) for contender in CONTENDERS}
    rows: list[DemoRow] = []
    started = time.perf_counter()
    with Live(
        Group(bars),
        console=console,
        refresh_per_second=8,
        transient=True,
    ) as live:
        for trial_rows in run(setting, workers, out):
            rows += trial_rows
            bars.advance(bar[trial_rows[0].contender])
            live.update(Group(bars, summary(rows, setting)))
    console.print(summary(rows, setting))
    write(rows, setting, out)
    typer.echo(verdict(rows, setting))
    typer.echo(f"{len(rows)} trainings in {time.perf_counter() - started:.0f} s. Figure and rows:")
    typer.echo(f"{out / 'curves.png'}\n{out / 'rows.csv'}")
    typer.echo("Every trial is a run of its own; look at one with:")
    # On a line of its own, and never broken: it is there to be copied.
    typer.echo(f"tailor status --run {out / 'runs' / 'tailor-0'}")


def class_sentence(classes: int) -> str:
    if classes == 10:
        return "The ten digits"
    return f"Digits 0 to {classes - 2} and all others as one class"


def summary(rows: list[DemoRow], setting: DemoSetting) -> Table:
    """Mean and standard error over the seeds that have ended, after the last round."""
    import numpy as np
    from rich.table import Table

    from tailor_experiments.demo import CONTENDERS

    table = Table(
        "",
        "balanced accuracy",
        "labels in rarest class",
        "imbalance ratio",
        "seeds",
    )
    table.title = f"After {(setting.rounds + 1) * setting.batch} labels"
    at_the_end = [row for row in rows if row.round == setting.rounds]
    for contender in CONTENDERS:
        last_rows = [row for row in at_the_end if row.contender == contender.label]
        if not last_rows:
            table.add_row(contender.label, "", "", "", "0")
            continue
        accuracies = np.array([row.accuracy for row in last_rows])
        rarest_counts = np.array([row.rarest for row in last_rows], float)
        imbalances = np.array([row.imbalance for row in last_rows])
        table.add_row(
            contender.label,
            _with_error(accuracies, ".3f"),
            _with_error(rarest_counts, ".1f"),
            _with_error(imbalances, ".2f"),
            str(len(last_rows)),
        )
    return table


def _with_error(values: np.ndarray, form: str) -> str:
    """values (n,) -> their mean ± standard error, each number in a form such as ".3f"."""
    error = "–"
    if len(values) > 1:
        error = f"{values.std(ddof=1) / len(values) ** 0.5:{form}}"
    return f"{values.mean():{form}} ± {error}"


def write(rows: list[DemoRow], setting: DemoSetting, out: Path) -> None:
    """rows.csv and curves.png."""
    import csv
    from dataclasses import asdict

    from tailor_experiments.figures import panels

    rows = sorted(rows, key=lambda row: (row.contender, row.seed, row.round))
    with (out / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, asdict(rows[0]))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    panels(
        [
            ("balanced accuracy (pool)", _curves(rows, setting, lambda row: row.accuracy)),
            ("labels in rarest class", _curves(rows, setting, lambda row: row.rarest)),
            ("imbalance ratio of labels", _curves(rows, setting, lambda row: row.imbalance)),
        ],
        "labels",
        f"Digits, {setting.classes} classes, {setting.seeds} seeds (bands: standard error)",
        out / "curves.png",
    )


def _curves(
    rows: list[DemoRow],
    setting: DemoSetting,
    metric: Callable[[DemoRow], float],
) -> Curves:
    """contender -> labels, mean and standard error over seeds of a metric, each (rounds + 1,)."""
    import numpy as np

    from tailor_experiments.demo import CONTENDERS

    labels = setting.batch * np.arange(1, setting.rounds + 2)
    curves = {}
    for contender in CONTENDERS:
        by_round: list[list[float]] = [[] for _ in labels]
        for row in rows:
            if row.contender == contender.label:
                by_round[row.round].append(metric(row))
        values = np.array(by_round, float)
        seeds = values.shape[1]
        error = np.zeros(len(labels))
        if seeds > 1:
            error = values.std(1, ddof=1) / np.sqrt(seeds)
        curves[contender.label] = (labels, values.mean(1), error)
    return curves
