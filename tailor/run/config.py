"""tailor.toml, the settings of a run: its keys, reading it, writing one that explains itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailor.common.toml_tables import NUMBER, SWITCH, TEXT, TEXTS, WHOLE, Key, TomlFile, as_toml
from tailor.errors import InputError
from tailor.run.settings import with_todays_names

FILE = "tailor.toml"
#: section -> key -> what it is
SCHEMA: dict[str, dict[str, Key]] = {
    "task": {
        "kind": Key(
            TEXT,
            "multi-class",
            "multi-class: one class an example; multi-label: any number of them",
        ),
        "classes": Key(
            TEXTS,
            None,
            "the classes, in order",
            required=True,
        ),
    },
    "pool": {
        "path": Key(
            TEXT,
            None,
            "a folder of images, a .parquet, .csv, .jsonl, .npy file, or s3://...",
            required=True,
        ),
        "kind": Key(
            TEXT, None, "image-folder, parquet, text, arrays, ...; found out where it is left out"
        ),
        "column": Key(TEXT, None, "the column that holds the examples, where there are several"),
        "key": Key(
            TEXT, None, "the column that holds the ids; without it the row number is the id"
        ),
        "label": Key(TEXT, None, "the column that holds known labels, for simulating"),
        "labels": Key(
            TEXT, None, '"folder": the first folder of a picture is its class, for simulating'
        ),
        "label_separator": Key(
            TEXT, None, "what separates several labels in one text cell, such as |"
        ),
        "split": Key(TEXT, None, "the split of a Parquet folder that holds several, such as train"),
        "array": Key(TEXT, None, "the array of a .npz file that holds several"),
        "delimiter": Key(
            TEXT, None, "what separates the columns of a CSV file, where it is no comma"
        ),
        "encoding": Key(TEXT, None, "the encoding of a text file, where it is not utf-8"),
        "max_side": Key(WHOLE, None, "read pictures at most this large, in pixels"),
        "cache": Key(TEXT, None, "the folder for copies of files at an address"),
        "cache_bytes": Key(WHOLE, None, "the copies take no more room than this"),
    },
    "model": {
        "name": Key(
            TEXT,
            "probe",
            "probe: a frozen network and a trained head, seconds a round; finetune: all of it",
        ),
        "backbone": Key(
            TEXT, None, "probe: efficientnet-lite0, resnet18, pixels, given, minilm, timm:NAME, ..."
        ),
        "head": Key(TEXT, None, "probe: linear, or hidden for one hidden layer"),
        "network": Key(TEXT, None, "finetune: resnet18, efficientnet-lite0 or small-cnn"),
        "weights": Key(TEXT, None, "finetune: a weight file, or imagenet"),
        "size": Key(WHOLE, None, "finetune: pixels a side"),
        "epochs": Key(WHOLE, None, "finetune: epochs a round"),
        "steps": Key(
            WHOLE,
            None,
            "finetune: batches a round, however many labels there are, instead of epochs",
        ),
        "class_weights": Key(TEXT, None, "balanced: rare classes weigh more in training"),
        "prior_correction": Key(
            TEXT + NUMBER,
            None,
            "auto, none, or 0 to 1: take the skew of the labels out of predictions",
        ),
        "dropout": Key(NUMBER, None, "dropout before the head, as bald needs it"),
        "device": Key(TEXT, None, "auto, cpu or cuda"),
    },
    "selection": {
        "strategies": Key(
            TEXTS,
            [],
            "candidate algorithms, as `tailor arms` lists them; auto: the default's, others may be "
            "added; empty: the paper's",
        ),
        "selector": Key(TEXT, "tailor", "who chooses among them; tailor is the paper's"),
        "reward": Key(TEXT, "diversity", "diversity: balance the classes; search: find positives"),
        "start": Key(
            TEXT,
            "random",
            "the first batch: coverage spreads it over the pool; random; half: half of each",
        ),
        "cover": Key(SWITCH, False, "candidates propose, and what covers the pool best is taken"),
        "batch": Key(WHOLE, 100, "examples a round"),
        "rounds": Key(WHOLE, 20, "rounds planned; some selectors set their rates by it"),
        "holdout": Key(
            NUMBER, 0.1, "share of each batch that is a random hold-out, never trained on"
        ),
        "dropout_passes": Key(WHOLE, 10, "passes for bald"),
        "seed": Key(WHOLE, 0, "same seed, same questions"),
    },
    "engine": {
        "name": Key(
            TEXT, "memory", "memory: all in this process; local: shards on disk; ray: a cluster"
        ),
        "address": Key(
            TEXT, None, "ray: of a running cluster, or auto; without it, this machine alone"
        ),
        "cpus": Key(WHOLE, None, "ray: cores of a task"),
        "gpus": Key(NUMBER, None, "ray: GPUs of a worker that predicts or trains"),
        "workers": Key(WHOLE, None, "ray: workers that train one network together"),
        "shard": Key(WHOLE, None, "rows of a shard of predictions"),
        "dtype": Key(
            TEXT,
            None,
            "of the numbers in shards: float32 where features are beyond float16's 65,504",
        ),
    },
    "run": {
        "store": Key(
            TEXT,
            None,
            "where the answers are kept: a file or postgresql://HOST/DATABASE; TAILOR_STORE wins",
        ),
    },
    "stop": {
        "budget": Key(WHOLE, None, "stop after so many labels"),
        "accuracy": Key(NUMBER, None, "stop when accuracy on the hold-out is surely at least this"),
        "plateau": Key(WHOLE, None, "stop when so many rounds brought next to nothing"),
        "per_class": Key(WHOLE, None, "stop when every class has so many labels"),
    },
}


#: What a new run is begun with. A file that lacks one of these keys was written before it was
#: there, and is read as it was then.
NEW_RUN: dict[str, dict[str, Any]] = {
    "model": {"prior_correction": "auto"},
    "selection": {
        "strategies": ["auto"],
        "selector": "auto",
        "start": "auto",
        "cover": True,
    },
}
#: models that know prior_correction
CORRECTED_MODELS = ("probe", "finetune")
#: where the comments of a written file begin
COMMENT_COLUMN = 40


@dataclass(frozen=True)
class Config:
    """What a tailor.toml says.

    folder  where it lies; paths in it are relative to this folder
    file    the file as it was read
    values  section -> key -> value, defaults filled in
    """

    folder: Path
    file: TomlFile
    values: dict[str, dict[str, Any]]

    def section(self, name: str) -> dict[str, Any]:
        """The keys of a section that have a value."""
        keys = {}
        for key, value in self.values[name].items():
            if value is not None:
                keys[key] = value
        return keys

    def place(self, section: str, key: str) -> str:
        """The file and line of a key, for errors that come up when its value is used."""
        return self.file.place(section, key)


def runs_in(folder: Path) -> list[str]:
    """The names of the folders in this one that hold a run."""
    try:
        settings_files = list(folder.glob(f"*/{FILE}"))
    except OSError:  # a folder that may not be looked into
        return []
    return sorted(path.parent.name for path in settings_files)


def read(folder: Path) -> Config:
    """The settings of the run in a folder; InputError where there is none, or a key is wrong."""
    path = folder / FILE
    if not path.is_file():
        absolute = folder.absolute()
        other_runs = _other_runs()
        raise InputError(f"no {FILE} in {absolute}: {other_runs} `tailor init` begins a new run")
    file = TomlFile.read(path)
    selection = file.tables.get("selection")
    if isinstance(selection, dict):  # else check() says what is wrong with it
        file.tables["selection"] = with_todays_names(selection)
    # All tables before any is read: a name that is wrong is told before one that is missing.
    file.check(SCHEMA)
    values = {}
    for section, keys in SCHEMA.items():
        values[section] = file.table(section, keys)
    return Config(folder, file, values)


def _other_runs() -> str:
    """What to do about a folder without a run: those nearby are most often meant."""
    runs = runs_in(Path("."))
    if not runs:
        return "name the run's folder with --run."
    options = " or ".join(f"--run {name}" for name in runs[:3])
    return f"did you mean {options}?"


def _of_new_run(section: str, values: dict[str, Any]) -> dict[str, Any]:
    """The keys of a section as a new run has them, before defaults."""
    keys = dict(NEW_RUN.get(section, {}))
    if section == "model":
        model, _, _ = values.get("name", "probe").partition("(")
        # Only networks can be corrected for what they have learned too often.
        if model.strip() not in CORRECTED_MODELS:
            keys.clear()
    return {**keys, **values}


def write(folder: Path, values: dict[str, dict[str, Any]]) -> Path:
    """A tailor.toml in which a comment explains every key, written to the folder.

    values  section -> key -> value; others have what NEW_RUN says, or their default; keys without
            either become comments

    An existing file is not written over: InputError.
    """
    lines = [
        "# What this run labels, and how. Every key is explained; more in "
        "docs/reference/settings.md.",
        "",
    ]
    for section, keys in SCHEMA.items():
        lines.append(f"[{section}]")
        section_values = _of_new_run(section, values.get(section, {}))
        for name, key in keys.items():
            value = section_values.get(name, key.default)
            if value is None:
                assignment = f"# {name} ="
            else:
                assignment = f"{name} = {as_toml(value)}"
            lines.append(f"{assignment:<{COMMENT_COLUMN}} # {key.doc}")
        lines.append("")
    path = folder / FILE
    try:
        content = "\n".join(lines).encode()
    except UnicodeEncodeError as error:
        unwritable = error.object[error.start : error.end]
        raise InputError(f"{unwritable!r} can't be written to {path}: {error}") from error
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # x: of two commands that begin a run here at once, one fails.
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        raise InputError(
            f"{path} exists: edit it, or begin another run in another folder"
        ) from None
    return path
