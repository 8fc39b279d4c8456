"""tailor run: simulate with known labels."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tailor.cli.common import HERE, Run, bars, polite


def run(
    run: Run = HERE,
    rounds: Annotated[
        int,
        typer.Option(min=0, help="Stop after so many more rounds; 0: as planned in tailor.toml."),
    ] = 0,
    noise: Annotated[
        float, typer.Option(min=0, max=1, help="Share of answers that are wrong.")
    ] = 0.0,
) -> None:
    """Simulate labelling with labels that are known already: a column, or a folder for each
    class.
    """
    from tailor.annotation.simulated import Known, Noisy
    from tailor.cli.status import show
    from tailor.run.project import Project

    project = Project(run)
    with polite(f"tailor run --run {run}"), bars() as progress:
        session = project.session(progress)
        try:
            known = Known.of(session.pool)
            task = session.run_state.task
            seed = project.settings.seed
            annotator = Noisy(known, task, noise, seed) if noise else known
            waiting = [s.id for s in session.waiting()]
            if waiting:
                session.tell(annotator.answer(waiting), by="simulated")
            planned = project.settings.rounds + 1 - len(session.run_state.rounds)
            left = rounds or max(0, planned)
            reason: str | None = (
                f"{rounds} rounds more, as asked for" if rounds else "all planned rounds are done"
            )
            while left > 0:
                asked = session.ask()
                if not asked:
                    reason = asked.stopped
                    break
                session.tell(annotator.answer(asked.ids), by="simulated")
                left -= session.run_state.rounds[-1].asked >= session.run_state.rounds[-1].size
                estimate = session.run_state.rounds[-1].estimate
                accuracy = f", accuracy on the hold-out {estimate.accuracy:.3f}" if estimate else ""
                print(
                    f"round {asked[0].round}: {session.run_state.answered()} labels{accuracy}",
                    file=sys.stderr,
                )
        finally:
            session.store.close()
    typer.echo(f"Stopped: {reason}.")
    show(project)
