"""Rows to whoever else keeps them. None is needed; each is imported when it is asked for."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from tailor.common.distribution import pip_install
from tailor.errors import InputError, UnknownName
from tailor_experiments.comparison.experiment import config_hash
from tailor_experiments.comparison.rows import Row


class Tracker(Protocol):
    """Hears of every new row, in the order in which they come, in the process that started the
    trials.
    """

    def row(self, row: Row) -> None:
        """Take in a new row."""

    def close(self) -> None:
        """No row will come any more."""


def name_of(row: Row) -> str:
    return f"{row['experiment']}/{row['contender']}/{row['seed']}"


def identity(row: Row, out: Path) -> str:
    """A name for a trial that no other has, the same when it is taken up again."""
    return config_hash({"config": row["config"], "out": str(out.absolute())})


def numbers(row: Row) -> Iterator[tuple[str, float]]:
    """The numbers of a row, by name."""
    for key, value in row.items():
        if key in ("round", "rounds", "seed"):
            continue
        # To Python a bool is a number, to a chart it is not.
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield key, float(value)
        elif key in ("pulls", "seconds"):
            for name, number in value.items():
                yield f"{key}/{name}", float(number)


def _need(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        command = pip_install("trackers")
        raise InputError(f"{package} is not installed: {command}, or track without it") from error


class TensorBoard:
    """Event files under OUT/tensorboard, a folder for each trial."""

    def __init__(self, out: Path) -> None:
        self._writer = _need("torch.utils.tensorboard", "tensorboard").SummaryWriter
        self.out = out / "tensorboard"
        self._writers: dict[str, Any] = {}

    def row(self, row: Row) -> None:
        name = name_of(row)
        if name not in self._writers:
            folder = self.out / name
            self._writers[name] = self._writer(str(folder))
        writer = self._writers[name]
        for key, value in numbers(row):
            writer.add_scalar(key, value, row["labels"])

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()


class MLflow:
    """A run for each trial, in the experiment of the same name; where to is MLflow's own setting.

    A trial that is taken up again goes on in the run that it had.
    """

    def __init__(self, out: Path) -> None:
        self._mlflow = _need("mlflow", "mlflow")
        self.client = self._mlflow.MlflowClient()
        self.out = out
        self.runs: dict[str, str] = {}

    def row(self, row: Row) -> None:
        name = name_of(row)
        if name not in self.runs:
            self.runs[name] = self._run_of(name, row)
        now = round(1000 * time.time())
        metrics = []
        for key, value in numbers(row):
            metric = self._mlflow.entities.Metric(
                _plain(key),
                value,
                now,
                row["labels"],
            )
            metrics.append(metric)
        # One request a row, and not one a number.
        self.client.log_batch(self.runs[name], metrics=metrics)

    def _run_of(self, name: str, row: Row) -> str:
        """The id of the trial's run, a new one where it has none."""
        client = self.client
        experiment = client.get_experiment_by_name(row["experiment"])
        if experiment:
            experiment_id = experiment.experiment_id
        else:
            experiment_id = client.create_experiment(row["experiment"])
        # By a tag, since names of runs need not be unique.
        trial = identity(row, self.out)
        runs = client.search_runs(
            [experiment_id], f"tags.`tailor.trial` = '{trial}'", max_results=1
        )
        if runs:
            return str(runs[0].info.run_id)
        run = client.create_run(experiment_id, run_name=name, tags={"tailor.trial": trial})
        run_id = str(run.info.run_id)
        for key in ("contender", "selector", "seed", "config"):
            client.log_param(run_id, key, row[key])
        return run_id

    def close(self) -> None:
        for run in self.runs.values():
            self.client.set_terminated(run)


def _plain(key: str) -> str:
    """With the characters that MLflow takes in the name of a metric."""
    characters = []
    for character in key:
        is_allowed = character.isalnum() or character in "_-./ "
        characters.append(character if is_allowed else "_")
    return "".join(characters)


class WeightsAndBiases:
    """A run for each trial, in the project of the experiment's name. Offline with
    WANDB_MODE=offline.

    Online, a trial that is taken up again goes on in the run that it had.
    """

    def __init__(self, out: Path) -> None:
        self.wandb = _need("wandb", "wandb")
        self.out = out
        self.runs: dict[str, Any] = {}

    def row(self, row: Row) -> None:
        name = name_of(row)
        if name not in self.runs:
            self.runs[name] = self._begin(name, row)
        values = dict(numbers(row))
        # Without commit the row is held back until the next one.
        self.runs[name].log(values, step=row["labels"], commit=True)

    def _begin(self, name: str, row: Row) -> Any:
        columns = ("contender", "selector", "families", "seed", "config")
        self.out.mkdir(parents=True, exist_ok=True)
        return self.wandb.init(
            project=re.sub(r"[/\\#?%:]", "-", row["experiment"]),  # W&B takes none of these
            name=name,
            id=identity(row, self.out),
            resume="allow",
            config={column: row[column] for column in columns},
            dir=str(self.out),
            reinit="create_new",
        )

    def close(self) -> None:
        for run in self.runs.values():
            run.finish()


TRACKERS: dict[str, type[TensorBoard] | type[MLflow] | type[WeightsAndBiases]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WeightsAndBiases,
}


class Careful:
    """A tracker that can't end the run: when it fails it is told of once, and left out from there
    on.
    """

    def __init__(self, name: str, tracker: Tracker, say: Callable[[str], None]) -> None:
        self.name = name
        self._tracker = tracker
        self._say = say
        self.failed = False

    def row(self, row: Row) -> None:
        self._try(lambda: self._tracker.row(row))

    def close(self) -> None:
        self._try(self._tracker.close)

    def _try(self, step: Callable[[], None]) -> None:
        if self.failed:
            return
        try:
            step()
        except Exception as error:
            self.failed = True
            self._say(f"{self.name} gets no more rows, the trials go on: {error}")


def make_tracker(name: str, out: Path, say: Callable[[str], None]) -> Tracker:
    """A tracker by its name in TRACKERS, for the results folder `out`.

    say  is told when the tracker fails later on, which does not end the trials

    Raises InputError where it is not installed or can't begin.
    """
    if name not in TRACKERS:
        raise UnknownName("tracker", name, TRACKERS)
    try:
        # What fails before the first row is an error: nothing has been run for nothing yet.
        return Careful(name, TRACKERS[name](out), say)
    except InputError:
        raise
    except Exception as error:  # of a third party's making, whatever its type
        raise InputError(
            f"{name} can't be begun: {error}; mend its settings, or track without it"
        ) from error
