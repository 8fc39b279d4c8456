"""tailor bench: measurements."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailor.cli.group import CommandGroup
from tailor_experiments.cli.scale import scale

if TYPE_CHECKING:
    from tailor_experiments.comparison.experiment import Experiment
    from tailor_experiments.comparison.table import Table as Texts

Workers = Annotated[
    int, typer.Option(min=1, help="Trials at once, each a process; on a GPU as many as fit.")
]
Out = Annotated[Path | None, typer.Option(help="Results folder; by default results/NAME.")]
Batch = Annotated[
    int | None, typer.Option(min=1, help="Labels a round, instead of the experiment's.")
]
Rounds = Annotated[int | None, typer.Option(min=1, help="Rounds, instead of the experiment's.")]
Only = Annotated[
    list[str] | None,
    typer.Option(help="Only the contender of this label; may be given more than once."),
]
Cache = Annotated[
    Path | None, typer.Option(help="Where features are kept; by default RESULTS/cache.")
]
Track = Annotated[
    list[str] | None,
    typer.Option(help="tensorboard, mlflow or wandb; may be given more than once."),
]
Ray = Annotated[
    str | None, typer.Option(help="A Ray cluster's address, or auto: trials are its tasks.")
]
Cpus = Annotated[
    int | None, typer.Option(min=1, help="With --ray: cores of a trial; by default 1.")
]
Gpus = Annotated[
    float | None,
    typer.Option(min=0, help="With --ray: GPUs of a trial, such as 0.25; by default none."),
]

bench = CommandGroup(name="bench", help="Measure speed and results.")
bench.command()(scale)


@bench.callback()
def root() -> None:
    """Measure speed and results."""


@bench.command()
def selection(
    size: Annotated[
        str,
        typer.Option(help="cifar10, kuzushiji, coco, celeba, imagenet, or all (without imagenet)."),
    ],
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a size and nothing else.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds measured; the median is given.")] = 3,
) -> None:
    """One round's choosing, predictions given: seconds a stage, draws a second, peak memory."""
    import json as encoder

    from rich.console import Console
    from rich.table import Table

    from tailor.capacity.device import check_device
    from tailor.capacity.synthetic_pool import SIZES, find_size
    from tailor_experiments.speed.selection import measure

    check_device(device)
    names = [n for n in SIZES if n != "imagenet"] if size == "all" else [size]
    sizes = [find_size(name) for name in names]
    table = Table(
        "size",
        "arms",
        "seconds",
        "check",
        "plan",
        "open",
        "take",
        "draws/s",
        "peak MiB",
        "compile s",
    )
    table.title = "One round of TAILOR"
    for one in sizes:
        row = measure(one, device, repeats)
        if json:
            typer.echo(encoder.dumps(row))
            continue
        stages = [f"{row[f'{stage}_seconds']:.3f}" for stage in ("check", "plan", "open", "take")]
        table.add_row(
            one.name,
            str(row["arms"]),
            f"{row['seconds']:.3f}",
            *stages,
            f"{row['draws_per_second']:.3g}",
            str(row["peak_mib"]),
            f"{row['compile_seconds']:.1f}",
        )
        table.caption = row["device"]
    if not json:
        Console().print(table)


@bench.command()
def training(
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a row and nothing else.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Short measurements: to see that it runs.")
    ] = False,
) -> None:
    """Images a second, training and predicting: ResNet-18, EfficientNet-Lite0 and the probe."""
    import json as encoder

    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    from tailor.capacity.device import check_device
    from tailor_experiments.speed.training import measure_training

    check_device(device)
    rows = measure_training(device, quick)
    if json:
        for row in rows:
            typer.echo(encoder.dumps(row))
        return
    table = Table(
        "model", "input", "batch", "loop", "training /s", "predicting /s", title="Examples a second"
    )
    console = Console()
    with Live(table, console=console, transient=True):
        for row in rows:
            width = (
                f"{row['pixels']} px" if row.get("pixels") else f"{row.get('features')} features"
            )
            speeds = (f"{row['train_per_second']:,.0f}", f"{row['predict_per_second']:,.0f}")
            table.add_row(row["model"], width, str(row["batch"]), str(row.get("loop", "")), *speeds)
            table.caption = str(row["device"])
    console.print(table)


@bench.command()
def run(
    config: Annotated[Path, typer.Argument(help="The TOML of an experiment.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="The data's folder or file (of a pool and a test set: the folder of "
            "both), instead of the TOML's."
        ),
    ] = None,
    batch: Batch = None,
    rounds: Rounds = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials for each contender, instead of the file's.")
    ] = None,
    only: Only = None,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu or cuda, instead of the file's.")
    ] = None,
    out: Out = None,
    cache: Cache = None,
    workers: Workers = 2,
    track: Track = None,
    ray: Ray = None,
    cpus: Cpus = None,
    gpus: Gpus = None,
) -> None:
    """Run an experiment: every contender, every trial. Run it again to go on where it stopped."""
    from tailor_experiments.comparison.config import read

    path = None if data is None else str(data)
    found = read(config).changed(path, device, batch=batch, rounds=rounds, trials=trials)
    _run(found, out, cache, only, workers, track, _cluster(ray, cpus, gpus))


@bench.command()
def paper(
    name: Annotated[
        str,
        typer.Argument(
            help="celeba, coco, voc, cars, imagenet, kuzushiji49, caltech256, cifar10-2, "
            "cifar100-10 or svhn-2."
        ),
    ],
    data: Annotated[Path, typer.Option(help="The folder of the dataset's files.")],
    batch: Batch = None,
    rounds: Rounds = None,
    trials: Annotated[int, typer.Option(min=1, help="Trials for each contender.")] = 4,
    only: Only = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    network: Annotated[
        str, typer.Option(help="resnet18, efficientnet-lite0 or small-cnn.")
    ] = "resnet18",
    weights: Annotated[
        str, typer.Option(help="paper: as it starts there; scratch; imagenet; or a file.")
    ] = "paper",
    wide: Annotated[
        bool, typer.Option("--wide", help="Also TAILOR with the ablation's candidates.")
    ] = False,
    search: Annotated[
        bool, typer.Option("--search", help="The search experiment instead.")
    ] = False,
    out: Out = None,
    cache: Cache = None,
    workers: Workers = 2,
    track: Track = None,
    ray: Ray = None,
    cpus: Cpus = None,
    gpus: Gpus = None,
) -> None:
    """One of the paper's ten settings, as it has it but for what is asked for. Run it again to go
    on.
    """
    from tailor_experiments.comparison.paper import paper_experiment

    found = paper_experiment(
        name,
        str(data),
        trials=trials,
        device=device,
        weights=weights,
        wide=wide,
        search=search,
        network=network,
    )
    _run(
        found.changed(batch=batch, rounds=rounds),
        out,
        cache,
        only,
        workers,
        track,
        _cluster(ray, cpus, gpus),
    )


@bench.command()
def report(
    results: Annotated[list[Path], typer.Argument(help="Results folders.")],
    out: Annotated[
        Path | None, typer.Option(help="Where page and figures go; by default RESULTS/report.")
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="Score to reach; by default what random reaches.")
    ] = None,
    smooth: Annotated[
        int, typer.Option(min=1, help="Rounds that curves are smoothed over; 1: not.")
    ] = 3,
    focus: Annotated[
        str | None, typer.Option(help="Contender that is compared with all others; else TAILOR.")
    ] = None,
) -> None:
    """Tables, figures (PNG and PDF) and one self-contained HTML page."""
    from tailor.capacity.machine import cores
    from tailor.cli.common import bars
    from tailor.errors import UnknownName
    from tailor_experiments.comparison.gather import load
    from tailor_experiments.comparison.report import all_tables, write_report

    found = load(*results)
    known = {contender: None for one in found for contender in one.contenders}
    if focus is not None and focus not in known:
        raise UnknownName("contender", focus, known)
    with bars() as step:
        written = write_report(
            found,
            out or results[0] / "report",
            target,
            smooth,
            focus,
            workers=cores(),
            progress=step,
        )
    _show(all_tables(found, target, focus))
    typer.echo(f"Page and figures: {written}")


@bench.command()
def compare(
    a: Annotated[Path, typer.Argument(help="A results folder.")],
    b: Annotated[Path, typer.Argument(help="Another one.")],
) -> None:
    """What B has over A: paired differences with confidence intervals, contender by contender."""
    from tailor.errors import InputError
    from tailor_experiments.comparison.compare import compare as differences
    from tailor_experiments.comparison.gather import load

    tables = differences(load(a), load(b))
    if not tables:
        raise InputError(
            f"{a} and {b} have no experiment, contender and seed in common: nothing can be paired"
        )
    _show(tables)


def _run(
    experiment: Experiment,
    out: Path | None,
    cache: Path | None,
    only: list[str] | None,
    workers: int,
    track: list[str] | None,
    cluster: dict[str, Any] | None,
) -> None:
    """cluster: what RayEngine is made with; None: the trials run here."""
    import contextlib
    import shlex

    from tailor.cli.common import bars, polite
    from tailor_experiments.comparison.run import prepare, rows_done, run
    from tailor_experiments.comparison.trackers import make_tracker

    folder = out or Path("results") / experiment.name
    with polite(f"tailor {shlex.join(sys.argv[1:])}"), contextlib.ExitStack() as stack:
        made = [
            make_tracker(name, folder, lambda text: typer.echo(text, err=True))
            for name in track or []
        ]
        trackers = [stack.enter_context(contextlib.closing(tracker)) for tracker in made]
        engine = None
        if cluster is not None:  # before anything that takes long
            from tailor.compute.ray_engine import RayEngine

            engine = stack.enter_context(RayEngine(**cluster))
        with bars() as step:
            full = prepare(experiment, folder, step, only=only or (), cache=cache)
        done = rows_done(full, folder)
        total = full.trials * (full.rounds + 1)
        if engine is None:
            started = run(full, folder, workers, cache=cache)
        else:
            from tailor_experiments.comparison import ray_runner

            started = ray_runner.run(engine, full, folder, cache=cache)
        with bars() as step, contextlib.closing(started) as rows:
            whole = total * len(done)
            clock = _Clock(sum(done.values()))
            step(sum(done.values()), whole, "all trials")
            for row in rows:
                done[row["contender"]] += 1
                step(sum(done.values()), whole, "all trials")
                clock.tell(sum(done.values()), whole)
                step(done[row["contender"]], total, row["contender"])
                for tracker in trackers:
                    tracker.row(row)
    typer.echo(
        f"{sum(done.values())} rows in {folder}. Look at them with: tailor bench report {folder}"
    )


def _cluster(ray: str | None, cpus: int | None, gpus: float | None) -> dict[str, Any] | None:
    """What RayEngine is made with; None without a cluster."""
    from tailor.errors import InputError

    if ray is None and (cpus, gpus) != (None, None):
        raise InputError(
            "--cpus and --gpus are what a trial gets on a cluster: give the cluster's address "
            "with --ray"
        )
    return None if ray is None else {"address": ray, "cpus": cpus or 1, "gpus": gpus or 0}


class _Clock:
    """Where there is no terminal for bars: a line now and then that says how far it is, for a
    log.
    """

    def __init__(self, before: int, pace: float = 60.0) -> None:
        self.before = before
        self.pace = pace
        self.begun = self.told = time.monotonic()

    def tell(self, done: int, total: int) -> None:
        now = time.monotonic()
        if sys.stderr.isatty() or now - self.told < self.pace:
            return
        self.told = now
        left = (now - self.begun) / (done - self.before) * (total - done)
        typer.echo(f"{done} of {total} rows, about {left / 60:.0f} min left", err=True)


def _show(tables: list[Texts]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console = Console(width=200)  # into a file: cells on one line
    for one in tables:
        for number, part in enumerate(_abreast(one, console.width)):
            table = Table(title=None if number else Text(one.title))
            for at in part:
                table.add_column(Text(one.columns[at]), overflow="fold")
            for row in one.rows:
                table.add_row(*(Text(row[at]) for at in part))
            console.print(table)
        console.print(Text(one.note, style="dim italic"))


def _abreast(table: Texts, width: int) -> list[list[int]]:
    """The columns in groups that fit beside each other, the first one in each: a number is never
    broken.
    """
    cells = [
        [*head.split(), *(row[at] for row in table.rows)] for at, head in enumerate(table.columns)
    ]
    needs = [
        max(map(len, column), default=0) + 3 for column in cells
    ]  # a space on each side, and a line
    groups = [[0]]
    for at in range(1, len(needs)):
        if len(groups[-1]) > 1 and 1 + sum(needs[one] for one in groups[-1]) + needs[at] > width:
            groups.append([0])
        groups[-1].append(at)
    return groups
