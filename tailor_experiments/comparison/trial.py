"""One trial: a durable session in a folder of its own, and a row for every round of it."""

from __future__ import annotations

import json
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
from tailor_experiments.comparison import trial_columns as columns
from tailor_experiments.comparison.experiment import Contender, Experiment, config_hash
from tailor_experiments.comparison.provenance import versions
from tailor_experiments.comparison.rows import ROWS, RUNS, Row, RowFile
from tailor_experiments.comparison.stopwatch import Stopwatch, TimedModelRunner, peaks
from tailor_experiments.comparison.trial_data import material
from tailor_experiments.datasets.base import Dataset

#: in the results folder, or in that of a trial
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
        start=contender.start,
        cover=contender.cover,
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
    if begun_with["hash"] == config_hash(config):
        return True
    names = ", ".join(_different_keys(begun_with, config))
    raise InputError(
        f"{folder} holds a trial of another configuration ({names} differ): "
        "write to another folder with --out, or delete this one"
    )


def _different_keys(begun_with: dict[str, Any], config: dict[str, Any]) -> list[str]:
    """Keys of a configuration in which the one in the file differs."""
    plain = json.loads(json.dumps(config))  # tuples as lists, as they are in the file
    return [key for key, value in plain.items() if begun_with.get(key) != value]


def write_config(folder: Path, config: dict[str, Any]) -> None:
    """Begin a trial: from here on its folder is of this configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {"hash": config_hash(config), **config}
    # Whole or not at all: a half-written one would keep the trial from going on.
    write_atomically(folder / CONFIG, json.dumps(content, indent=1))


def _other_class(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """labels (K,) one-hot -> those of another class."""
    other_classes = np.flatnonzero(labels == 0)
    wrong = np.zeros_like(labels)
    wrong[rng.choice(other_classes)] = 1
    return wrong


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
        if cache is None:
            cache = out / CACHE
        self.material = material(
            experiment,
            contender,
            cache,
            seed,
        )
        self.data = self.material.data
        self.model = self.material.model
        self.test_model = self.material.test_model
        self.watch = Stopwatch()
        settings = trial_settings(
            experiment,
            contender,
            seed,
            self.data,
        )
        # The store before the rows: its lock keeps a second process from both.
        self.store = SqliteStore(self.folder / STORE)
        try:
            self.rows = RowFile(self.folder / ROWS)
            self.session = Session(
                self.store,
                self.data.pool,
                self.model,
                settings,
                progress=progress,
                model_runner=partial(TimedModelRunner, self.watch),
            )
        except BaseException:
            self.store.close()
            raise
        self.rarest_class = columns.rarest_class(self.data.labels)
        # Written into the next row: its seconds lack what was done before.
        self.resumed = len(self.session.run_state.rounds) > 0

    def run(self, on_row: Callable[[Row], None] = lambda row: None) -> list[Row]:
        """To the last round -> all rows. on_row: is called with every new row."""
        reset_peak()
        last_round = self.experiment.rounds
        try:
            if len(self.rows) > last_round:  # it was done before
                return self.rows.rows
            # Rounds before it are in the store, with their rows.
            first_open = self._answered_rounds()
            for number in range(first_open, last_round + 1):
                goes_on = self._round(number, on_row)
                if not goes_on:
                    break
            self._measure_last(on_row)
            return self.rows.rows
        finally:
            self.store.close()

    def _answered_rounds(self) -> int:
        """Rounds of which every answer was told."""
        rounds = len(self.session.run_state.rounds)
        if self._is_partly_asked() or self.session.waiting():
            return rounds - 1
        return rounds

    def _round(self, number: int, on_row: Callable[[Row], None]) -> bool:
        """Ask, write the row of the round before, answer. False where nothing is left to ask."""
        session = self.session
        probs = None
        is_new = len(session.run_state.rounds) == number
        if is_new or not session.waiting():
            asked = self._ask()
            if asked.stopped:
                return False
            probs = session.probs
        # The row is measured before the answers come: it must not see their labels.
        if len(self.rows) < number:
            if probs is None:
                # Interrupted after asking: the same labels and seed give the same model again.
                probs = self._train_and_predict(number)
            row = self._measure(number - 1, probs)
            on_row(row)
        self._answer()
        while self._is_partly_asked():
            self._ask()
            self._answer()
        return True

    def _is_partly_asked(self) -> bool:
        current = self.session.run_state.current
        if current is None:
            return False
        return current.asked < current.size

    def _measure_last(self, on_row: Callable[[Row], None]) -> None:
        """The row of the last round, which no later one asks after."""
        rounds = len(self.session.run_state.rounds)
        if len(self.rows) >= rounds:
            return
        probs = self._train_and_predict(rounds)
        row = self._measure(rounds - 1, probs)
        on_row(row)

    def _ask(self) -> Asked:
        """The whole round; one example where a contender is told each label before the next
        pick.
        """
        # None: as many as a round has left.
        size = 1 if self.contender.reveal else None
        with self.watch.stage("all"):
            return self.session.ask(size)

    def _answer(self) -> None:
        """Tell the known labels of all that is asked."""
        position = self.session.run_state.position
        answers: dict[str, Any] = {}
        for pick in self.session.waiting():
            labels = self._answer_to(position[pick.id])
            answers[pick.id] = self._as_told(labels)
        self.session.tell(answers, by="experiment")

    def _as_told(self, labels: np.ndarray) -> list[int] | int | None:
        """labels (K,) -> the classes, or the class, that an annotator names."""
        classes = np.flatnonzero(labels).tolist()
        if self.data.task.kind == "multi-label":
            return classes
        # What is of no class at all can only be skipped.
        return classes[0] if classes else None

    def _answer_to(self, position: int) -> np.ndarray:
        """(K,) what the annotator says, who is wrong at the experiment's rate: another class, or
        in a multi-label task each class flipped at that rate. The same in every contender's trial.
        """
        labels = self.data.labels[position]
        rate = self.experiment.wrong
        if rate == 0 or not labels.any():
            return labels
        # By the example, and not in the order of asking, which each contender has for itself.
        rng = np.random.default_rng((self.seed, position))
        if self.data.task.kind == "multi-label":
            is_flipped = rng.random(len(labels)) < rate
            return labels ^ is_flipped
        if rng.random() >= rate:
            return labels
        return _other_class(labels, rng)

    def _train_and_predict(self, number: int) -> np.ndarray:
        """Train the model of a round -> its probabilities (N, K) for the pool."""
        whole_pool = np.arange(len(self.data.labels))
        with self.watch.stage("all"):
            self.session.model_runner.prepare()
            self.session.train(number)
            probs, _ = self.session.predict(whole_pool)
        return probs

    def _measure(self, number: int, probs: np.ndarray) -> Row:
        """Write the row of a round. probs: (N, K), what the model trained after it says of the
        pool.
        """
        data = self.data
        run_state = self.session.run_state
        label_table = run_state.label_table
        row: Row = {
            **columns.setup(self.experiment, self.contender, data),
            "seed": self.seed,
            "round": number,
            "rounds": self.experiment.rounds,
            "labels": len(label_table.labelled),
            **columns.pool_scores(
                data.task.kind,
                data.labels,
                probs,
                self.rarest_class,
            ),
            **self._test_scores(),
            **columns.label_counts(data.task, label_table.counts, self.rarest_class),
            **columns.arm_pulls(run_state, number),
            # After the test set has been predicted, so that the stopwatch has that too.
            "seconds": columns.seconds(self.watch),
            **peaks(),
            "versions": versions(),
            "config": config_hash(self.config),
            "resumed": self.resumed,
        }
        self.rows.append(row)
        self.resumed = False
        return row

    def _test_scores(self) -> dict[str, float]:
        """The columns of the test set, where there is one."""
        pool = self.data.test_pool
        labels = self.data.test_labels
        if self.test_model is None or pool is None or labels is None:
            return {}
        whole_pool = np.arange(len(pool))
        with self.watch.stage("test"):
            self.material.hand_over()
            probs = self.test_model.predict(whole_pool).probs
        return columns.test_scores(
            self.data.task.kind,
            labels,
            probs,
            self.rarest_class,
        )
