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

    def row(self, row: Row) -> None: ...

    def close(self) -> None: ...


def name_of(row: Row) -> str:
    return f"{row['experiment']}/{row['contender']}/{row['seed']}"


def identity(row: Row, out: Path) -> str:
    """The trial's own, the same when it is taken up again."""
    return config_hash({"config": row["config"], "out": str(out.absolute())})


def numbers(row: Row) -> Iterator[tuple[str, float]]:
    """The numbers of a row, by name."""
    for key, value in row.items():
        if key in ("round", "rounds", "seed"):
            continue
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield key, float(value)
        elif key in ("pulls", "seconds"):
            yield from ((f"{key}/{name}", float(number)) for name, number in value.items())


def _need(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            f"{package} is not installed: {pip_install('trackers')}, or track without it"
        ) from error


class TensorBoard:
    """Event files under OUT/tensorboard, a folder for each trial."""

    def __init__(self, out: Path) -> None:
        self._writer = _need("torch.utils.tensorboard", "tensorboard").SummaryWriter
        self.out = out / "tensorboard"
        self.open = dict[str, Any]()

    def row(self, row: Row) -> None:
        name = name_of(row)
        if name not in self.open:
            self.open[name] = self._writer(str(self.out / name))
        for key, value in numbers(row):
            self.open[name].add_scalar(key, value, row["labels"])

    def close(self) -> None:
        for writer in self.open.values():
            writer.close()


class MLflow:
    """A run for each trial, in the experiment of the same name; where to is MLflow's own setting.

    A trial that is taken up again goes on in the run that it had.
    """

    def __init__(self, out: Path) -> None:
        self._mlflow = _need("mlflow", "mlflow")
        self.client = self._mlflow.MlflowClient()
        self.out = out
        self.open = dict[str, str]()

    def row(self, row: Row) -> None:
        name = name_of(row)
        if name not in self.open:
            self.open[name] = self._run(name, row)
        now = round(1000 * time.time())
        metrics = [
            self._mlflow.entities.Metric(_plain(key), value, now, row["labels"])
            for key, value in numbers(row)
        ]
        self.client.log_batch(self.open[name], metrics=metrics)

    def _run(self, name: str, row: Row) -> str:
        there = self.client.get_experiment_by_name(row["experiment"])
        home = there.experiment_id if there else self.client.create_experiment(row["experiment"])
        mark = identity(row, self.out)
        begun = self.client.search_runs([home], f"tags.`tailor.trial` = '{mark}'", max_results=1)
        if begun:
            return str(begun[0].info.run_id)
        run = str(
            self.client.create_run(home, run_name=name, tags={"tailor.trial": mark}).info.run_id
        )
        for key in ("contender", "selector", "seed", "config"):
            self.client.log_param(run, key, row[key])
        return run

    def close(self) -> None:
        for run in self.open.values():
            self.client.set_terminated(run)


def _plain(key: str) -> str:
    """With the characters that MLflow takes in the name of a metric."""
    return "".join(c if c.isalnum() or c in "_-./ " else "_" for c in key)


class WeightsAndBiases:
    """A run for each trial, in the project of the experiment's name. Offline with
    WANDB_MODE=offline.

    Online, a trial that is taken up again goes on in the run that it had.
    """

    def __init__(self, out: Path) -> None:
        self.wandb = _need("wandb", "wandb")
        self.out = out
        self.open = dict[str, Any]()

    def row(self, row: Row) -> None:
        name = name_of(row)
        if name not in self.open:
            config = {
                key: row[key] for key in ("contender", "selector", "families", "seed", "config")
            }
            self.out.mkdir(parents=True, exist_ok=True)
            self.open[name] = self.wandb.init(
                project=re.sub(r"[/\\#?%:]", "-", row["experiment"]),  # W&B takes none of these
                name=name,
                id=identity(row, self.out),
                resume="allow",
                config=config,
                dir=str(self.out),
                reinit="create_new",
            )
        self.open[name].log(
            dict(numbers(row)), step=row["labels"], commit=True
        )  # else it is held back

    def close(self) -> None:
        for run in self.open.values():
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
    """say: hears of a tracker that fails."""
    if name not in TRACKERS:
        raise UnknownName("tracker", name, TRACKERS)
    try:
        return Careful(name, TRACKERS[name](out), say)
    except InputError:
        raise
    except Exception as error:  # of a third party's making, whatever its type
        raise InputError(
            f"{name} can't be begun: {error}; mend its settings, or track without it"
        ) from error
