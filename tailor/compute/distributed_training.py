"""Training one network over several workers: torch's DistributedDataParallel, started by Ray
Train.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tailor.compute.base import Engine
from tailor.compute.model_work import Copy
from tailor.compute.ray_engine import RayEngine, clear_errors, use_threads
from tailor.errors import InputError
from tailor.models.neural import NeuralModel


def fit_together(
    engine: Engine,
    copy: Copy,
    positions: np.ndarray,
    labels: np.ndarray,
    *,
    seed: int,
    workers: int,
    folder: Path,
) -> Path:
    """Train the model on positions (n,) with labels (n, K), each worker on its share of every batch
    -> where the trained model is saved: model.load() takes it.

    The gradients of a batch are those of one worker up to rounding; which examples are in a batch
    depends on the number of workers. Linear heads are solved to their optimum in seconds and have
    no business here.
    """
    if not isinstance(engine, RayEngine):
        raise InputError(f"the {engine.name} engine has no workers to train together: use ray")
    if workers < 1:
        raise InputError(f"workers is {workers}: at least 1 is needed")
    engine.check_room(engine.gpus, workers)
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    resources = {"CPU": engine.cpus, **({"GPU": engine.gpus} if engine.gpus else {})}
    trainer = TorchTrainer(
        _train_worker,
        train_loop_config={
            "copy": copy,
            "positions": positions,
            "labels": labels,
            "seed": seed,
            "folder": str(folder / "model"),
            "threads": engine.cpus,
        },
        torch_config=TorchConfig(backend="nccl" if engine.gpus else "gloo"),
        scaling_config=ScalingConfig(
            num_workers=workers, use_gpu=bool(engine.gpus), resources_per_worker=resources
        ),
        run_config=RunConfig(
            name="train",
            storage_path=str(folder.absolute()),
            failure_config=FailureConfig(max_failures=engine.retries),
        ),
    )
    with clear_errors(engine._ray):
        trainer.fit()
    return folder / "model"


def _train_worker(given: dict[str, Any]) -> None:
    """In each worker."""
    from ray.train import get_context

    use_threads(given["threads"])
    rank = get_context().get_world_rank()
    size = get_context().get_world_size()
    model = given["copy"].make()
    if not isinstance(model, NeuralModel):
        raise InputError(
            f"{type(model).__name__} is no network: it can't be trained over several workers"
        )
    share_training(model, rank, size)
    model.fit(given["positions"], given["labels"], seed=given["seed"])
    if rank == 0:
        model.save(Path(given["folder"]))


def share_training(model: NeuralModel, rank: int, size: int) -> None:
    """Let this model's fit() train its network together with those of the other ranks of the
    process group.
    """
    from tailor.models.networks import SharedNetwork
    from tailor.models.trainer import train

    def shared(
        net: Any, positions: np.ndarray, targets: np.ndarray, recipe: Any, seed: int, progress: Any
    ) -> bool:
        mine = np.arange(rank, -(-len(positions) // size) * size, size) % len(
            positions
        )  # shares of equal size
        own = replace(recipe, batch=max(2, recipe.batch // size), graph=False)
        return train(
            SharedNetwork(net),
            model.source,
            positions[mine],
            targets[mine],
            model.loss_for(targets),
            own,
            seed=seed + rank,
            device=model.device,
            progress=progress,
        )

    model.trainer = shared
