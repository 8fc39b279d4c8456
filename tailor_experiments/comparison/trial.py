"""One trial: a durable session in a folder of its own, and a row for every round of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from tailor import __version__
from tailor.capacity.peak_memory import reset_peak
from tailor.common.atomic_files import write_atomically
from tailor.errors import InputError
from tailor.models import registry
from tailor.models.base import ProgressCallback, quiet
from tailor.run.session import Asked, Session
from tailor.run.settings import Settings
from tailor.storage import SqliteStore
from tailor_experiments import metrics
from tailor_experiments.comparison.experiment import Contender, Experiment, config_hash
from tailor_experiments.comparison.material import material
from tailor_experiments.comparison.rows import ROWS, RUNS, Row, RowFile
from tailor_experiments.comparison.stopwatch import Stopwatch, peaks
from tailor_experiments.datasets.base import Dataset

CACHE, CONFIG, STORE = "cache", "trial.json", "run.db"
PACKAGES = ("numpy", "scipy", "torch", "scikit-learn", "numba")


def trial_settings(
    experiment: Experiment, contender: Contender, seed: int, data: Dataset
) -> Settings:
    """The experiment must be complete()."""
    return Settings(
        data.task.kind,
        data.task.classes,
        strategies=contender.families,
        selector=contender.selector,
        reward=contender.reward or experiment.reward,
        batch=experiment.batch,
        rounds=experiment.rounds,
        holdout=0.0,
        seed=seed,
    )


def trial_folder(out: Path, contender: Contender, seed: int) -> Path:
    return out / RUNS / f"{contender.folder}-{seed}"


def check_config(folder: Path, config: dict[str, Any]) -> bool:
    """Whether the trial was begun before; with another configuration it can't go on."""
    path = folder / CONFIG
    if not path.exists():
        return False
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(
            f"{path} is damaged: {error}; delete the folder {folder} to run that trial anew"
        ) from error
    if there["hash"] != config_hash(config):
        changed = [k for k in config if there.get(k) != json.loads(json.dumps(config[k]))]
        raise InputError(
            f"{folder} holds a trial of another configuration ({', '.join(changed)} differ): "
            "write to another folder with --out, or delete this one"
        )
    return True


def write_config(folder: Path, config: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = {"hash": config_hash(config), **config}
    write_atomically(folder / CONFIG, json.dumps(content, indent=1))


class Trial:
    """A contender with a seed. The same seed gives every contender the same first batch and initial
    weights.

    The row of a round is written before the answers of the next one are told; so whenever a trial
    is interrupted, what is missing can still be measured, and no row is written twice.
    """

    def __init__(
        self,
        experiment: Experiment,
        contender: Contender,
        seed: int,
        out: Path,
        *,
        cache: Path | None = None,
        progress: ProgressCallback = quiet,
    ) -> None:
        self.experiment = experiment
        self.contender = contender
        self.seed = seed
        self.folder = trial_folder(out, contender, seed)
        self.config = experiment.trial_config(contender, seed)
        if not check_config(self.folder, self.config):
            write_config(self.folder, self.config)
        self.material = material(experiment, cache or out / CACHE, seed)
        self.data = self.material.data
        self.model = self.material.model
        self.test_model = self.material.test_model
        self.watch = Stopwatch(self.model)
        settings = trial_settings(experiment, contender, seed, self.data)
        self.store = SqliteStore(
            self.folder / STORE
        )  # first: it keeps a second process from the rows too
        try:
            self.rows = RowFile(self.folder / ROWS)
            self.session = Session(
                self.store, self.data.pool, self.model, settings, progress=progress
            )
        except BaseException:
            self.store.close()
            raise
        totals = self.data.labels.sum(0, dtype=np.int64)
        self.rarest_class = int(np.where(totals > 0, totals, totals.max() + 1).argmin())
        self.resumed = len(self.session.run_state.rounds) > 0

    def run(self, tell: Callable[[Row], None] = lambda row: None) -> list[Row]:
        """To the last round; `tell` hears of every new row."""
        reset_peak()
        try:
            if len(self.rows) > self.experiment.rounds:  # it was done before
                return self.rows.rows
            for number in range(self._answered_rounds(), self.experiment.rounds + 1):
                if not self._round(number, tell):
                    break
            last = len(self.session.run_state.rounds)
            if len(self.rows) < last:
                with self.watch.stage("all"):
                    self._train(last)
                tell(self._measure(last - 1, self._pool_probs()))
            return self.rows.rows
        finally:
            self.watch.release()
            self.store.close()

    def _answered_rounds(self) -> int:
        run_state = self.session.run_state
        current = run_state.current
        over = current is None or (current.asked >= current.size and not self.session.waiting())
        return len(run_state.rounds) - (0 if over else 1)

    def _round(self, number: int, tell: Callable[[Row], None]) -> bool:
        """Ask, write the row of the round before, answer. False where nothing is left to ask."""
        session = self.session
        probs = None
        if len(session.run_state.rounds) == number or not session.waiting():
            with self.watch.stage("all"):
                asked = self._ask()
            if asked.stopped:
                return False
            probs = session.probs
        if len(self.rows) < number:
            if probs is None:
                # Interrupted after asking: the same labels and seed give the same model again.
                with self.watch.stage("all"):
                    self._train(number)
                probs = self._pool_probs()
            tell(self._measure(number - 1, probs))
        self._answer()
        while (current := session.run_state.current) is not None and current.asked < current.size:
            with self.watch.stage("all"):
                self._ask()
            self._answer()
        return True

    def _ask(self) -> Asked:
        """The whole round; one example where a contender is told each label before the next
        pick.
        """
        return self.session.ask(1 if self.contender.reveal else None)

    def _answer(self) -> None:
        position = self.session.run_state.position
        many = self.data.task.kind == "multi-label"
        pick_records = self.session.waiting()
        chosen = {
            s.id: np.flatnonzero(self.data.labels[position[s.id]]).tolist() for s in pick_records
        }
        self.session.tell(
            {one: found if many else found[0] for one, found in chosen.items()}, by="experiment"
        )

    def _train(self, number: int) -> None:
        self.model.prepare()
        self.session.train(number)

    def _pool_probs(self) -> np.ndarray:
        with self.watch.stage("all"):
            return self.session.predict(np.arange(len(self.data.labels)))[0]

    def _measure(self, number: int, probs: np.ndarray) -> Row:
        data = self.data
        kind = self.data.task.kind
        rarest = self.rarest_class
        counts = self.session.run_state.label_table.counts
        run_state = self.session.run_state
        picks = run_state.label_table.picks
        taken = Counter(arm for arm in picks.arm[picks.round == number].tolist() if arm >= 0)
        pulls = {run_state.learner.arms[arm].name: count for arm, count in sorted(taken.items())}
        row: Row = {
            "experiment": self.experiment.name,
            "data": data.name,
            "model": model_text(self.experiment.model),
            "task": kind,
            "classes": data.task.size,
            "metric": "mAP" if kind == "multi-label" else "balanced accuracy",
            "contender": self.contender.label,
            "selector": self.contender.selector,
            "families": list(self.contender.families),
            "reward": self.contender.reward or self.experiment.reward,
            "seed": self.seed,
            "round": number,
            "rounds": self.experiment.rounds,
            "labels": len(run_state.label_table.labelled),
            "score": metrics.score(kind, data.labels, probs),
            "rarest_accuracy": metrics.rarest_score(kind, data.labels, probs, rarest),
            **self._on_test(),
            "rarest": int(counts.min()),
            "rarest_class": data.task.classes[rarest],
            "rarest_class_labels": int(counts[rarest]),
            "imbalance": metrics.imbalance_ratio(counts),
            "positives": int(counts.sum()),
            "pulls": pulls,
            "top_pulls": max(pulls.values(), default=0),
            "off_uniform": off_uniform(run_state.rounds[number].chances),
            "seconds": self._seconds(),
            **peaks(),
            "versions": versions(),
            "config": config_hash(self.config),
            "resumed": self.resumed,
        }
        self.rows.append(row)
        self.resumed = False
        return row

    def _on_test(self) -> dict[str, float]:
        if self.test_model is None or self.data.test_pool is None or self.data.test_labels is None:
            return {}
        kind = self.data.task.kind
        labels = self.data.test_labels
        with self.watch.stage("test"):
            self.material.hand_over()
            probs = self.test_model.predict(np.arange(len(self.data.test_pool))).probs
        found = {"test_score": metrics.score(kind, labels, probs)}
        if labels[:, self.rarest_class].any():
            found["test_rarest_accuracy"] = metrics.rarest_score(
                kind, labels, probs, self.rarest_class
            )
        return found

    def _seconds(self) -> dict[str, float]:
        """Since the row before: `select` is all of opening and taking a round but the model's
        part.
        """
        spent = self.watch.seconds
        model = {stage: spent[stage] for stage in ("train", "predict", "prepare")}
        stages = {
            **model,
            "select": max(0.0, spent["all"] - sum(model.values())),
            "test": spent["test"],
        }
        spent.clear()
        return {stage: round(value, 4) for stage, value in stages.items()}


def off_uniform(chances: np.ndarray | None) -> float:
    """How far the chance (M,) of an arm for a slot lies from 1/M at most; 0 where no arm was
    drawn.
    """
    return 0.0 if chances is None else float(np.abs(chances - 1 / len(chances)).max())


def model_text(given: dict[str, Any]) -> str:
    """A model's name and options in one text; epochs too where they are the default.

    >>> model_text({"name": "finetune(lr=0.001)", "network": "small-cnn", "device": "cuda"})
    'finetune(lr=0.001, network=small-cnn, epochs=10)'
    """
    name, own = registry.parse(given.get("name", "probe"))
    options = own | {k: v for k, v in given.items() if k not in ("name", "device")}
    if (
        name in registry.names()
        and "epochs" in (known := registry.options(name))
        and "steps" not in options
    ):
        options.setdefault("epochs", known["epochs"].default)
    shown = (f"{k}={Path(v).name if k == 'weights' else v}" for k, v in options.items())
    return f"{name}({', '.join(shown)})" if options else name


@cache
def versions() -> dict[str, str]:
    """Of the packages that results depend on; this one's own also where it runs from a folder, not
    installed.
    """
    import platform

    found = {"tailor": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
