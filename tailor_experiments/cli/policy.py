"""`tailor bench policy`: the weights of the learned family."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.group import CommandGroup

policy = CommandGroup(name="policy", help="Train and judge the learned family.")


@policy.callback()
def root() -> None:
    """Train and judge the learned family."""


@policy.command()
def train(
    pools: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Folders of more pools: train.npz and test.npz of benchmarks/embed.py, or Parquet "
            "files of vectors. The digits and made-up pools always count."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of weights and report.")] = Path("policy"),
    states: Annotated[
        int, typer.Option(min=1, help="States of each pool that the network learns from.")
    ] = 30,
    trials: Annotated[
        int, typer.Option(min=0, help="Trials on each pool that is left out; 0: none is.")
    ] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is drawn.")] = 0,
) -> None:
    """Train the learned family's weights, and judge them on each pool by training on the others."""
    from tailor_experiments.cli.text_tables import show_tables
    from tailor_experiments.policy.make import make_policy

    made = make_policy(
        pools or [],
        out,
        states=states,
        trials=trials,
        seed=seed,
        say=typer.echo,
    )
    show_tables(made.tables)
    if made.verdict:
        typer.echo(made.verdict)
    typer.echo(f"Weights: {made.weights} (use: learned(weights={made.weights}))")
