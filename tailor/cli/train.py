"""tailor train: the final model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.common import HERE, Run, bars, check_no_run, polite


def train(
    out: Annotated[Path, typer.Argument(help="A new folder for the model.")] = Path("model"),
    run: Run = HERE,
    force: Annotated[
        bool, typer.Option("--force", help="Write over the model that is in the folder.")
    ] = False,
) -> None:
    """Train on all answers but the hold-out's; save weights as safetensors, with a card of what
    they saw.
    """
    from tailor.run.model_card import check_place, write_card
    from tailor.run.project import Project

    check_no_run(out, "OUT")
    project = Project(run)
    check_place(out, force)
    with polite(f"tailor train {out} --run {run}{' --force' if force else ''}"), bars() as progress:
        session = project.session(progress)
        try:
            estimate = session.final_fit()
            out.mkdir(parents=True, exist_ok=True)
            session.model.save(out)
            write_card(out, session, project.config.section("model"), estimate)
        finally:
            session.store.close()
    typer.echo(
        f"Model and card in {out}" + (f"; accuracy on the hold-out {estimate}" if estimate else "")
    )
