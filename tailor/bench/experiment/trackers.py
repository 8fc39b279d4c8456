"""Rows to whoever else keeps them. None is needed; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from tailor.bench.experiment.rows import Row
from tailor.errors import InputError, UnknownName


class Tracker(Protocol):
    """Hears of every new row, in the order in which they come, in the process that started the trials."""

    def row(self, row: Row) -> None: ...

    def close(self) -> None: ...


def name_of(row: Row) -> str:
    return f"{row['experiment']}/{row['contender']}/{row['seed']}"


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
        raise InputError(f"{package} is not installed: pip install {package}, or track without it") from error


class TensorBoard:
    """Event files under OUT/tensorboard, a folder for each trial."""

    def __init__(self, out: Path) -> None:
        self._writer = _need("torch.utils.tensorboard", "tensorboard").SummaryWriter
        self.out, self.open = out / "tensorboard", dict[str, Any]()

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
    """A run for each trial, in the experiment of the same name; where to is MLflow's own setting."""

    def __init__(self, out: Path) -> None:
        self.client, self.open = _need("mlflow", "mlflow").MlflowClient(), dict[str, str]()

    def row(self, row: Row) -> None:
        name = name_of(row)
        if name not in self.open:
            there = self.client.get_experiment_by_name(row["experiment"])
            home = there.experiment_id if there else self.client.create_experiment(row["experiment"])
            self.open[name] = self.client.create_run(home, run_name=name).info.run_id
            for key in ("contender", "selector", "seed", "config"):
                self.client.log_param(self.open[name], key, row[key])
        for key, value in numbers(row):
            plain = "".join(c if c.isalnum() or c in "_-./ " else "_" for c in key)
            self.client.log_metric(self.open[name], plain, value, step=row["labels"])

    def close(self) -> None:
        for run in self.open.values():
            self.client.set_terminated(run)


class WeightsAndBiases:
    """A run for each trial, in the project of the experiment's name."""

    def __init__(self, out: Path) -> None:
        self.wandb, self.out, self.open = _need("wandb", "wandb"), out, dict[str, Any]()

    def row(self, row: Row) -> None:
        name = name_of(row)
        if name not in self.open:
            config = {key: row[key] for key in ("contender", "selector", "families", "seed", "config")}
            self.open[name] = self.wandb.init(
                project=row["experiment"], name=name, config=config, dir=str(self.out), reinit="create_new"
            )
        self.open[name].log(dict(numbers(row)), step=row["labels"])

    def close(self) -> None:
        for run in self.open.values():
            run.finish()


TRACKERS: dict[str, type[TensorBoard] | type[MLflow] | type[WeightsAndBiases]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WeightsAndBiases,
}


def make_tracker(name: str, out: Path) -> Tracker:
    if name not in TRACKERS:
        raise UnknownName("tracker", name, TRACKERS)
    return TRACKERS[name](out)
