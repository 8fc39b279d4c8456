"""tailor init: begin a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tailor.cli.run_option import HERE, RunFolder, run_words
from tailor.errors import InputError


def init(
    pool: Annotated[
        str,
        typer.Argument(
            help="A folder of images, a .parquet, .csv, .jsonl or .npy file, or an address "
            "(s3://...)."
        ),
    ] = "",
    run: RunFolder = HERE,
    classes: Annotated[
        str,
        typer.Option(help="Class names, separated by commas; found in known labels if left out."),
    ] = "",
    multi_label: Annotated[
        bool, typer.Option("--multi-label", help="An example may have several classes, or none.")
    ] = False,
    labels: Annotated[
        str, typer.Option(help='Known labels to simulate with: "folder", or the name of a column.')
    ] = "",
    key: Annotated[str, typer.Option(help="The column that holds the ids.")] = "",
    column: Annotated[
        str, typer.Option(help="The column that holds the examples, where there are several.")
    ] = "",
    separator: Annotated[
        str, typer.Option(help="What separates several labels in one text cell, such as |.")
    ] = "",
    model: Annotated[str, typer.Option(help="probe or finetune.")] = "probe",
    backbone: Annotated[
        str, typer.Option(help="The probe's network; chosen by the kind of pool if left out.")
    ] = "",
    batch: Annotated[int, typer.Option(min=1, help="Examples a round.")] = 100,
    budget: Annotated[int, typer.Option(min=0, help="Stop after so many labels; 0: no limit.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same questions.")] = 0,
) -> None:
    """Begin a run: look at the pool and write a commented tailor.toml. Asks for what is missing, at
    a terminal.
    """
    if not pool and sys.stdin.isatty():
        pool = typer.prompt("Where are the examples (a folder of images, or a file)?")
    if not pool:
        raise InputError("name the pool: tailor init PATH")
    label_option = "label"
    if labels == "folder":
        label_option = "labels"
    options = {
        label_option: labels,
        "key": key,
        "column": column,
        "label_separator": separator,
    }
    given_options = {}
    for name, value in options.items():
        if value:
            given_options[name] = value
    sections: dict[str, dict[str, Any]] = {
        "model": {"name": model},
        "selection": {"batch": batch, "seed": seed},
        "stop": {},
    }
    if backbone:
        sections["model"]["backbone"] = backbone
    if budget:
        sections["stop"]["budget"] = budget
    has_labels = begin(pool, run, classes, multi_label, given_options, sections)
    if has_labels:
        command = "run"
    else:
        command = "ask"
    typer.echo(f"Next: tailor {command}{run_words(run)}")


def begin(
    pool: Path | str,
    run: Path,
    classes: str,
    multi_label: bool,
    options: dict[str, str],
    sections: dict[str, dict[str, Any]],
) -> bool:
    """Look at the pool and write the tailor.toml; returns whether there are known labels to
    simulate with.
    """
    from tailor.run.begin import begin_run

    begun = begin_run(
        run,
        pool,
        names_in(classes),
        multi_label=multi_label,
        pool_options=options,
        sections=sections,
        missing_classes=_ask_for_classes,
    )
    typer.echo(
        f"{begun.examples} examples, {len(begun.classes)} classes ({begun.kind}). Settings: "
        f"{begun.settings_file}"
    )
    return begun.has_labels


def names_in(text: str) -> list[str]:
    """ "cat, dog" -> ["cat", "dog"]"""
    names = (name.strip() for name in text.split(","))
    return [name for name in names if name]


def _ask_for_classes() -> list[str]:
    names = []
    if sys.stdin.isatty():
        names = names_in(typer.prompt("Which classes (separated by commas)?"))
    if not names:
        raise InputError("name the classes: --classes cat,dog,fox")
    return names
