"""The TOML file of an experiment: its keys, and reading it with errors that name the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tailor.common.toml_tables import NUMBER, SWITCH, TABLE, TEXT, TEXTS, WHOLE, Key, TomlFile
from tailor.errors import InputError
from tailor.run import config as run_config
from tailor_experiments.comparison.experiment import PATHS, Contender, Experiment

#: section -> key -> what it is
SCHEMA: dict[str, dict[str, Key]] = {
    "experiment": {
        "name": Key(
            TEXT,
            None,
            "what tables and figures call it",
            required=True,
        ),
        "batch": Key(WHOLE, 100, "labels a round, and random ones to begin with"),
        "rounds": Key(WHOLE, 20, "rounds after the random batch"),
        "trials": Key(WHOLE, 4, "trials for each contender"),
        "seed": Key(WHOLE, 0, "the seed of the first trial; the next ones follow"),
        "reward": Key(TEXT, "diversity", "diversity: balance the classes; search: find positives"),
        "wrong": Key(NUMBER, 0.0, "share of the answers that are wrong"),
        "families": Key(
            TEXTS,
            [],
            "candidates of contenders that name none; narrow and wide are the paper's sets",
        ),
    },
    "data": {
        "name": Key(
            TEXT,
            None,
            "digits, digits-multilabel, features, or a dataset that `tailor data check` knows",
        ),
        "path": Key(TEXT, None, "the dataset's folder; without a name, any pool with known labels"),
        "test": Key(TEXT, None, "without a name: a second pool, for testing only"),
        "options": Key(
            TABLE, {}, "of the dataset or the pool, such as {classes = 2} or {label = 'label'}"
        ),
    },
    "model": run_config.SCHEMA["model"],
}
#: the keys of a [[contender]]
CONTENDER_KEYS: dict[str, Key] = {
    "label": Key(
        TEXT,
        None,
        "what tables and figures call it",
        required=True,
    ),
    "selector": Key(TEXT, "tailor", "who chooses among the candidates"),
    "families": Key(TEXTS, [], "candidates; empty: those of [experiment]"),
    "reward": Key(TEXT, None, "by default that of [experiment]"),
    "reveal": Key(
        SWITCH, False, "tell each label before the next pick, as galaxy(pending=revealed) wants it"
    ),
    "start": Key(TEXT, "random", "how the first batch is chosen: random, coverage or half"),
    "cover": Key(SWITCH, False, "candidates propose, and what covers the pool best is taken"),
    "model": Key(TABLE, {}, "options of the model in place of [model]'s"),
}


def read(path: Path) -> Experiment:
    """The experiment in a TOML file; paths in it are relative to its folder.

    Raises InputError, with the line as far as it can be told.
    """
    if not path.is_file():
        raise InputError(
            f"no file at {path}: give the TOML of an experiment; docs/how-to/experiments.md "
            "shows one"
        )
    file = TomlFile.read(path)
    # All keys first: a misspelt one would else pass for a default.
    file.check(SCHEMA, {"contender": CONTENDER_KEYS})
    options = _section(file, "experiment")
    # Experiments are compared and hashed as values, which lists can't be.
    options["families"] = tuple(options["families"])
    contenders = []
    for table in file.entries("contender", CONTENDER_KEYS):
        table["families"] = tuple(table["families"])
        contenders.append(Contender(**table))
    data = _data(file)
    try:
        return Experiment(
            data=data,
            model=_section(file, "model"),
            contenders=tuple(contenders),
            **options,
        )
    except InputError as error:
        raise InputError(f"{_place_of(error, file)}: {error}") from error


def _section(file: TomlFile, name: str) -> dict[str, Any]:
    """The keys that have a value: the others are left to the defaults of what they are for."""
    table = file.table(name, SCHEMA[name])
    return {key: value for key, value in table.items() if value is not None}


def _data(file: TomlFile) -> dict[str, Any]:
    data = _section(file, "data")
    if "name" not in data and "path" not in data:
        meaning = SCHEMA["data"]["name"].doc
        raise InputError(f"{file.path}: [data] needs name or path: {meaning}")
    for key in PATHS:
        if key in data:
            # An experiment runs from any folder.
            data[key] = str(file.path.parent / data[key])
    return data


def _place_of(error: InputError, file: TomlFile) -> str:
    """The line of the key of [experiment] that an error is about, else the file."""
    for key in SCHEMA["experiment"]:
        # Errors of numbers out of range begin with the key.
        if str(error).startswith(f"{key} is "):
            return file.place("experiment", key)
    return str(file.path)
