"""tailor.toml: reading it with errors that name the line, and writing one with a comment for every
key.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tailor.errors import InputError, UnknownName
from tailor.run.settings import with_todays_names

FILE = "tailor.toml"


@dataclass(frozen=True)
class Key:
    """One setting: its type, its default (None: may be left out), and what it is."""

    kinds: tuple[type, ...]
    default: Any
    doc: str
    required: bool = False


TEXT = (str,)
WHOLE = (int,)
NUMBER = (int, float)
LIST = (list,)
SCHEMA: dict[str, dict[str, Key]] = {
    "task": {
        "kind": Key(
            TEXT,
            "multi-class",
            "multi-class: one class an example; multi-label: any number of them",
        ),
        "classes": Key(LIST, None, "the classes, in order", required=True),
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
        "dropout": Key(NUMBER, None, "dropout before the head, as bald needs it"),
        "device": Key(TEXT, None, "auto, cpu or cuda"),
    },
    "selection": {
        "strategies": Key(
            LIST, [], "candidate algorithms, as `tailor arms` lists them; empty: the paper's"
        ),
        "selector": Key(TEXT, "tailor", "who chooses among them"),
        "reward": Key(TEXT, "diversity", "diversity: balance the classes; search: find positives"),
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


@dataclass(frozen=True)
class Config:
    """What a tailor.toml says, defaults filled in; paths are relative to its folder."""

    folder: Path
    values: dict[str, dict[str, Any]] = field(default_factory=dict)

    def section(self, name: str) -> dict[str, Any]:
        """The keys of a section that have a value."""
        return {k: v for k, v in self.values[name].items() if v is not None}


def runs_in(folder: Path) -> list[str]:
    """The names of the folders in this one that hold a run."""
    try:
        return sorted(path.parent.name for path in folder.glob(f"*/{FILE}"))
    except OSError:  # a folder that may not be looked into
        return []


def read(folder: Path) -> Config:
    path = folder / FILE
    if not path.is_file():
        runs = runs_in(Path("."))
        named = " or ".join(f"--run {name}" for name in runs[:3])
        hint = f"did you mean {named}?" if runs else "name the run's folder with --run."
        raise InputError(f"no {FILE} in {folder.absolute()}: {hint} `tailor init` begins a new run")
    try:
        text = path.read_text(encoding="utf-8-sig")
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from error
    if isinstance(given.get("selection"), dict):
        given["selection"] = with_todays_names(given["selection"])
    return Config(folder, check(given, text, path))


def check(given: dict[str, Any], text: str, path: Path) -> dict[str, dict[str, Any]]:
    """Every key known and of its type; defaults filled in."""

    def at(section: str, key: str | None = None) -> str:
        return f"{path}, line {line_of_key(text, section, key)}"

    for section, keys in given.items():
        if section not in SCHEMA:
            raise InputError(f"{at(section)}: {UnknownName('section', section, SCHEMA)}")
        if not isinstance(keys, dict):
            raise InputError(
                f"{at(section)}: {section} is a section: write [{section}] and its keys below"
            )
        for key, value in keys.items():
            if key not in SCHEMA[section]:
                raise InputError(
                    f"{at(section, key)}: "
                    f"{UnknownName(f'key in [{section}]', key, SCHEMA[section])}"
                )
            wanted = SCHEMA[section][key]
            if not isinstance(value, wanted.kinds) or isinstance(value, bool):
                names = " or ".join(k.__name__ for k in wanted.kinds)
                raise InputError(
                    f"{at(section, key)}: {key} = {value!r} must be {names}: {wanted.doc}"
                )
            odd = [v for v in value if not isinstance(v, str)] if isinstance(value, list) else []
            if odd:
                raise InputError(
                    f"{at(section, key)}: {key} holds {odd[0]!r}, which is no text: {wanted.doc}"
                )
    values: dict[str, dict[str, Any]] = {}
    for section, keys in SCHEMA.items():
        found = given.get(section, {})
        for key, wanted in keys.items():
            if wanted.required and key not in found:
                raise InputError(f"{path}: [{section}] needs {key}: {wanted.doc}")
        values[section] = {key: found.get(key, wanted.default) for key, wanted in keys.items()}
    return values


def where(config: Config, section: str, key: str) -> str:
    """The place of a key in its file, for errors that come up later."""
    path = config.folder / FILE
    return f"{path}, line {line_of_key(path.read_text(encoding='utf-8-sig'), section, key)}"


def line_of_key(text: str, section: str, key: str | None) -> int:
    """The line of a key of a section, or of the section; 1 where it can't be told."""
    current, heading = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        if header := re.match(r"\s*\[\s*([^\]]+?)\s*\]", line):
            current = header[1]
            if current == section:
                heading = number
                if key is None:
                    return number
        elif (
            key is not None
            and current == section
            and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line)
        ) or (current == "" and re.match(rf"\s*{re.escape(section)}\s*=", line)):
            return number
    return heading


def write(folder: Path, values: dict[str, dict[str, Any]]) -> Path:
    """A tailor.toml with every key explained; those without a value as comments. Never over an
    existing one.
    """
    lines = [
        "# What this run labels, and how. Every key is explained; more in "
        "docs/reference/settings.md.",
        "",
    ]
    for section, keys in SCHEMA.items():
        lines.append(f"[{section}]")
        for key, wanted in keys.items():
            value = values.get(section, {}).get(key, wanted.default)
            shown = f"{key} = {_toml(value)}" if value is not None else f"# {key} ="
            lines.append(f"{shown:<40} # {wanted.doc}")
        lines.append("")
    path = folder / FILE
    try:
        text = "\n".join(lines).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{error.object[error.start : error.end]!r} can't be written to {path}: {error}"
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(
            f"{path} exists: edit it, or begin another run in another folder"
        ) from None
    return path


def _toml(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml(v) for v in value)}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\u{ord(m[0]):04x}", escaped) + '"'
    return repr(value)
