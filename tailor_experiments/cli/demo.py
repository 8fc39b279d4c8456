"""tailor demo: the main job on embedded data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from tailor_experiments.demo import DemoRow, DemoSetting
    from tailor_experiments.figures import Curves

#: scikit-learn's digits
POOL_SIZE = 1797


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

    from rich.console import Console

    from tailor_experiments.demo import DemoSetting

    setting = DemoSetting(
        classes,
        batch,
        rounds,
        seeds,
    )
    _check_size(setting)
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    console.print(
        f"{class_sentence(classes)}; {rounds} rounds of {batch} labels after a first {batch}; "
        f"{seeds} seeds."
    )
    started = time.perf_counter()
    rows = _run_with_bars(
        setting,
        workers,
        out,
        console,
    )
    console.print(summary(rows, setting))
    write(rows, setting, out)
    _conclude(
        rows,
        setting,
        time.perf_counter() - started,
        out,
    )


def _conclude(
    rows: list[DemoRow],
    setting: DemoSetting,
    seconds: float,
    out: Path,
) -> None:
    """What came out of it, and what to look at next."""
    from tailor_experiments.demo import verdict

    typer.echo(verdict(rows, setting))
    typer.echo(f"{len(rows)} trainings in {seconds:.0f} s. Figure and rows:")
    typer.echo(f"{out / 'curves.png'}\n{out / 'rows.csv'}")
    typer.echo("Every trial is a run of its own; look at one with:")
    # On a line of its own, and never broken: it is there to be copied.
    typer.echo(f"tailor status --run {out / 'runs' / 'tailor-0'}")


def _check_size(setting: DemoSetting) -> None:
    """The pool must have as many examples as are labelled."""
    from tailor.errors import InputError

    batches = setting.rounds + 1
    if batches * setting.batch > POOL_SIZE:
        raise InputError(
            f"{batches} x {setting.batch} labels are more than the pool's {POOL_SIZE}: ask for "
            "fewer rounds or labels"
        )


def _run_with_bars(
    setting: DemoSetting,
    workers: int,
    out: Path,
    console: Console,
) -> list[DemoRow]:
    """All trials, with a bar for each contender and the table as it fills."""
    from rich.console import Group
    from rich.live import Live

    from tailor_experiments.demo import CONTENDERS, run

    bars = _make_bars(console)
    bar_of = {}
    for contender in CONTENDERS:
        bar_of[contender.label] = bars.add_task(contender.label, total=setting.seeds)
    rows: list[DemoRow] = []
    with Live(
        Group(bars),
        console=console,
        refresh_per_second=8,
        transient=True,
    ) as live:
        for trial_rows in run(setting, workers, out):
            rows += trial_rows
            bars.advance(bar_of[trial_rows[0].contender])
            live.update(Group(bars, summary(rows, setting)))
    return rows


def _make_bars(console: Console) -> Progress:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def class_sentence(classes: int) -> str:
    if classes == 10:
        return "The ten digits"
    return f"Digits 0 to {classes - 2} and all others as one class"


def summary(rows: list[DemoRow], setting: DemoSetting) -> Table:
    """Mean and standard error over the seeds that have ended, after the last round."""
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
        table.add_row(contender.label, *_summary_cells(last_rows))
    return table


def _summary_cells(last_rows: list[DemoRow]) -> list[str]:
    """Of one contender, from the last row of each of its trials."""
    import numpy as np

    if not last_rows:
        return ["", "", "", "0"]
    accuracies = np.array([row.accuracy for row in last_rows])
    rarest_counts = np.array([row.rarest for row in last_rows], float)
    imbalances = np.array([row.imbalance for row in last_rows])
    return [
        _with_error(accuracies, ".3f"),
        _with_error(rarest_counts, ".1f"),
        _with_error(imbalances, ".2f"),
        str(len(last_rows)),
    ]


def _with_error(values: np.ndarray, form: str) -> str:
    """values (n,) -> their mean ± standard error, each number in a form such as ".3f"."""
    mean = values.mean()
    # One value has no spread to tell an error from.
    if len(values) == 1:
        return f"{mean:{form}} ± –"
    (error,) = _errors(values[None])
    return f"{mean:{form}} ± {error:{form}}"


def write(rows: list[DemoRow], setting: DemoSetting, out: Path) -> None:
    """rows.csv and curves.png."""
    from tailor_experiments.figures import panels

    # Trials end in any order.
    rows = sorted(rows, key=lambda row: (row.contender, row.seed, row.round))
    _write_csv(rows, out / "rows.csv")
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


def _write_csv(rows: list[DemoRow], path: Path) -> None:
    import csv
    from dataclasses import asdict

    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, asdict(rows[0]))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def _curves(
    rows: list[DemoRow], setting: DemoSetting, metric: Callable[[DemoRow], float]
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
        curves[contender.label] = (labels, values.mean(1), _errors(values))
    return curves


def _errors(values: np.ndarray) -> np.ndarray:
    """values (rounds, seeds) -> (rounds,) the standard error of each mean; 0 with one seed."""
    import numpy as np

    rounds, seeds = values.shape
    if seeds == 1:
        return np.zeros(rounds)
    return values.std(1, ddof=1) / np.sqrt(seeds)
