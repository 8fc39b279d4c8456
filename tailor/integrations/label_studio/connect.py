"""From a run's folder and a Label Studio project to a sync between the two."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailor.errors import InputError
from tailor.integrations.label_studio.client import Studio
from tailor.integrations.label_studio.label_config import LabelConfig
from tailor.integrations.label_studio.project_link import ProjectLink
from tailor.integrations.label_studio.publisher import Publisher, check_shown
from tailor.integrations.label_studio.sync import StudioSync, add_classes, pause
from tailor.integrations.label_studio.task_mirror import ID_KEY, TaskMirror
from tailor.integrations.label_studio.task_pool import TaskPool
from tailor.integrations.label_studio.transport import StudioUnreachable
from tailor.models.base import ProgressCallback, quiet
from tailor.pools import open_pool
from tailor.run import config as toml
from tailor.run.project import Project
from tailor.run.reaches import link_reaches, run_reaches, studio_reaches
from tailor.run.settings import Settings
from tailor.run.trust import check_trusted, remember, remember_settings

#: Where a project's tasks come from: made from a pool of ours, or its own.
PUSHED = "pushed"
THEIRS = "theirs"


@dataclass(frozen=True)
class StudioConnection:
    """A run that is open for writing, and the project that it is linked to."""

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
    trust: bool = False,
    say: Callable[[str], None] = print,
    progress: ProgressCallback = quiet,
) -> Iterator[StudioConnection]:
    """Begin or resume the run in a folder and link it to the studio's project. The run is open for
    writing inside the context.

    pool      what is to be labelled, for a new run; without one the project's own tasks are
    settings  further ones of a new run, by section of tailor.toml
    ahead     see StudioSync; by default a quarter of a batch
    patience  seconds before the next try where Label Studio is away; without it that is an error
              (StudioUnreachable)
    trust     whether a run from elsewhere is trusted with what it reaches
    say       called with a message for the user
    progress  see ProgressCallback

    Raises InputError where run, pool and project don't fit, and NotTrusted where a run from
    elsewhere reaches what nobody has agreed to.
    """
    connecting = _Connecting(
        studio=studio,
        run=run,
        pool=pool,
        settings=settings or {},
        ahead=ahead,
        trust=trust,
        say=say,
        progress=progress,
    )
    connection = _with_patience(connecting.connect, patience, say)
    try:
        yield connection
    finally:
        connection.sync.session.store.close()


def _with_patience(
    connect: Callable[[], StudioConnection], patience: float | None, say: Callable[[str], None]
) -> StudioConnection:
    """connect(), tried again while Label Studio is away."""
    failures = 0
    while True:
        try:
            connection = connect()
        except StudioUnreachable as error:
            if patience is None:
                raise
            if not failures:
                say(f"{error}. Waiting for it; Ctrl-C ends this.")
            failures += 1
            time.sleep(pause(patience, failures))
        else:
            if failures:
                say("Label Studio is there.")
            return connection


@dataclass(frozen=True)
class _Connecting:
    """What `connected` was given. After StudioUnreachable, `connect` can be called again."""

    studio: Studio
    run: Path
    pool: Path | None
    settings: dict[str, dict[str, Any]]
    ahead: int | None
    trust: bool
    say: Callable[[str], None]
    progress: ProgressCallback

    def connect(self) -> StudioConnection:
        # First: what others put into the folder must not be used before it is trusted.
        self._check_trusted()
        project_settings = self.studio.describe()
        config = LabelConfig.read(project_settings["label_config"])
        is_begun = (self.run / toml.FILE).exists()
        # Nothing is written before it is known to fit.
        self._check_run(config, is_begun)
        tasks = self._source_of_tasks(is_begun)
        self.run.mkdir(parents=True, exist_ok=True)
        project_link = ProjectLink.find_or_create(
            self.run,
            self.studio.url,
            project_settings,
            tasks,
        )
        # Its secret was made here, or was trusted above.
        remember(self.run, studio_reaches(self.run))
        task_pool = None
        example_of: Callable[[int, dict[str, Any]], str | None] = _pushed_example
        if tasks == THEIRS:
            task_pool = TaskPool(self.run, self.studio, config, self.say)
            example_of = task_pool.example_of
        task_mirror = TaskMirror(self.studio, config, example_of)
        if task_pool is not None:
            self._copy_tasks(task_mirror, task_pool)
        if not is_begun:
            self._begin_run(config, task_pool)
        sync = self._open_run(config, task_mirror, task_pool)
        return StudioConnection(sync, project_link)

    def _check_trusted(self) -> None:
        """Raises NotTrusted where the folder's secret, links or settings came from elsewhere."""
        reaches = [*link_reaches(self.run), *studio_reaches(self.run)]
        if (self.run / toml.FILE).exists():
            reaches += run_reaches(toml.read(self.run))
        check_trusted(self.run, reaches, trust=self.trust)

    def _check_run(self, config: LabelConfig, is_begun: bool) -> None:
        """Raises InputError unless the run, its pool and the label config fit."""
        if is_begun:
            if self.pool is not None:
                raise InputError(
                    f"{self.run / toml.FILE} names the pool already: leave --pool out, or name "
                    "another --run"
                )
            run_kind = Project(self.run, trust=self.trust).settings.kind
            if run_kind != config.kind:
                raise InputError(
                    f"the label config is {config.kind}, the run in {self.run} {run_kind}: name "
                    "another --run"
                )
            return
        Settings(config.kind, config.classes).task  # noqa: B018  checks the class names
        if self.pool is not None:
            check_shown(open_pool(self.pool), config)

    def _source_of_tasks(self, is_begun: bool) -> str:
        """PUSHED or THEIRS: as it was when the run was linked, or as a new link will be."""
        project_link = ProjectLink.find(self.run)
        if project_link is not None:
            return project_link.tasks
        if self.pool or is_begun:
            return PUSHED
        return THEIRS

    def _copy_tasks(self, task_mirror: TaskMirror, task_pool: TaskPool) -> None:
        task_mirror.refresh()
        task_pool.copy(task_mirror.tasks.values())
        if not task_pool.size:
            raise InputError(
                f"project {self.studio.project} has no task to label: import some there, or give "
                "--pool"
            )

    def _begin_run(self, config: LabelConfig, task_pool: TaskPool | None) -> None:
        """Write the tailor.toml of a new run."""
        if task_pool is not None:
            pool_section = task_pool.settings()
        else:
            path_from_run = os.path.relpath(self.pool or "", self.run.resolve())
            pool_section = {"path": path_from_run}
        sections = {
            **self.settings,
            "task": {"kind": config.kind, "classes": list(config.classes)},
            "pool": pool_section,
        }
        toml.write(self.run, sections)
        remember_settings(self.run)

    def _open_run(
        self,
        config: LabelConfig,
        task_mirror: TaskMirror,
        task_pool: TaskPool | None,
    ) -> StudioSync:
        project = Project(self.run, trust=self.trust)
        session = project.session(self.progress)
        try:
            add_classes(session, config)
            publisher = Publisher(
                task_mirror,
                session,
                creates_tasks=task_pool is None,
                say=self.say,
            )
            ahead = self.ahead
            if ahead is None:
                ahead = max(1, project.settings.batch // 4)
            return StudioSync(
                session,
                task_mirror,
                publisher,
                task_pool,
                ahead=ahead,
                say=self.say,
            )
        except BaseException:
            session.store.close()
            raise


def _pushed_example(task_id: int, data: dict[str, Any]) -> str | None:
    """Our id in a task's data; tasks that others put into the project have none."""
    example = data.get(ID_KEY)
    if isinstance(example, str):
        return example
    return None
