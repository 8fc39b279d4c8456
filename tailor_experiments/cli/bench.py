"""tailor bench: measurements of speed, and experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.group import CommandGroup
from tailor_experiments.cli.policy import policy
from tailor_experiments.cli.scale import scale
from tailor_experiments.cli.speed import selection, training
from tailor_experiments.cli.text_tables import show_tables
from tailor_experiments.cli.trials import cluster_options, run_trials

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
bench.command()(selection)
bench.command()(training)
bench.command()(scale)
bench.add_typer(policy)


@bench.callback()
def root() -> None:
    """Measure speed and results."""


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

    experiment = read(config).changed(
        None if data is None else str(data),
        device,
        batch=batch,
        rounds=rounds,
        trials=trials,
    )
    run_trials(
        experiment,
        out,
        cache=cache,
        only=only or (),
        workers=workers,
        track=track or (),
        cluster=cluster_options(ray, cpus, gpus),
    )


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

    experiment = paper_experiment(
        name,
        str(data),
        trials=trials,
        device=device,
        weights=weights,
        wide=wide,
        search=search,
        network=network,
    )
    run_trials(
        experiment.changed(batch=batch, rounds=rounds),
        out,
        cache=cache,
        only=only or (),
        workers=workers,
        track=track or (),
        cluster=cluster_options(ray, cpus, gpus),
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
    reach: Annotated[
        str | None,
        typer.Option(help="Contender whose last score the others are to reach; else random."),
    ] = None,
) -> None:
    """Tables, figures (PNG and PDF) and one self-contained HTML page."""
    from tailor.capacity.machine import cores
    from tailor.cli.terminal import progress_bars
    from tailor.errors import UnknownName
    from tailor_experiments.comparison.gather import load
    from tailor_experiments.comparison.report import all_tables, write_report

    experiments = load(*results)
    contenders = [contender for experiment in experiments for contender in experiment.contenders]
    for label in (focus, reach):
        if label is not None and label not in contenders:
            raise UnknownName("contender", label, dict.fromkeys(contenders))
    # Figures take longest: the tables are printed when they are drawn.
    with progress_bars() as step:
        page = write_report(
            experiments,
            out or results[0] / "report",
            target,
            smooth,
            focus,
            reach=reach,
            workers=cores(),
            progress=step,
        )
    show_tables(
        all_tables(
            experiments,
            target,
            focus,
            reach,
        )
    )
    typer.echo(f"Page and figures: {page}")


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
    show_tables(tables)
