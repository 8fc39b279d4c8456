"""Training one network over several workers: torch's DistributedDataParallel, started by Ray
Train.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.compute.base import Engine
from tailor.compute.model_work import Copy
from tailor.compute.ray_engine import RayEngine, clear_errors, use_threads
from tailor.errors import InputError
from tailor.models.base import ProgressCallback
from tailor.models.neural import NeuralModel

if TYPE_CHECKING:
    from tailor.models.networks import Network
    from tailor.models.recipe import Recipe


@dataclass(frozen=True)
class _Work:
    """What every worker is told."""

    copy: Copy
    positions: np.ndarray  # (n,)
    labels: np.ndarray  # (n, K)
    seed: int
    folder: Path  # where the trained model is saved
    threads: int


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
    # Ray Train would wait for missing nodes without a word.
    engine.check_room(engine.gpus, workers)
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    resources: dict[str, float] = {"CPU": engine.cpus}
    if engine.gpus:
        resources["GPU"] = engine.gpus
    saved = folder / "model"
    work = _Work(
        copy,
        positions,
        labels,
        seed,
        saved,
        engine.cpus,
    )
    # NCCL talks between GPUs only.
    backend = "gloo"
    if engine.gpus:
        backend = "nccl"
    trainer = TorchTrainer(
        _train_worker,
        train_loop_config={"work": work},
        torch_config=TorchConfig(backend=backend),
        scaling_config=ScalingConfig(
            num_workers=workers, use_gpu=bool(engine.gpus), resources_per_worker=resources
        ),
        run_config=RunConfig(
            name="train",
            storage_path=str(folder.absolute()),
            failure_config=FailureConfig(max_failures=engine.retries),
        ),
    )
    with clear_errors(engine.ray):
        trainer.fit()
    return saved


def _train_worker(config: dict[str, Any]) -> None:
    """In each worker."""
    from ray.train import get_context

    work: _Work = config["work"]
    use_threads(work.threads)
    rank = get_context().get_world_rank()
    size = get_context().get_world_size()
    model = work.copy.make()
    if not isinstance(model, NeuralModel):
        raise InputError(
            f"{type(model).__name__} is no network: it can't be trained over several workers"
        )
    share_training(model, rank, size)
    model.fit(work.positions, work.labels, seed=work.seed)
    # All ranks end with the same weights: one copy is enough.
    if rank == 0:
        model.save(work.folder)


def share_training(model: NeuralModel, rank: int, size: int) -> None:
    """Let this model's fit() train its network together with those of the other ranks of the
    process group, of which there are `size`.
    """
    from tailor.models.networks import SharedNetwork
    from tailor.models.trainer import train

    def train_share(
        net: Network,
        positions: np.ndarray,
        targets: Any,
        recipe: Recipe,
        seed: int,
        progress: ProgressCallback,
    ) -> bool:
        # Shares of equal size: gradients are averaged as if every rank had as many examples, and a
        # rank that had one batch more would wait for the others for ever.
        count = len(positions)
        rounded_up = -(-count // size) * size
        share = np.arange(rank, rounded_up, size) % count
        return train(
            SharedNetwork(net),
            model.source,
            positions[share],
            targets[share],
            model.loss_for(targets),
            replace(recipe, batch=max(2, recipe.batch // size), graph=False),
            seed=seed + rank,
            device=model.device,
            progress=progress,
        )

    model.trainer = train_share
