"""From a run's folder and a Label Studio project to a loop between the two."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailor.errors import InputError
from tailor.integrations.label_studio.client import Studio, Unreachable
from tailor.integrations.label_studio.label_config import LabelConfig
from tailor.integrations.label_studio.project_link import ProjectLink
from tailor.integrations.label_studio.publisher import Publisher, check_shown
from tailor.integrations.label_studio.sync import StudioSync, add_classes, pause
from tailor.integrations.label_studio.task_mirror import ID, TaskMirror
from tailor.integrations.label_studio.task_pool import TaskPool
from tailor.models.base import ProgressCallback, quiet
from tailor.pools import open_pool
from tailor.run import config as toml
from tailor.run.project import Project
from tailor.run.settings import Settings

PUSHED, THEIRS = "pushed", "theirs"


@dataclass(frozen=True)
class Connection:
    sync: StudioSync
    project_link: ProjectLink


@contextlib.contextmanager
def connected(
    studio: Studio,
    run: Path,
    *,
    pool: Path | None = None,
    settings: dict[str, dict[str, Any]] | None = None,
    ahead: int | None = None,
    patience: float | None = None,
    say: Callable[[str], None] = print,
    progress: ProgressCallback = quiet,
) -> Iterator[Connection]:
    """Begin or resume the run in a folder and tie it to the studio's project. It is open for
    writing inside.

    pool: what is to be labelled, for a new run; without one the project's own tasks are. settings:
    further ones of a new run, by section of tailor.toml. ahead: see Link; by default a quarter of a
    batch. patience: seconds before the first further try where Label Studio is away; without it
    that is an error.
    """
    failures = 0
    while True:
        try:
            connection = _connect(studio, run, pool, settings, ahead, say, progress)
            break
        except Unreachable as error:
            if patience is None:
                raise
            if not failures:
                say(f"{error}. Waiting for it; Ctrl-C ends this.")
            failures += 1
        time.sleep(pause(patience, failures))
    if failures:
        say("Label Studio is there.")
    try:
        yield connection
    finally:
        connection.sync.session.store.close()


def _connect(
    studio: Studio,
    run: Path,
    pool: Path | None,
    settings: dict[str, dict[str, Any]] | None,
    ahead: int | None,
    say: Callable[[str], None],
    progress: ProgressCallback,
) -> Connection:
    """Where it fails half-way because Label Studio is away, it can be done again."""
    described = studio.describe()
    config = LabelConfig.read(described["label_config"])
    known = ProjectLink.find(run)
    begun = (run / toml.FILE).exists()
    tasks = known.tasks if known else PUSHED if pool or begun else THEIRS
    if pool is not None and begun:
        raise InputError(
            f"{run / toml.FILE} names the pool already: leave --pool out, or name another --run"
        )
    if begun and (kind := Project(run).settings.kind) != config.kind:
        raise InputError(
            f"the label config is {config.kind}, the run in {run} {kind}: name another --run"
        )
    if not begun:  # nothing is written before it is known to work
        Settings(config.kind, config.classes).task  # noqa: B018  checks the class names
        if pool is not None:
            check_shown(open_pool(pool), config)
    run.mkdir(parents=True, exist_ok=True)
    project_link = ProjectLink.tie(run, studio.url, described, tasks)
    copies = TaskPool(run, studio, config, say) if tasks == THEIRS else None
    task_mirror = TaskMirror(
        studio, config, copies.example_of if copies is not None else _pushed_id
    )
    if copies is not None:
        task_mirror.look()
        copies.copy(task_mirror.tasks.values())
        if not copies.size:
            raise InputError(
                f"project {studio.project} has no task to label: import some there, or give --pool"
            )
    if not begun:
        where = (
            copies.settings()
            if copies is not None
            else {"path": os.path.relpath(pool or "", run.resolve())}
        )
        task = {"kind": config.kind, "classes": list(config.classes)}
        toml.write(run, {**(settings or {}), "task": task, "pool": where})
    project = Project(run)
    session = project.session(progress)
    try:
        add_classes(session, config)
        publisher = Publisher(task_mirror, session, pushes=copies is None, say=say)
        least = max(1, project.settings.batch // 4) if ahead is None else ahead
        return Connection(
            StudioSync(session, task_mirror, publisher, copies, ahead=least, say=say), project_link
        )
    except BaseException:
        session.store.close()
        raise


def _pushed_id(task: int, data: dict[str, Any]) -> str | None:
    """Our id in a task's data; tasks that others put into the project have none."""
    found = data.get(ID)
    return found if isinstance(found, str) else None
