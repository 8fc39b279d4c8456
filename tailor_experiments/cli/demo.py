"""tailor demo: the main job on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from tailor_experiments.demo import DemoRow, DemoSetting


def demo(
    out: Annotated[Path, typer.Option(help="Where the figures and rows go.")] = Path("demo"),
    seeds: Annotated[int, typer.Option(min=1, help="Trials for each contender.")] = 4,
    classes: Annotated[
        int, typer.Option(min=2, max=10, help="Classes: K-1 digits and all others as one.")
    ] = 4,
    batch: Annotated[int, typer.Option(min=1, max=100, help="Labels a round.")] = 20,
    rounds: Annotated[
        int, typer.Option(min=1, max=12, help="Rounds after the first random batch.")
    ] = 10,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
) -> None:
    """TAILOR against random, each family alone, random meta and ALBL, on scikit-learn's digits made
    imbalanced.
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
    from tailor_experiments.demo import CONTENDERS, DemoSetting, run

    setting = DemoSetting(classes, batch, rounds, seeds)
    if (rounds + 1) * batch > 1797:
        raise InputError(
            f"{rounds + 1} x {batch} labels are more than the pool's 1797: ask for fewer rounds "
            "or labels"
        )
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    console.print(
        f"Digits 0 to {classes - 2} and all others as one class; {rounds} rounds of {batch} "
        f"labels after {batch} "
        f"random ones; {seeds} seeds."
    )
    bars = Progress(
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )
    bar = {c.label: bars.add_task(c.label, total=seeds) for c in CONTENDERS}
    rows: list[DemoRow] = []
    started = time.perf_counter()
    with Live(Group(bars), console=console, refresh_per_second=8, transient=True) as live:
        for done in run(setting, workers, out):
            rows += done
            bars.advance(bar[done[0].contender])
            live.update(Group(bars, summary(rows, setting)))
    console.print(summary(rows, setting))
    write(rows, setting, out)
    typer.echo(f"{len(rows)} trainings in {time.perf_counter() - started:.0f} s. Figure and rows:")
    typer.echo(f"{out / 'curves.png'}\n{out / 'rows.csv'}")
    typer.echo("Every trial is a run of its own; look at one with:")
    typer.echo(
        f"tailor status --run {out / 'runs' / 'tailor-0'}"
    )  # alone, and never broken: it is there to be copied


def summary(rows: list[DemoRow], setting: DemoSetting) -> Table:
    """Mean and standard error over the seeds that have ended, after the last round."""
    import numpy as np
    from rich.table import Table

    from tailor_experiments.demo import CONTENDERS

    table = Table("", "balanced accuracy", "labels in rarest class", "imbalance ratio", "seeds")
    table.title = f"After {(setting.rounds + 1) * setting.batch} labels"
    for contender in CONTENDERS:
        last = [r for r in rows if r.contender == contender.label and r.round == setting.rounds]
        if not last:
            table.add_row(contender.label, "", "", "", "0")
            continue
        cells = []
        for metric, form in (("accuracy", ".3f"), ("rarest", ".1f"), ("imbalance", ".2f")):
            values = np.array([getattr(r, metric) for r in last], float)
            error = (
                f"{values.std(ddof=1) / np.sqrt(len(values)):{form}}" if len(values) > 1 else "–"
            )
            cells.append(f"{values.mean():{form}} ± {error}")
        table.add_row(contender.label, *cells, str(len(last)))
    return table


def write(rows: list[DemoRow], setting: DemoSetting, out: Path) -> None:
    """rows.csv and curves.png."""
    import csv
    from dataclasses import asdict

    import numpy as np

    from tailor_experiments.demo import CONTENDERS
    from tailor_experiments.figures import Curves, panels

    rows = sorted(rows, key=lambda r: (r.contender, r.seed, r.round))
    with (out / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, asdict(rows[0]))
        writer.writeheader()
        writer.writerows(asdict(r) for r in rows)

    def curves(metric: str) -> Curves:
        found = {}
        for contender in CONTENDERS:
            values = np.array(
                [
                    [
                        getattr(r, metric)
                        for r in rows
                        if r.contender == contender.label and r.round == number
                    ]
                    for number in range(setting.rounds + 1)
                ],
                float,
            )
            error = (
                values.std(1, ddof=1) / np.sqrt(values.shape[1])
                if values.shape[1] > 1
                else 0 * values[:, 0]
            )
            found[contender.label] = (
                setting.batch * np.arange(1, setting.rounds + 2),
                values.mean(1),
                error,
            )
        return found

    panels(
        [
            ("balanced accuracy (pool)", curves("accuracy")),
            ("labels in rarest class", curves("rarest")),
            ("imbalance ratio of labels", curves("imbalance")),
        ],
        "labels",
        f"Digits, {setting.classes} classes, {setting.seeds} seeds (bands: standard error)",
        out / "curves.png",
    )
