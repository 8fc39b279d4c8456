"""A durable run in one line of Python."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from tailor.common.checks import check_flag, check_function, check_instance, check_list
from tailor.errors import InputError
from tailor.models.base import ProgressCallback, quiet
from tailor.run import config
from tailor.run.begin import PoolPath, begin_run, check_same_pool, run_folder
from tailor.run.export import export, export_format
from tailor.run.holdout import HoldoutEstimate
from tailor.run.model_card import check_place, write_card
from tailor.run.project import Project
from tailor.run.run_options import (
    check_options,
    check_same_settings,
    in_sections,
    task_section,
)
from tailor.run.session import Asked, PickRecord, Session
from tailor.task import Task

#: a class by name or index, several of them in a multi-label task, None to skip
LabelAnswer = str | int | Sequence[str | int] | None


@dataclass(frozen=True)
class PoolPredictions:
    """What a model says of examples."""

    ids: tuple[str, ...]  # n
    probs: np.ndarray  # (n, K)
    task: Task

    @property
    def classes(self) -> list[str | list[str]]:
        """Of each example the predicted class; for a multi-label task a list of classes."""
        names: list[str | list[str]] = []
        for row in self.task.predicted(self.probs):
            names_of_row = []
            for k in np.flatnonzero(row):
                names_of_row.append(self.task.classes[k])
            if self.task.kind == "multi-label":
                names.append(names_of_row)
            else:
                names.append(names_of_row[0])
        return names


class Run:
    """A run that is open for labelling: its folder, its pool, its model and its store.

    Everything told is on disk when the call returns. One process at a time has a run open; close
    it, or use it in a `with` statement. `open_run` opens one.

    project  the folder and its settings
    session  what does the work; it has more than is shown here (classes that change, offers)
    """

    def __init__(self, project: Project, progress: ProgressCallback = quiet) -> None:
        self.project = project
        self.session: Session = project.session(progress)
        self._trained_as_of: int | None = None  # the run's last event that the model has learned

    @property
    def folder(self) -> Path:
        return self.project.folder

    @property
    def classes(self) -> tuple[str, ...]:
        return self.session.run_state.task.classes

    def ask(self, n: int | None = None) -> Asked:
        """Examples to label: those that wait for an answer first, then new ones.

        n  how many at the most; by default what waits, or the rest of the round where nothing
           does. A new round is opened when the last one is over: the model is trained, the
           selector learns, and the arms choose.

        Each has an `id`, and the `arm`, `chance` and prediction behind it. Empty where the run is
        over, with the reason in `stopped`.
        """
        waiting = self.session.waiting()
        if not waiting:
            return self.session.ask(n)
        if n is None or len(waiting) >= n:
            return Asked(tuple(waiting[:n]))
        new = self.session.ask(n - len(waiting))
        return Asked((*waiting, *new))

    def tell(self, answers: Mapping[str, LabelAnswer], by: str | None = None) -> None:
        """Answers by id: a class name or index, a list of them (multi-label), or None to skip.

        In part, late, in any order, again or corrected. With a bad one among them, none is taken.

        by  who answered
        """
        self.session.tell(answers, by)

    def stream(self) -> Iterator[PickRecord]:
        """One example at a time until the run is over. Tell its answer before you take the next."""
        return self.session.stream()

    def train(
        self, folder: str | os.PathLike[str] | None = None, *, overwrite: bool = False
    ) -> HoldoutEstimate | None:
        """Train the model on all answers but the hold-out's.

        folder     where to save it, with a card of what it was trained on; by default it is kept
                   in memory
        overwrite  whether a model that is in the folder may be written over

        Returns how it does on the hold-out; None where none of that is answered. Raises InputError
        where nothing is labelled, and for a folder that holds something else.
        """
        # Before the training, which may take long.
        if folder is not None:
            check_place(Path(folder), overwrite)
        estimate = self.session.final_fit()
        self._trained_as_of = self.session.run_state.event
        if folder is not None:
            self._save_model(Path(folder), estimate)
        return estimate

    def _save_model(self, folder: Path, estimate: HoldoutEstimate | None) -> None:
        """Write the model and its card to a folder, which is made where it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        self.session.model.save(folder)
        model_options = self.project.config.section("model")
        write_card(
            folder,
            self.session,
            model_options,
            estimate,
        )

    def predict(self, ids: Sequence[str] | None = None) -> PoolPredictions:
        """What the model says, trained on all answers so far.

        ids  of which examples; by default of all that can be read
        """
        self._train_if_outdated()
        run_state = self.session.run_state
        if ids is None:
            positions = self._readable_positions()
        else:
            positions = [self._position(example_id) for example_id in ids]
        # With a type: an empty list would become an array of floats.
        position_array = np.array(positions, np.int64)
        probs, _ = self.session.predict(position_array)
        predicted_ids = [run_state.ids[position] for position in positions]
        return PoolPredictions(ids=tuple(predicted_ids), probs=probs, task=run_state.task)

    def _train_if_outdated(self) -> None:
        """Train where something happened in the run since the model was trained."""
        if self._trained_as_of != self.session.run_state.event:
            self.train()

    def _readable_positions(self) -> list[int]:
        """The positions of all examples that can be read today."""
        run_state = self.session.run_state
        unreadable = {*run_state.aside, *run_state.vanished}
        positions = []
        for position in range(len(run_state.ids)):
            if position not in unreadable:
                positions.append(position)
        return positions

    def _position(self, example_id: str) -> int:
        position = self.session.run_state.position.get(example_id)
        if position is None:
            raise InputError(f"{example_id!r} is not the id of an example of this run")
        return position

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        predictions: bool = False,
    ) -> int:
        """Write the labels with their provenance: who, when, which arm, what the model said.

        path         a .csv, .jsonl or .parquet file, or a new folder
        format       csv, jsonl, parquet, folders or huggingface; by the path's ending where it is
                     left out
        predictions  rows for the unlabelled too, by a model that is trained for it

        Returns how many rows were written.
        """
        out = Path(path)
        file_format = export_format(out, format)
        run_state = self.session.run_state
        probs = None
        if predictions:
            self._train_if_outdated()
            all_positions = np.arange(len(run_state.ids))
            probs, _ = self.session.predict(all_positions)
        return export(
            run_state,
            out,
            file_format,
            pool=self.session.pool,
            probs=probs,
        )

    def status(self) -> dict[str, Any]:
        """Counts of examples, answers, labels by class, and accuracy by round, as plain values."""
        return self.session.run_state.summary()

    def close(self) -> None:
        """Let go of the store, so that another process can open the run."""
        self.session.store.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def open_run(
    path: PoolPath,
    classes: Sequence[str] | None = None,
    *,
    run: str | os.PathLike[str] | None = None,
    multi_label: bool = False,
    model: str | None = None,
    backbone: str | None = None,
    device: str | None = None,
    strategies: str | Sequence[str] | None = None,
    selector: str | None = None,
    reward: str | None = None,
    start: str | None = None,
    cover: bool | None = None,
    batch: int | None = None,
    rounds: int | None = None,
    holdout: float | None = None,
    seed: int | None = None,
    budget: int | None = None,
    store: str | None = None,
    key: str | None = None,
    column: str | None = None,
    label: str | None = None,
    labels: str | None = None,
    label_separator: str | None = None,
    trust: bool = False,
    progress: ProgressCallback = quiet,
) -> Run:
    """Open a durable run; begin it where there is none.

    path         a folder of pictures, a file, an address such as s3://bucket/folder, or a run's
                 folder
    classes      their names, for a new run; by default those of the pool's known labels
    run          the run's folder; by default PATH-labels beside the path, as `tailor label` has it
    multi_label  an example may have several classes, or none
    trust        whether a run from elsewhere is trusted with what its settings reach; it is
                 remembered (docs/concepts/trust.md)
    progress     (done, total, what) of each long step

    The other options are keys of tailor.toml, by the same names (docs/reference/settings.md):
    `model`, `backbone` and `device` of [model]; `strategies`, `selector`, `reward`, `start`,
    `cover`, `batch`, `rounds`, `holdout` and `seed` of [selection]; `budget` of [stop]; `store` of
    [run]; `key`, `column`, `label`, `labels` and `label_separator` of [pool]. What is left out has
    the default there. A run that exists has all of them already: those that are given must be the
    same.

    Raises InputError where an option is not possible, or other than the run's, and NotTrusted
    where a run from elsewhere would connect, write or run something that nobody has agreed to.

    >>> import numpy as np
    >>> np.save("points.npy", np.random.default_rng(0).normal(size=(40, 3)))
    >>> with open_run("points.npy", classes=["left", "right"], batch=10) as run:
    ...     asked = run.ask()
    ...     run.tell({pick.id: "left" for pick in asked})
    ...     run.status()["answered"]
    10
    """
    if classes is not None:
        check_list(classes, "classes", "class names")
    if run is not None:
        check_instance(run, (str, os.PathLike), "run", "a path")
    check_flag(multi_label, "multi_label")
    check_flag(trust, "trust")
    check_function(progress, "progress")
    options = {
        "model": model,
        "backbone": backbone,
        "device": device,
        "strategies": strategies,
        "selector": selector,
        "reward": reward,
        "start": start,
        "cover": cover,
        "batch": batch,
        "rounds": rounds,
        "holdout": holdout,
        "seed": seed,
        "budget": budget,
        "store": store,
        "key": key,
        "column": column,
        "label": label,
        "labels": labels,
        "label_separator": label_separator,
    }
    check_options(options)
    if isinstance(strategies, str):
        options["strategies"] = [strategies]
    sections = in_sections(options)
    if run is None:
        folder = run_folder(path)
    else:
        folder = Path(run)
    class_names = None
    if classes is not None:
        class_names = list(classes)
    settings_file = folder / config.FILE
    if settings_file.is_file():
        project = Project(folder, trust=trust)
        check_same_pool(project, path)
        sections["task"] = task_section(class_names, multi_label)
        check_same_settings(project, sections)
        return Run(project, progress)
    # Apart: the pool is opened with them before anything is written.
    pool_options = sections.pop("pool")
    begun = begin_run(
        folder,
        path,
        class_names or [],
        multi_label=multi_label,
        pool_options=pool_options,
        sections=sections,
    )
    try:
        # Begun here, by the options of this call.
        project = Project(folder, trust=True)
        return Run(project, progress)
    except BaseException:
        # A run that can't be opened is not begun: the next call may give other options.
        begun.settings_file.unlink()
        raise
