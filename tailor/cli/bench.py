"""tailor bench: measurements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tailor.bench.experiment.config import Experiment
    from tailor.bench.experiment.tables import Table as Texts

Workers = Annotated[int, typer.Option(min=1, help="Trials at once, each a process; on a GPU as many as fit.")]
Track = Annotated[list[str] | None, typer.Option(help="tensorboard, mlflow or wandb; may be given more than once.")]

bench = typer.Typer(name="bench", help="Measure speed and results.", no_args_is_help=True)


@bench.callback()
def root() -> None:
    """Measure speed and results."""


@bench.command()
def selection(
    size: Annotated[str, typer.Option(help="cifar10, kuzushiji, coco, celeba, imagenet, or all (without imagenet).")],
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a size and nothing else.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds measured; the median is given.")] = 3,
) -> None:
    """One round's choosing, predictions given: seconds a stage, draws a second, peak memory."""
    import json as encoder

    from rich.console import Console
    from rich.table import Table

    from tailor.bench.device import check_device
    from tailor.bench.pools import SIZES, find_size
    from tailor.bench.selection import measure

    check_device(device)
    names = [n for n in SIZES if n != "imagenet"] if size == "all" else [size]
    sizes = [find_size(name) for name in names]
    table = Table("size", "arms", "seconds", "check", "plan", "open", "take", "draws/s", "peak MiB", "compile s")
    table.title = "One round of TAILOR"
    for one in sizes:
        row = measure(one, device, repeats)
        if json:
            typer.echo(encoder.dumps(row))
            continue
        stages = [f"{row[f'{stage}_seconds']:.3f}" for stage in ("check", "plan", "open", "take")]
        table.add_row(
            one.name, str(row["arms"]), f"{row['seconds']:.3f}", *stages, f"{row['draws_per_second']:.3g}",
            str(row["peak_mib"]), f"{row['compile_seconds']:.1f}",
        )  # fmt: skip
        table.caption = row["device"]
    if not json:
        Console().print(table)


@bench.command()
def training(
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a row and nothing else.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Short measurements: to see that it runs.")] = False,
) -> None:
    """Images a second, training and predicting: ResNet-18 at 32 and 224 pixels, and the probe."""
    import json as encoder

    from rich.console import Console
    from rich.table import Table

    from tailor.bench.device import check_device
    from tailor.bench.training import measure_training

    check_device(device)
    rows = measure_training(device, quick)
    if json:
        for row in rows:
            typer.echo(encoder.dumps(row))
        return
    table = Table("model", "input", "batch", "loop", "training /s", "predicting /s", title="Examples a second")
    for row in rows:
        width = f"{row['pixels']} px" if row.get("pixels") else f"{row.get('features')} features"
        speeds = (f"{row['train_per_second']:,.0f}", f"{row['predict_per_second']:,.0f}")
        table.add_row(row["model"], width, str(row["batch"]), str(row.get("loop", "")), *speeds)
        table.caption = str(row["device"])
    Console().print(table)


@bench.command()
def run(
    config: Annotated[Path, typer.Argument(help="The TOML of an experiment.")],
    out: Annotated[Path | None, typer.Option(help="Results folder; by default results/NAME.")] = None,
    workers: Workers = 2,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda, instead of the file's.")] = None,
    track: Track = None,
) -> None:
    """Run an experiment: every contender, every trial. Run it again to go on where it stopped."""
    from tailor.bench.experiment.config import read
    from tailor.bench.experiment.run import with_device

    experiment = with_device(read(config), device)
    _run(experiment, out, workers, track, f"tailor bench run {config}{f' --out {out}' if out else ''}")


@bench.command()
def paper(
    name: Annotated[str, typer.Argument(help="celeba, coco, voc, cars, imagenet, kuzushiji49, caltech256, cifar10-2, "
                                             "cifar100-10 or svhn-2.")],
    data: Annotated[Path, typer.Option(help="The folder of the dataset's files.")],
    trials: Annotated[int, typer.Option(min=1, help="Trials for each contender.")] = 4,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    weights: Annotated[str, typer.Option(help="paper: as it starts there; scratch; imagenet; or a file.")] = "paper",
    wide: Annotated[bool, typer.Option("--wide", help="Also TAILOR with the ablation's candidates.")] = False,
    search: Annotated[bool, typer.Option("--search", help="The search experiment instead.")] = False,
    out: Annotated[Path | None, typer.Option(help="Results folder; by default results/NAME.")] = None,
    workers: Workers = 2,
    track: Track = None,
) -> None:  # fmt: skip
    """One of the paper's ten settings, exactly as it has it. Run it again to go on where it stopped."""
    from tailor.bench.experiment.paper import paper_experiment

    found = paper_experiment(
        name, str(data), trials=trials, device=device, weights=weights, wide=wide, search=search
    )
    more = "".join([f" --trials {trials}" if trials != 4 else "", f" --out {out}" if out else ""])
    _run(found, out, workers, track, f"tailor bench paper {name} --data {data}{more}")


@bench.command()
def report(
    results: Annotated[list[Path], typer.Argument(help="Results folders.")],
    out: Annotated[Path | None, typer.Option(help="Where page and figures go; by default RESULTS/report.")] = None,
    target: Annotated[float | None, typer.Option(help="Score to reach; by default what random reaches.")] = None,
    smooth: Annotated[int, typer.Option(min=1, help="Rounds that curves are smoothed over; 1: not.")] = 3,
) -> None:
    """Tables, figures (PNG and PDF) and one self-contained HTML page."""
    from tailor.bench.experiment.report import all_tables, write_report
    from tailor.bench.experiment.results import load

    found = load(*results)
    written = write_report(found, out or results[0] / "report", target, smooth)
    _show(all_tables(found, target))
    typer.echo(f"Page and figures: {written}")


@bench.command()
def compare(
    a: Annotated[Path, typer.Argument(help="A results folder.")],
    b: Annotated[Path, typer.Argument(help="Another one.")],
) -> None:
    """What B has over A: paired differences with confidence intervals, contender by contender."""
    from tailor.bench.experiment.results import load
    from tailor.bench.experiment.tables import compare as differences
    from tailor.errors import InputError

    tables = differences(load(a), load(b))
    if not tables:
        raise InputError(f"{a} and {b} have no experiment, contender and seed in common: nothing can be paired")
    _show(tables)


def _run(experiment: Experiment, out: Path | None, workers: int, track: list[str] | None, again: str) -> None:
    import contextlib

    from tailor.bench.experiment.run import prepare, rows_done, run
    from tailor.bench.experiment.trackers import make_tracker
    from tailor.cli.common import bars, polite

    folder = out or Path("results") / experiment.name
    with polite(again), contextlib.ExitStack() as stack:
        trackers = [stack.enter_context(contextlib.closing(make_tracker(name, folder))) for name in track or []]
        with bars() as step:
            full = prepare(experiment, folder, step)
        done = rows_done(full, folder)
        total = full.trials * (full.rounds + 1)
        with bars() as step, contextlib.closing(run(full, folder, workers)) as rows:
            whole = total * len(done)
            step(sum(done.values()), whole, "all trials")
            for row in rows:
                done[row["contender"]] += 1
                step(sum(done.values()), whole, "all trials")
                step(done[row["contender"]], total, row["contender"])
                for tracker in trackers:
                    tracker.row(row)
    typer.echo(f"{sum(done.values())} rows in {folder}. Look at them with: tailor bench report {folder}")


def _show(tables: list[Texts]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console = Console(width=200)  # into a file: cells on one line
    for one in tables:
        table = Table(title=Text(one.title), caption=Text(one.note))
        for column in one.columns:
            table.add_column(Text(column), overflow="fold")
        for row in one.rows:
            table.add_row(*map(Text, row))
        console.print(table)
