"""A run in a folder: tailor.toml, the store, the feature cache. What the commands work on."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tailor.common.checks import check_flag, check_instance
from tailor.errors import InputError, TailorError
from tailor.models import make_model
from tailor.models.base import Model, Notice, quiet
from tailor.models.base import ProgressCallback as ProgressCallback
from tailor.models.widths import feature_width
from tailor.pools import open_pool
from tailor.pools.base import Pool
from tailor.run import config
from tailor.run.answer_writer import AnswerWriter
from tailor.run.config_errors import with_place
from tailor.run.model_runner import ModelRunner
from tailor.run.model_session import MakeModelRunner
from tailor.run.reaches import CACHE, ENGINE, STORE, run_reaches, selection_reaches
from tailor.run.replay import begun_with, is_list_of_names, rebuild
from tailor.run.session import Session
from tailor.run.settings import Settings
from tailor.run.state import RunState
from tailor.run.stopping import Budget, ClassCounts, Plateau, StoppingRule, TargetAccuracy
from tailor.run.trust import check_trusted
from tailor.storage import (
    Event,
    Store,
    StoreError,
    StoreOutdated,
    is_begun,
    open_store,
    parse_place,
)
from tailor.task import Task

#: stopping rules by their keys in [stop]
RULES: dict[str, Callable[[Any], StoppingRule]] = {
    "budget": Budget,
    "accuracy": TargetAccuracy,
    "plateau": Plateau,
    "per_class": ClassCounts,
}


class Project:
    """The folder of a run.

    trust  whether a run from elsewhere is trusted with all that its settings reach
           (docs/concepts/trust.md); it is remembered

    Raises InputError where the folder holds no run or its settings are wrong, and NotTrusted where
    it reaches what nobody has agreed to.
    """

    def __init__(self, folder: str | os.PathLike[str], *, trust: bool = False) -> None:
        check_instance(folder, (str, os.PathLike), "folder", "a path")
        check_flag(trust, "trust")
        self.folder = Path(folder)
        self.config = config.read(self.folder)
        # Before anything else: the rest opens the store, and imports what the settings name.
        reaches = run_reaches(self.config)
        check_trusted(self.folder, reaches, trust=trust)
        self._trust = trust
        self.place = store_place(self.config)
        self.settings = self._settings()
        #: what a user should know about tailor.toml and the run, in words
        self.notes: list[str] = []
        self._follow_classes()

    @property
    def folders(self) -> list[Path]:
        """Where its files lie: the run with its features, its pool, copies of that, and its
        store.
        """
        pool = self.config.section("pool")
        folders = [self.folder]
        if "://" not in pool["path"]:  # not an address
            folders.append(self.folder / pool["path"])
        if "cache" in pool:
            folders.append(Path(pool["cache"]))
        if isinstance(self.place, Path):
            folders.append(self.place.parent)
        return folders

    def store(self, *, readonly: bool = False) -> Store:
        """Where the answers are kept; in PostgreSQL the folder's name is the run's, unless the URL
        names one.
        """
        try:
            return open_store(self.place, run=run_name(self.folder), readonly=readonly)
        except StoreOutdated as error:
            raise error.of_run(self.folder) from error

    def begun(self) -> bool:
        try:
            return is_begun(self.place, run_name(self.folder))
        except StoreOutdated as error:
            raise error.of_run(self.folder) from error

    def _settings(self) -> Settings:
        task = self.config.section("task")
        selection = self.config.section("selection")
        self._resolve_auto(selection)
        # Again: what "auto" stood for is read from the store, which may have come from elsewhere.
        check_trusted(self.folder, selection_reaches(selection), trust=self._trust)
        selection["strategies"] = tuple(selection["strategies"])
        classes = tuple(task["classes"])
        try:
            settings = Settings(task["kind"], classes, **selection)
            settings.task  # noqa: B018  checks the class names
            RunState(settings)  # checks strategies, selector and reward
        except TailorError as error:
            message = with_place(error, self.config, "task", "selection")
            raise InputError(message) from error
        return settings

    def _resolve_auto(self, selection: dict[str, Any]) -> None:
        """What "auto" stood for when the run was begun, whatever it stands for today."""
        are_auto = []
        for key, value in selection.items():
            if value in ("auto", ["auto"]):
                are_auto.append(key)
        if not are_auto:
            return
        settings_then = self._settings_then()
        for key in are_auto:
            if key in settings_then:
                selection[key] = settings_then[key]

    def _settings_then(self) -> dict[str, Any]:
        """What the run was begun with; empty where it was not yet."""
        opened = self._events("opened")
        if not opened:
            return {}
        return begun_with(opened[0])

    def _follow_classes(self) -> None:
        """Classes that were added, renamed or merged in the run count, whatever tailor.toml still
        lists.
        """
        edits = self._events("classes")
        if not edits:
            return
        classes_now = _edited_classes(edits[-1])
        settings_then = self._settings_then()
        classes_then = tuple(settings_then.get("classes", classes_now))
        listed = self.settings.classes
        if listed == classes_now:
            return
        # Any other list was edited by hand: it is refused when the run is opened.
        if listed != classes_then:
            return
        place = self.config.place("task", "classes")
        names = ", ".join(classes_now)
        note = f"{place}: the classes were changed in the run to {names}: those count"
        self.notes.append(note)
        warnings.warn(note, Notice, stacklevel=3)
        self.settings = replace(self.settings, classes=classes_now)

    def _events(self, kind: str) -> list[Event]:
        if not self.begun():
            return []
        with self.store(readonly=True) as store:
            return list(store.find(kind))

    def pool(self) -> Pool:
        options = self.config.section("pool")
        path = options.pop("path")
        if "://" not in path:  # not an address
            path = self.folder / path
        # The files of a Parquet pool, in the order in which they joined.
        description = _last_description(self._events("pool"))
        order = description.get("order")
        if order is not None:
            options["order"] = order
        try:
            return open_pool(path, **options)
        except InputError as error:
            message = with_place(error, self.config, "pool")
            raise InputError(message) from error

    def model(self, pool: Pool, task: Task | None = None, **changes: Any) -> Model:
        """task: other classes than the run's, before they are changed."""
        name, options = _model_options(self.config)
        options |= changes
        if task is None:
            task = self.settings.task
        try:
            return make_model(
                name,
                task,
                pool,
                **options,
            )
        except InputError as error:
            message = with_place(error, self.config, "model")
            raise InputError(message) from error

    def feature_width(self, pool: Pool) -> int | None:
        """d of the model's features, without making it; None where that can't be told."""
        name, options = _model_options(self.config)
        try:
            return feature_width(name, pool, **options)
        except InputError as error:
            message = with_place(error, self.config, "model")
            raise InputError(message) from error

    def _engine_setup(self) -> Any:
        """The engine that [engine] names, with its folder; None where predictions are held in
        memory.
        """
        from tailor.compute.model_work import Copy
        from tailor.run.engine_model_runner import make_engine_setup

        name, options = _model_options(self.config)

        def copy_of(model: Model) -> Copy:
            return Copy(
                task=model.task,
                pool=model.pool.describe(),
                model=name,
                options=options,
            )

        engine = self.config.section("engine")
        try:
            return make_engine_setup(engine, self.folder / ENGINE, copy_of)
        except InputError as error:
            message = with_place(error, self.config, "engine")
            raise InputError(message) from error

    def rules(self) -> list[StoppingRule]:
        """The stopping rules of [stop]."""
        stop = self.config.section("stop")
        rules = []
        for key, value in stop.items():
            make_rule = RULES[key]
            try:
                rule = make_rule(value)
            except InputError as error:
                place = self.config.place("stop", key)
                raise InputError(f"{place}: {key}: {error}") from error
            rules.append(rule)
        return rules

    def answer_writer(self) -> AnswerWriter:
        """Open the run for answers alone: needs neither the pool nor the model."""
        if not self.begun():
            raise InputError(f"nothing was asked in {self.folder} yet: `tailor ask` begins the run")
        store = self.store()
        try:
            return AnswerWriter(store, self.settings)
        except BaseException:
            # Nobody else could close it, and it keeps other processes out.
            store.close()
            raise

    def session(
        self, progress: ProgressCallback = quiet, stop: Sequence[StoppingRule] | None = None
    ) -> Session:
        """Open the run for writing."""
        pool = self.pool()
        engine_setup = self._engine_setup()
        model = self.model(pool)
        make_model_runner: MakeModelRunner = ModelRunner
        if engine_setup is not None:
            make_model_runner = engine_setup.model_runner
        # Last: whoever has the store open keeps all others out.
        store = self.store()
        try:
            rules = stop
            if rules is None:
                rules = self.rules()
            return Session(
                store,
                pool,
                model,
                self.settings,
                stop=rules,
                progress=progress,
                remodel=lambda task: self.model(pool, task),
                model_runner=make_model_runner,
            )
        except BaseException:
            store.close()
            raise

    def run_state(self) -> RunState:
        """What is known, without touching anything; also while another process writes."""
        if not self.begun():  # nothing was asked yet
            return RunState(self.settings)
        with self.store(readonly=True) as store:
            return rebuild(self.settings, store)


def store_place(settings: config.Config) -> str | Path:
    """Where the store of a run is."""
    # The environment wins: a password is better kept out of tailor.toml.
    store = os.environ.get("TAILOR_STORE")
    if not store:
        run_options = settings.section("run")
        store = run_options.get("store", STORE)
    return parse_place(store, settings.folder)


def trusted_store_place(settings: config.Config) -> str | Path:
    """store_place() of a run that is trusted with what it reaches; raises NotTrusted of others."""
    check_trusted(settings.folder, run_reaches(settings))
    return store_place(settings)


def run_name(folder: Path) -> str:
    """What a run is called where several share a database."""
    return folder.resolve().name


def _model_options(settings: config.Config) -> tuple[str, dict[str, Any]]:
    """The model's name and options."""
    options = settings.section("model")
    name = options.pop("name")
    plain_name, _, _ = name.partition("(")
    if plain_name.strip() == "probe":
        cache = settings.folder.absolute() / CACHE
        options.setdefault("cache", str(cache))
    return name, options


def _last_description(events: list[Event]) -> dict[str, Any]:
    """What the pool said of itself when examples joined last; empty where it said nothing.

    events: those of kind "pool"
    """
    if not events:
        return {}
    description = events[-1].body.get("pool")
    if isinstance(description, dict):
        return description
    return {}


def _edited_classes(edit: Event) -> tuple[str, ...]:
    """The class list after an edit. Raises StoreError where the event has none."""
    names = edit.body.get("classes")
    if not is_list_of_names(names):
        raise StoreError(f"event {edit.number} (classes) is damaged: restore a copy of the store")
    return tuple(names)
