"""Beginning a run: finding its folder, looking at the pool, and writing its tailor.toml."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailor.errors import InputError
from tailor.pools import open_pool
from tailor.pools.addresses import is_address
from tailor.pools.remote_files import TABLE_SUFFIXES
from tailor.run import config
from tailor.run.project import Project
from tailor.run.reaches import link_reaches
from tailor.run.settings import KINDS
from tailor.run.trust import check_trusted, remember_settings

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


def run_folder(path: PoolPath) -> Path:
    """The folder of the run that labels these examples, whether there is one yet or not.

    path  a run's folder, which it is then itself; a folder or a file, beside which the run's is; or
          an address, whose run is here

    Raises InputError where nothing is at the path.
    """
    if is_address(path):
        address = str(path).rstrip("/")
        last = Path(address)
        # Nobody has asked the other side what it is: the name has to tell.
        is_table = last.suffix.lower() in TABLE_SUFFIXES
        name = _run_name(last, is_file=is_table)
        return Path(name)
    local_path = Path(path)
    if not local_path.exists():
        raise InputError(
            f"nothing at {path}: name a folder of pictures, a file, or the folder of a run"
        )
    settings_file = local_path / config.FILE
    if settings_file.is_file():
        return local_path
    examples = local_path.resolve()
    name = _run_name(examples, is_file=examples.is_file())
    return examples.with_name(name)


def _run_name(examples: Path, *, is_file: bool) -> str:
    """The name of the folder of a run, from that of its examples."""
    if is_file:
        return f"{examples.stem}-labels"
    return f"{examples.name}-labels"


def check_same_pool(project: Project, path: PoolPath) -> None:
    """Raise InputError where a run labels other examples than those at the path."""
    folder = project.folder
    if _same_place(path, folder):
        return
    options = project.config.section("pool")
    labelled = options["path"]
    pool = labelled
    if not is_address(labelled):
        pool = folder / labelled
    if _same_place(path, pool):
        return
    raise InputError(
        f"the run in {folder} labels {labelled}, not {path}: name another folder with "
        f"--run, or go on with `tailor label {folder}`"
    )


def _same_place(first: PoolPath, second: PoolPath) -> bool:
    """Whether two folders, files or addresses are the same."""
    if is_address(first) or is_address(second):
        first_address = str(first).rstrip("/")
        second_address = str(second).rstrip("/")
        return first_address == second_address
    # Resolved: one of them may be relative, or lead over a link.
    first_path = Path(first).resolve()
    second_path = Path(second).resolve()
    return first_path == second_path


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
    folder holds a run already; NotTrusted where links in it lead to where others' files are.
    """
    # The folder may be there already, and a stranger's.
    check_trusted(folder, link_reaches(folder))
    options = dict(pool_options or {})
    opened = open_pool(pool, **options)
    labels = opened.labels() or {}
    names = list(classes)
    if not names:
        names = _classes_in(labels)
    if not names:
        names = missing_classes()
    kind = "multi-class"
    if multi_label or _has_lists(labels):
        kind = "multi-label"
    # Before anything is written: it checks the names.
    task = KINDS[kind](names)
    folder.mkdir(parents=True, exist_ok=True)
    values = {}
    if sections is not None:
        for section, keys in sections.items():
            values[section] = dict(keys)
    values["task"] = {"kind": kind, "classes": names}
    values["pool"] = {"path": _seen_from(folder, pool), **options}
    settings_file = config.write(folder, values)
    remember_settings(folder)
    return NewRun(
        folder=folder,
        settings_file=settings_file,
        examples=len(opened),
        kind=kind,
        classes=task.classes,
        has_labels=bool(labels),
    )


def _seen_from(folder: Path, pool: PoolPath) -> str:
    """Where the pool is, as the settings of a run in this folder name it."""
    if is_address(pool):
        return str(pool)
    # Relative to the run: both folders may be moved together.
    absolute = Path(pool).absolute()
    return os.path.relpath(absolute, folder.resolve())


def _has_lists(labels: Mapping[str, Any]) -> bool:
    """Whether an example has a list of classes, as in a multi-label task."""
    return any(isinstance(label, list) for label in labels.values())


def _classes_in(labels: Mapping[str, Any]) -> list[str]:
    """The classes of known labels, sorted."""
    classes: set[Any] = set()
    for label in labels.values():
        if isinstance(label, list):
            classes.update(label)
        elif label is not None:
            classes.add(label)
    in_order = sorted(classes, key=str)
    return [str(name) for name in in_order]
