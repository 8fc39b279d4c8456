"""tailor run: simulate with known labels."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tailor.cli.run_option import HERE, RunFolder
from tailor.cli.terminal import interruptible, progress_bars
from tailor.cli.trust_option import Trust, open_project

if TYPE_CHECKING:
    from tailor.annotation.simulated import SimulatedAnnotator
    from tailor.run.project import Project
    from tailor.run.session import Session


def run(
    run: RunFolder = HERE,
    rounds: Annotated[
        int,
        typer.Option(min=0, help="Stop after so many more rounds; 0: as planned in tailor.toml."),
    ] = 0,
    noise: Annotated[
        float, typer.Option(min=0, max=1, help="Share of answers that are wrong.")
    ] = 0.0,
    trust: Trust = False,
) -> None:
    """Simulate labelling with labels that are known already: a column, or a folder for each
    class.
    """
    from tailor.cli.status import show

    project = open_project(run, trust)
    with interruptible(f"tailor run --run {run}"), progress_bars() as progress:
        session = project.session(progress)
        try:
            annotator = _annotator(project, session, noise)
            _answer_waiting(session, annotator)
            if rounds:
                stopped = _run_rounds(session, annotator, rounds)
                reason = stopped or f"{rounds} rounds more, as asked for"
            else:
                # the random start comes before the first planned round
                planned = project.settings.rounds + 1 - len(session.run_state.rounds)
                stopped = _run_rounds(session, annotator, planned)
                reason = stopped or "all planned rounds are done"
        finally:
            session.store.close()
    typer.echo(f"Stopped: {reason}.")
    show(project)


def _annotator(project: Project, session: Session, noise: float) -> SimulatedAnnotator:
    from tailor.annotation.simulated import KnownLabels, NoisyAnnotator

    known_labels = KnownLabels.of(session.pool)
    if not noise:
        return known_labels
    return NoisyAnnotator(known_labels, session.run_state.task, noise, project.settings.seed)


def _answer_waiting(session: Session, annotator: SimulatedAnnotator) -> None:
    waiting = [pick_record.id for pick_record in session.waiting()]
    if waiting:
        session.tell(annotator.answer(waiting), by="simulated")


def _run_rounds(session: Session, annotator: SimulatedAnnotator, rounds: int) -> str | None:
    """Go through so many rounds; returns why it stopped before, if it did."""
    while rounds > 0:
        asked = session.ask()
        if not asked:
            return asked.stopped
        session.tell(annotator.answer(asked.ids), by="simulated")
        current = session.run_state.rounds[-1]
        if current.asked >= current.size:  # else more of it is asked for the next time
            rounds -= 1
        accuracy = ""
        if current.estimate:
            accuracy = f", accuracy on the hold-out {current.estimate.accuracy:.3f}"
        answered = session.run_state.answered()
        print(f"round {asked[0].round}: {answered} labels{accuracy}", file=sys.stderr)
    return None
