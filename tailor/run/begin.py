"""Beginning a run: finding its folder, looking at the pool, and writing its tailor.toml."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailor.errors import InputError
from tailor.pools import open_pool
from tailor.pools.remote_files import TABLE_SUFFIXES
from tailor.run import config
from tailor.run.project import Project
from tailor.run.settings import KINDS

#: a path on this machine, or an address such as s3://bucket/folder
PoolPath = str | os.PathLike[str]


@dataclass(frozen=True)
class NewRun:
    """A run that was begun just now."""

    folder: Path
    settings_file: Path
    examples: int
    kind: str  # "multi-class" or "multi-label"
    classes: tuple[str, ...]
    has_labels: bool  # whether the pool has known labels to simulate with


def is_address(path: PoolPath) -> bool:
    return "://" in str(path)


def run_folder(path: PoolPath) -> Path:
    """The folder of the run that labels these examples, whether there is one yet or not.

    path  a run's folder, which it is then itself; a folder or a file, beside which the run's is; or
          an address, whose run is here

    Raises InputError where nothing is at the path.
    """
    if is_address(path):
        last = Path(str(path).rstrip("/"))
        name = last.stem if last.suffix.lower() in TABLE_SUFFIXES else last.name
        return Path(f"{name}-labels")
    if not Path(path).exists():
        raise InputError(
            f"nothing at {path}: name a folder of pictures, a file, or the folder of a run"
        )
    if (Path(path) / config.FILE).is_file():
        return Path(path)
    examples = Path(path).resolve()
    name = examples.stem if examples.is_file() else examples.name
    return examples.with_name(f"{name}-labels")


def check_same_pool(project: Project, path: PoolPath) -> None:
    """Raise InputError where a run labels other examples than those at the path."""
    labelled = project.config.section("pool")["path"]
    pool = labelled if is_address(labelled) else project.folder / labelled
    if not _same_place(path, project.folder) and not _same_place(path, pool):
        raise InputError(
            f"the run in {project.folder} labels {labelled}, not {path}: name another folder with "
            f"--run, or go on with `tailor label {project.folder}`"
        )


def _same_place(first: PoolPath, second: PoolPath) -> bool:
    """Whether two folders, files or addresses are the same."""
    if is_address(first) or is_address(second):
        return str(first).rstrip("/") == str(second).rstrip("/")
    return Path(first).resolve() == Path(second).resolve()


def _no_classes() -> list[str]:
    raise InputError('name the classes: classes=["cat", "dog", "fox"]')


def begin_run(
    folder: Path,
    pool: PoolPath,
    classes: Sequence[str] = (),
    *,
    multi_label: bool = False,
    pool_options: Mapping[str, Any] | None = None,
    sections: Mapping[str, Mapping[str, Any]] | None = None,
    missing_classes: Callable[[], list[str]] = _no_classes,
) -> NewRun:
    """Look at a pool and write the tailor.toml of a new run.

    folder           of the run; it is made where it is not there
    classes          their names; without them those of the pool's known labels
    multi_label      an example may have several classes, or none; also where known labels are lists
    pool_options     keys of [pool] besides path
    sections         keys of the other sections
    missing_classes  gives the classes where there are none: a prompt, or an error

    Raises InputError where the pool can't be opened, the classes are not possible ones, or the
    folder holds a run already.
    """
    options = dict(pool_options or {})
    opened = open_pool(pool, **options)
    labels = opened.labels() or {}
    names = list(classes) or _classes_in(labels) or missing_classes()
    has_lists = any(isinstance(label, list) for label in labels.values())
    kind = "multi-label" if multi_label or has_lists else "multi-class"
    task = KINDS[kind](names)
    folder.mkdir(parents=True, exist_ok=True)
    if is_address(pool):
        place = str(pool)
    else:
        place = os.path.relpath(Path(pool).absolute(), folder.resolve())
    values = {
        **{name: dict(keys) for name, keys in (sections or {}).items()},
        "task": {"kind": kind, "classes": names},
        "pool": {"path": place, **options},
    }
    settings_file = config.write(folder, values)
    return NewRun(folder, settings_file, len(opened), kind, task.classes, bool(labels))


def _classes_in(labels: Mapping[str, Any]) -> list[str]:
    """The classes of known labels, sorted."""
    classes: set[Any] = set()
    for label in labels.values():
        if isinstance(label, list):
            classes.update(label)
        elif label is not None:
            classes.add(label)
    return [str(name) for name in sorted(classes, key=str)]
