"""The most memory that predicting, fine-tuning and dropout over shards take, in bytes.

    python peak_memory.py probe|sklearn FOLDER

Prints the peak and the shapes of the three predictions as JSON.
"""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path

import numpy as np

from tailor import MultiClass, MultiLabel
from tailor.compute import LocalEngine
from tailor.models import make_model, sklearn_model
from tailor.models.base import quiet
from tailor.pools import open_pool
from tailor.run.engine_model_runner import EngineModelRunner, EngineSetup
from tailor.run.settings import Settings
from tailor.run.state import RunState

MODELS = {
    "probe": ({"head": "hidden", "hidden": 8, "steps": 5, "batch": 512}, MultiLabel(64)),
    "sklearn": ({"estimator": "naive_bayes.GaussianNB"}, MultiClass(64)),
}


def predictions(name, folder, rows, trace):
    """The tuned and the two dropout predictions of a pool, and the peak memory in bytes."""
    options, task = MODELS[name]
    folder.mkdir()
    points = np.random.default_rng(0).normal(size=(rows, 4)).astype(np.float16)
    np.save(folder / "points.npy", points)
    pool = open_pool(folder / "points.npy")
    model = make_model(name, task, pool, **options, device="cpu")
    classes = np.random.default_rng(1).integers(0, 64, 50)
    model.fit(np.arange(50), np.eye(64, dtype=np.float32)[classes], seed=0)
    engine_setup = EngineSetup(LocalEngine(), folder, None, shard=500)
    model_runner = EngineModelRunner(pool, model, quiet, engine_setup)
    run_state = RunState(Settings(task.kind, tuple(task.classes)))
    model_runner.connect(list(pool.ids))
    if trace:
        tracemalloc.start()
    sharded = model_runner.predict_all(task)[0]
    model_runner.finetune(run_state, 0)
    model_runner.dropout(run_state, 2, 0)
    made = [sharded.finetune(1), *sharded.dropout()]
    return made, tracemalloc.get_traced_memory()[1]


def main():
    name, folder = sys.argv[1], Path(sys.argv[2])
    sklearn_model.CHUNK = 500
    predictions(name, folder / "few", 1_000, trace=False)  # imports would count as memory
    made, peak = predictions(name, folder / "many", 20_000, trace=True)
    shapes = [prediction.shape for prediction in made]
    print(json.dumps({"peak": peak, "shapes": shapes}))


if __name__ == "__main__":
    main()
