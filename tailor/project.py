"""A run in a folder: tailor.toml, the store, the feature cache. What the commands work on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tailor import config
from tailor.desk import Desk
from tailor.errors import InputError, TailorError, UnknownName
from tailor.journal import Journal
from tailor.models import make_model
from tailor.models.base import Model, quiet
from tailor.models.base import Progress as ProgressBar
from tailor.pools import open_pool
from tailor.pools.base import Pool
from tailor.session import Session
from tailor.settings import Settings
from tailor.stopping import Budget, ClassCounts, Plateau, Rule, TargetAccuracy
from tailor.store import SqliteStore

STORE, CACHE = "run.db", "cache"


class Project:
    """The folder of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = config.read(folder)
        self.settings = self._settings()

    def _settings(self) -> Settings:
        task, selection = self.config.section("task"), self.config.section("selection")
        try:
            settings = Settings(
                task["kind"],
                tuple(task["classes"]),
                **{**selection, "families": tuple(selection["families"])},
            )
            settings.task  # noqa: B018  checks the class names
            Journal(settings)  # checks families, selector and reward
        except TailorError as error:
            raise InputError(self._blamed(error, "task", "selection")) from error
        return settings

    def _blamed(self, error: TailorError, *sections: str) -> str:
        """The error with the line of the key it is about, as far as that can be told."""
        text = str(error)
        given = [(s, key, value) for s in sections for key, value in self.config.section(s).items()]
        for section, key, value in given:
            values = [str(v) for v in (value if isinstance(value, list) else [value])]
            wrong = isinstance(error, UnknownName) and any(error.name in v for v in values)
            named = text.startswith((f"{key} is ", f"{key} {value!r} ")) or f", {key!r}:" in text
            if wrong or named or (key == "path" and str(value) in text):
                return f"{config.where(self.config, section, key)}: {key}: {text}"
        return f"{self.folder / config.FILE}: {text}"

    def pool(self) -> Pool:
        options = self.config.section("pool")
        path = Path(options.pop("path"))
        order = self._described().get("order")  # the files of a Parquet pool, in the order in which they joined
        if order is not None:
            options["order"] = order
        try:
            return open_pool(path if path.is_absolute() else self.folder / path, **options)
        except InputError as error:
            raise InputError(self._blamed(error, "pool")) from error

    def _described(self) -> dict[str, Any]:
        if not (self.folder / STORE).exists():
            return {}
        with SqliteStore(self.folder / STORE, readonly=True) as store:
            found = [event.body["pool"] for event in store.events() if event.kind == "pool"]
        return found[-1] or {} if found else {}

    def model(self, pool: Pool, **changes: Any) -> Model:
        options = self.config.section("model")
        name = options.pop("name")
        if name.partition("(")[0].strip() == "probe":
            options.setdefault("cache", self.folder / CACHE)
        try:
            return make_model(name, self.settings.task, pool, **{**options, **changes})
        except InputError as error:
            raise InputError(self._blamed(error, "model")) from error

    def rules(self) -> list[Rule]:
        stop = self.config.section("stop")
        kinds: dict[str, Callable[[Any], Rule]] = {
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
                raise InputError(f"{config.where(self.config, 'stop', key)}: {key}: {error}") from error
        return rules

    def desk(self) -> Desk:
        """Open the run for answers alone: needs neither the pool nor the model."""
        if not (self.folder / STORE).exists():
            raise InputError(f"nothing was asked in {self.folder} yet: `tailor ask` begins the run")
        store = SqliteStore(self.folder / STORE)
        try:
            return Desk(store, self.settings)
        except BaseException:
            store.close()
            raise

    def session(self, progress: ProgressBar = quiet, stop: Sequence[Rule] | None = None) -> Session:
        """Open the run for writing."""
        pool = self.pool()
        model = self.model(pool)
        store = SqliteStore(self.folder / STORE)
        try:
            rules = self.rules() if stop is None else stop
            return Session(store, pool, model, self.settings, stop=rules, progress=progress)
        except BaseException:
            store.close()
            raise

    def journal(self) -> Journal:
        """What is known, without touching anything; also while another process writes."""
        journal = Journal(self.settings)
        if not (self.folder / STORE).exists():  # nothing was asked yet
            return journal
        with SqliteStore(self.folder / STORE, readonly=True) as store:
            for event in store.events():
                if event.kind == "opened":
                    self.settings.check_same(event.body["settings"])
                journal.apply(event, store)
        return journal
