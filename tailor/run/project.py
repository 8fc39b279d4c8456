"""A run in a folder: tailor.toml, the store, the feature cache. What the commands work on."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tailor.common.checks import check_instance
from tailor.errors import InputError, TailorError, UnknownName
from tailor.models import make_model
from tailor.models.base import Model, Notice, quiet
from tailor.models.base import ProgressCallback as ProgressCallback
from tailor.models.widths import feature_width
from tailor.pools import open_pool
from tailor.pools.base import Pool
from tailor.run import config
from tailor.run.answer_writer import AnswerWriter
from tailor.run.model_runner import ModelRunner
from tailor.run.replay import begun_with, rebuild
from tailor.run.session import Session
from tailor.run.settings import Settings
from tailor.run.state import RunState
from tailor.run.stopping import Budget, ClassCounts, Plateau, StoppingRule, TargetAccuracy
from tailor.storage import Event, Store, StoreError, is_begun, open_store, parse_place
from tailor.task import Task

STORE, CACHE, ENGINE = "run.db", "cache", "engine"


class Project:
    """The folder of a run."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(check_instance(folder, (str, os.PathLike), "folder", "a path"))
        self.config = config.read(self.folder)
        self.settings = self._settings()
        where = os.environ.get("TAILOR_STORE") or self.config.section("run").get("store", STORE)
        self.place = parse_place(where, self.folder)
        #: what a user should know about tailor.toml and the run, in words
        self.notes: list[str] = []
        self._follow_classes()

    @property
    def folders(self) -> list[Path]:
        """Where its files lie: the run with its features, its pool, copies of that, and its
        store.
        """
        pool = self.config.section("pool")
        found = [self.folder]
        if "://" not in pool["path"]:  # not an address
            found.append(self.folder / pool["path"])
        if "cache" in pool:
            found.append(Path(pool["cache"]))
        if isinstance(self.place, Path):
            found.append(self.place.parent)
        return found

    def store(self, *, readonly: bool = False) -> Store:
        """Where the answers are kept; in PostgreSQL the folder's name is the run's, unless the URL
        names one.
        """
        return open_store(self.place, run=self.folder.resolve().name, readonly=readonly)

    def begun(self) -> bool:
        return is_begun(self.place, self.folder.resolve().name)

    def _settings(self) -> Settings:
        task = self.config.section("task")
        selection = self.config.section("selection")
        try:
            settings = Settings(
                task["kind"],
                tuple(task["classes"]),
                **{**selection, "strategies": tuple(selection["strategies"])},
            )
            settings.task  # noqa: B018  checks the class names
            RunState(settings)  # checks strategies, selector and reward
        except TailorError as error:
            raise InputError(self._blamed(error, "task", "selection")) from error
        return settings

    def _follow_classes(self) -> None:
        """Classes that were added, renamed or merged in the run count, whatever tailor.toml still
        lists.
        """
        edits = self._events("classes")
        now = begun = self.settings.classes
        if edits:
            names = edits[-1].body.get("classes")
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise StoreError(
                    f"event {edits[-1].number} (classes) is damaged: restore a copy of the store"
                )
            now = tuple(names)
            opened = self._events("opened")
            begun = tuple(begun_with(opened[0])["classes"]) if opened else now
        if now != self.settings.classes == begun:
            where = self.config.place("task", "classes")
            self.notes.append(
                f"{where}: the classes were changed in the run to {', '.join(now)}: those count"
            )
            warnings.warn(self.notes[-1], Notice, stacklevel=3)
            self.settings = replace(self.settings, classes=now)

    def _events(self, kind: str) -> list[Event]:
        if not self.begun():
            return []
        with self.store(readonly=True) as store:
            return list(store.find(kind))

    def _blamed(self, error: TailorError, *sections: str) -> str:
        """The error with the line of the key it is about, as far as that can be told."""
        text = str(error)
        given = [(s, key, value) for s in sections for key, value in self.config.section(s).items()]
        for section, key, value in given:
            values = [str(v) for v in (value if isinstance(value, list) else [value])]
            wrong = isinstance(error, UnknownName) and any(error.name in v for v in values)
            named = text.startswith((f"{key} is ", f"{key} {value!r} ")) or f", {key!r}:" in text
            if wrong or named or (key == "path" and str(value) in text):
                return f"{self.config.place(section, key)}: {key}: {text}"
        return f"{self.folder / config.FILE}: {text}"

    def pool(self) -> Pool:
        options = self.config.section("pool")
        path = options.pop("path")
        if "://" not in path:  # not an address
            path = self.folder / path
        order = self._described().get(
            "order"
        )  # the files of a Parquet pool, in the order in which they joined
        if order is not None:
            options["order"] = order
        try:
            return open_pool(path, **options)
        except InputError as error:
            raise InputError(self._blamed(error, "pool")) from error

    def _described(self) -> dict[str, Any]:
        found = self._events("pool")
        described = found[-1].body.get("pool") if found else None
        return described if isinstance(described, dict) else {}

    def model(self, pool: Pool, task: Task | None = None, **changes: Any) -> Model:
        """task: other classes than the run's, before they are changed."""
        name, options = self._model()
        try:
            return make_model(name, task or self.settings.task, pool, **{**options, **changes})
        except InputError as error:
            raise InputError(self._blamed(error, "model")) from error

    def feature_width(self, pool: Pool) -> int | None:
        """d of the model's features, without making it; None where that can't be told."""
        name, options = self._model()
        try:
            return feature_width(name, pool, **options)
        except InputError as error:
            raise InputError(self._blamed(error, "model")) from error

    def _model(self) -> tuple[str, dict[str, Any]]:
        """The model's name and options."""
        options = self.config.section("model")
        name = options.pop("name")
        if name.partition("(")[0].strip() == "probe":
            options.setdefault("cache", str(self.folder.absolute() / CACHE))
        return name, options

    def _plant(self) -> Any:
        """The engine that [engine] names, with its folder; None where predictions are held in
        memory.
        """
        from tailor.compute.model_work import Copy
        from tailor.run.engine_model_runner import make_plant

        name, options = self._model()
        try:
            return make_plant(
                self.config.section("engine"),
                self.folder / ENGINE,
                lambda model: Copy(model.task, model.pool.describe(), name, options),
            )
        except InputError as error:
            raise InputError(self._blamed(error, "engine")) from error

    def rules(self) -> list[StoppingRule]:
        stop = self.config.section("stop")
        kinds: dict[str, Callable[[Any], StoppingRule]] = {
            "budget": Budget,
            "accuracy": TargetAccuracy,
            "plateau": Plateau,
            "per_class": ClassCounts,
        }
        rules = []
        for key, value in stop.items():
            try:
                rules.append(kinds[key](value))
            except InputError as error:
                raise InputError(f"{self.config.place('stop', key)}: {key}: {error}") from error
        return rules

    def answer_writer(self) -> AnswerWriter:
        """Open the run for answers alone: needs neither the pool nor the model."""
        if not self.begun():
            raise InputError(f"nothing was asked in {self.folder} yet: `tailor ask` begins the run")
        store = self.store()
        try:
            return AnswerWriter(store, self.settings)
        except BaseException:
            store.close()
            raise

    def session(
        self, progress: ProgressCallback = quiet, stop: Sequence[StoppingRule] | None = None
    ) -> Session:
        """Open the run for writing."""
        pool = self.pool()
        plant = self._plant()
        model = self.model(pool)
        store = self.store()
        try:
            rules = self.rules() if stop is None else stop
            return Session(
                store,
                pool,
                model,
                self.settings,
                stop=rules,
                progress=progress,
                remodel=lambda task: self.model(pool, task),
                model_runner=plant.model_runner if plant else ModelRunner,
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
