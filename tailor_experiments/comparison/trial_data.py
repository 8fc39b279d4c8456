"""What the trials of an experiment share: the data, and models over it."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tailor.models import Model, make_model, registry
from tailor.models.neural import NeuralModel
from tailor_experiments.comparison.data import load_data
from tailor_experiments.comparison.experiment import Contender, Experiment
from tailor_experiments.comparison.simulated import simulations
from tailor_experiments.datasets.base import Dataset

#: model -> its option that would else be chosen by a look at the pool, and so differ for the test
#: set
CHOSEN_BY_POOL = {"probe": "backbone", "finetune": "size"}


@dataclass(frozen=True)
class Material:
    """The data of a trial and its models.

    model       over the pool; it is trained
    test_model  over the test set; hand_over() gives it what the other has learned
    """

    data: Dataset
    model: Model
    test_model: Model | None

    def hand_over(self) -> None:
        """Give the test set's model the weights of the other."""
        if self.test_model is None:
            return
        if isinstance(self.model, NeuralModel) and isinstance(self.test_model, NeuralModel):
            # The same network: no copy of its weights is made on a GPU, and none is saved.
            self.test_model.net = self.model.net
            return
        with tempfile.TemporaryDirectory(prefix="tailor-") as folder:
            self.model.save(Path(folder))
            self.test_model.load(Path(folder))


def dataset(experiment: Experiment, *, fresh: bool = False) -> Dataset:
    """The experiment's data, read once in a process; `fresh` reads it again."""
    if fresh:
        _cached_data.cache_clear()
        _cached_material.cache_clear()
    return _cached_data(json.dumps(experiment.data))


def material(
    experiment: Experiment,
    contender: Contender,
    cache: Path,
    seed: int,
) -> Material:
    """For a trial. Trials that follow each other in one process share it: a model is trained anew
    by every fit.

    cache  a folder for features
    seed   of the trial
    """
    data = dataset(experiment)
    name, _ = registry.parse(experiment.model.get("name", "probe"))
    if name in simulations.builtin:
        # Not shared: the noise is the trial's.
        return _simulated_material(experiment, data, seed)
    return _cached_material(
        json.dumps(experiment.data), json.dumps(experiment.model_of(contender)), cache
    )


# As JSON, since a cache needs keys that can be hashed.
@lru_cache(1)
def _cached_data(data_json: str) -> Dataset:
    return load_data(json.loads(data_json))


@lru_cache(4)
def _cached_material(data_json: str, model_json: str, cache: Path) -> Material:
    data = _cached_data(data_json)
    options = json.loads(model_json)
    return _trained_material(data, options, cache)


def _trained_material(data: Dataset, options: dict[str, Any], cache: Path) -> Material:
    text = options.pop("name", "probe")
    name, _ = registry.parse(text)
    if "cache" in registry.options(name):
        # Not every model keeps features.
        options.setdefault("cache", cache)
    model = make_model(
        text,
        data.task,
        data.pool,
        **options,
    )
    if data.test_pool is None:
        return Material(data, model, None)
    if name in CHOSEN_BY_POOL:
        option = CHOSEN_BY_POOL[name]
        # A test set of other sizes must not get another backbone.
        options[option] = getattr(model, option)
    test_model = make_model(
        text,
        data.task,
        data.test_pool,
        **options,
    )
    return Material(data, model, test_model)


def _simulated_material(experiment: Experiment, data: Dataset, seed: int) -> Material:
    """Models that see the known labels, through the same noise whoever contends."""
    name, options_in_name = registry.parse(experiment.model["name"])
    options = dict(experiment.model)
    del options["name"]
    options.pop("device", None)  # nothing is trained
    options |= options_in_name
    labels_in_the_end = experiment.batch * (experiment.rounds + 1)
    options.setdefault("span", (experiment.batch, labels_in_the_end))
    # Even seeds for pools and odd ones for test sets: no two noises of an experiment are the same.
    model = simulations.make(
        name,
        data.task,
        data.pool,
        data.labels,
        **options,
        seed=2 * seed,
    )
    if data.test_pool is None:
        return Material(data, model, None)
    test_model = simulations.make(
        name,
        data.task,
        data.test_pool,
        data.test_labels,
        **options,
        seed=2 * seed + 1,
    )
    return Material(data, model, test_model)
