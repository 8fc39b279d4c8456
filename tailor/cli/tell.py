"""tailor tell: answers from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.run_option import HERE, RunFolder
from tailor.cli.trust_option import Trust, open_project
from tailor.errors import InputError, UnknownName


def tell(
    answers: Annotated[
        Path,
        typer.Argument(help="A .csv or .jsonl file with columns id and label, and skip if wanted."),
    ],
    run: RunFolder = HERE,
    by: Annotated[str, typer.Option(help="Who answered.")] = "",
    trust: Trust = False,
) -> None:
    """Take answers in: all of the file, or none of it where one is bad. Answers may be told again,
    corrected.
    """
    from tailor.run.row_files import line_of, read_answers

    project = open_project(run, trust)
    answers_by_id = read_answers(answers, project.settings.task)
    answer_writer = project.answer_writer()
    try:
        answer_writer.tell(answers_by_id, by=by or None)
        waiting = len(answer_writer.waiting())
    except UnknownName as error:
        line = line_of(answers, error.name)
        raise InputError(f"{answers}, line {line}: {error}; nothing was taken in") from error
    finally:
        answer_writer.store.close()
    skipped = sum(answer is None for answer in answers_by_id.values())
    answered = len(answers_by_id) - skipped
    typer.echo(f"{answered} answers, {skipped} skipped; {waiting} still waiting.")
