"""What the trials of an experiment share: the data, and models over it."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tailor.models import Model, make_model, registry
from tailor_experiments.comparison.data import load_data
from tailor_experiments.comparison.experiment import Experiment
from tailor_experiments.comparison.simulated import simulations
from tailor_experiments.datasets.base import Dataset


@dataclass(frozen=True)
class Material:
    """test_model reads the test set, and is given the weights of model."""

    data: Dataset
    model: Model
    test_model: Model | None

    def hand_over(self) -> None:
        """Give the test set's model the weights of the other."""
        trained = self.model
        other = self.test_model
        if other is None:
            return
        if hasattr(trained, "net") and hasattr(other, "net"):
            other.net = trained.net
            return
        with tempfile.TemporaryDirectory(prefix="tailor-") as folder:
            trained.save(Path(folder))
            other.load(Path(folder))


def dataset(experiment: Experiment, *, fresh: bool = False) -> Dataset:
    """The experiment's data, read once in a process; `fresh` reads it again."""
    if fresh:
        _data.cache_clear()
        _material.cache_clear()
    return _data(json.dumps(experiment.data))


def material(experiment: Experiment, cache: Path, seed: int) -> Material:
    """For a trial. Trials that follow each other in one process share it: a model is trained anew
    by every fit.
    """
    data = dataset(experiment)
    name = registry.parse(experiment.model.get("name", "probe"))[0]
    if name in simulations.builtin:  # the noise is the trial's
        return Material(data, *_simulations(experiment, data, seed))
    return _material(json.dumps(experiment.data), json.dumps(experiment.model), cache)


@lru_cache(1)
def _data(given: str) -> Dataset:
    return load_data(json.loads(given))


@lru_cache(1)
def _material(data: str, model: str, cache: Path) -> Material:
    loaded = _data(data)
    return Material(loaded, *_models(json.loads(model), loaded, cache))


def _models(options: dict[str, Any], data: Dataset, cache: Path) -> tuple[Model, Model | None]:
    given = options.pop("name", "probe")
    name, _ = registry.parse(given)
    if "cache" in registry.options(name):
        options.setdefault("cache", cache)
    model = make_model(given, data.task, data.pool, **options)
    if data.test_pool is None:
        return model, None
    same = {"probe": "backbone", "finetune": "size"}.get(
        name
    )  # what would be chosen by a look at the pool
    if same is not None:
        options[same] = getattr(model, same)
    return model, make_model(given, data.task, data.test_pool, **options)


def _simulations(experiment: Experiment, data: Dataset, seed: int) -> tuple[Model, Model | None]:
    """These see the known labels, and the same noise whoever contends."""
    name, own = registry.parse(experiment.model["name"])
    options = {k: v for k, v in experiment.model.items() if k not in ("name", "device")} | own
    options.setdefault("span", (experiment.batch, experiment.batch * (experiment.rounds + 1)))
    model = simulations.make(name, data.task, data.pool, data.labels, **options, seed=2 * seed)
    if data.test_pool is None:
        return model, None
    return model, simulations.make(
        name, data.task, data.test_pool, data.test_labels, **options, seed=2 * seed + 1
    )
