"""One trial: a durable session in a folder of its own, and a row for every round of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tailor.capacity.peak_memory import reset_peak
from tailor.common.atomic_files import write_atomically
from tailor.errors import InputError
from tailor.models.base import ProgressCallback, quiet
from tailor.run.session import Asked, Session
from tailor.run.settings import Settings
from tailor.storage import SqliteStore
from tailor_experiments import metrics
from tailor_experiments.comparison.experiment import Contender, Experiment, config_hash
from tailor_experiments.comparison.provenance import model_text, versions
from tailor_experiments.comparison.rows import ROWS, RUNS, Row, RowFile
from tailor_experiments.comparison.stopwatch import (
    MODEL_STAGES,
    Stopwatch,
    TimedModelRunner,
    peaks,
)
from tailor_experiments.comparison.trial_data import material
from tailor_experiments.datasets.base import Dataset

CACHE = "cache"
CONFIG = "trial.json"
STORE = "run.db"


def trial_settings(
    experiment: Experiment,
    contender: Contender,
    seed: int,
    data: Dataset,
) -> Settings:
    """The settings of a trial's run. The experiment must be complete()."""
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
        begun_with = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(
            f"{path} is damaged: {error}; delete the folder {folder} to run that trial anew"
        ) from error
    if begun_with["hash"] != config_hash(config):
        plain = json.loads(json.dumps(config))  # tuples as lists, as they are in the file
        changed = [key for key in plain if begun_with.get(key) != plain[key]]
        raise InputError(
            f"{folder} holds a trial of another configuration ({', '.join(changed)} differ): "
            "write to another folder with --out, or delete this one"
        )
    return True


def write_config(folder: Path, config: dict[str, Any]) -> None:
    """Begin a trial: from here on its folder is of this configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {"hash": config_hash(config), **config}
    write_atomically(folder / CONFIG, json.dumps(content, indent=1))


class Trial:
    """A contender with a seed. The same seed gives every contender the same first batch and initial
    weights.

    The row of a round is written before the answers of the next one are told; so whenever a trial
    is interrupted, what is missing can still be measured, and no row is written twice.

    out    the results folder, in which the trial has a folder of its own
    cache  a folder for features, by default in `out`
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
        self.watch = Stopwatch()
        # The store before the rows: its lock keeps a second process from both.
        self.store = SqliteStore(self.folder / STORE)
        try:
            self.rows = RowFile(self.folder / ROWS)
            self.session = Session(
                self.store,
                self.data.pool,
                self.model,
                trial_settings(experiment, contender, seed, self.data),
                progress=progress,
                model_runner=partial(TimedModelRunner, self.watch),
            )
        except BaseException:
            self.store.close()
            raise
        self.rarest_class = rarest_class(self.data.labels)
        self.resumed = len(self.session.run_state.rounds) > 0

    def run(self, on_row: Callable[[Row], None] = lambda row: None) -> list[Row]:
        """To the last round -> all rows. on_row: is called with every new row."""
        reset_peak()
        try:
            if len(self.rows) > self.experiment.rounds:  # it was done before
                return self.rows.rows
            for number in range(self._answered_rounds(), self.experiment.rounds + 1):
                if not self._round(number, on_row):
                    break
            self._measure_last(on_row)
            return self.rows.rows
        finally:
            self.store.close()

    def _answered_rounds(self) -> int:
        """Rounds of which every answer was told."""
        run_state = self.session.run_state
        current = run_state.current
        if current is None:
            return len(run_state.rounds)
        all_asked = current.asked >= current.size
        if all_asked and not self.session.waiting():
            return len(run_state.rounds)
        return len(run_state.rounds) - 1

    def _round(self, number: int, on_row: Callable[[Row], None]) -> bool:
        """Ask, write the row of the round before, answer. False where nothing is left to ask."""
        session = self.session
        probs = None
        if len(session.run_state.rounds) == number or not session.waiting():
            asked = self._ask()
            if asked.stopped:
                return False
            probs = session.probs
        if len(self.rows) < number:
            if probs is None:
                # Interrupted after asking: the same labels and seed give the same model again.
                probs = self._train_and_predict(number)
            on_row(self._measure(number - 1, probs))
        self._answer()
        while self._is_partly_asked():
            self._ask()
            self._answer()
        return True

    def _is_partly_asked(self) -> bool:
        current = self.session.run_state.current
        return current is not None and current.asked < current.size

    def _measure_last(self, on_row: Callable[[Row], None]) -> None:
        """The row of the last round, which no later one asks after."""
        rounds = len(self.session.run_state.rounds)
        if len(self.rows) < rounds:
            probs = self._train_and_predict(rounds)
            on_row(self._measure(rounds - 1, probs))

    def _ask(self) -> Asked:
        """The whole round; one example where a contender is told each label before the next
        pick.
        """
        with self.watch.stage("all"):
            return self.session.ask(1 if self.contender.reveal else None)

    def _answer(self) -> None:
        """Tell the known labels of all that is asked."""
        position = self.session.run_state.position
        several = self.data.task.kind == "multi-label"
        answers: dict[str, Any] = {}
        for pick in self.session.waiting():
            classes = np.flatnonzero(self.data.labels[position[pick.id]]).tolist()
            answers[pick.id] = classes if several else classes[0]
        self.session.tell(answers, by="experiment")

    def _train_and_predict(self, number: int) -> np.ndarray:
        """Train the model of a round -> its probabilities (N, K) for the pool."""
        with self.watch.stage("all"):
            self.session.model_runner.prepare()
            self.session.train(number)
            probs, _ = self.session.predict(np.arange(len(self.data.labels)))
        return probs

    def _measure(self, number: int, probs: np.ndarray) -> Row:
        """Write the row of a round. probs: (N, K), what the model trained after it says of the
        pool.
        """
        data = self.data
        kind = data.task.kind
        run_state = self.session.run_state
        counts = run_state.label_table.counts
        pulls = self._pulls(number)
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
            "rarest_accuracy": metrics.rarest_score(
                kind,
                data.labels,
                probs,
                self.rarest_class,
            ),
            **self._test_scores(),
            "rarest": int(counts.min()),
            "rarest_class": data.task.classes[self.rarest_class],
            "rarest_class_labels": int(counts[self.rarest_class]),
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

    def _pulls(self, number: int) -> dict[str, int]:
        """arm -> examples that it chose in a round; those chosen at random have no arm."""
        run_state = self.session.run_state
        picks = run_state.label_table.picks
        pulled = Counter(arm for arm in picks.arm[picks.round == number].tolist() if arm >= 0)
        arms = run_state.learner.arms
        return {arms[arm].name: count for arm, count in sorted(pulled.items())}

    def _test_scores(self) -> dict[str, float]:
        """The columns of the test set, where there is one."""
        data = self.data
        if self.test_model is None or data.test_pool is None or data.test_labels is None:
            return {}
        with self.watch.stage("test"):
            self.material.hand_over()
            probs = self.test_model.predict(np.arange(len(data.test_pool))).probs
        kind = data.task.kind
        labels = data.test_labels
        rarest = self.rarest_class
        columns = {"test_score": metrics.score(kind, labels, probs)}
        if labels[:, rarest].any():
            rarest_score = metrics.rarest_score(kind, labels, probs, rarest)
            columns["test_rarest_accuracy"] = rarest_score
        return columns

    def _seconds(self) -> dict[str, float]:
        """Since the row before: `select` is all of opening and taking a round but the model's
        part.
        """
        spent = self.watch.seconds
        seconds: dict[str, float] = {stage: spent[stage] for stage in MODEL_STAGES}
        seconds["select"] = max(0.0, spent["all"] - sum(seconds.values()))
        seconds["test"] = spent["test"]
        spent.clear()
        return {stage: round(value, 4) for stage, value in seconds.items()}


def rarest_class(labels: np.ndarray) -> int:
    """labels (N, K) -> the class that occurs least, of those that do."""
    totals = labels.sum(0, dtype=np.int64)
    return int(np.where(totals > 0, totals, totals.max() + 1).argmin())


def off_uniform(chances: np.ndarray | None) -> float:
    """How far the chance (M,) of an arm for a slot lies from 1/M at most; 0 where no arm was
    drawn.
    """
    if chances is None:
        return 0.0
    return float(np.abs(chances - 1 / len(chances)).max())
