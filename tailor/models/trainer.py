"""Training a network: a plain loop over steps, or a step captured once as a CUDA graph and
replayed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tailor.models.base import Notice, ProgressCallback, quiet
from tailor.models.gpu import fast_convolutions, no_counting
from tailor.models.losses import Loss
from tailor.models.networks import Network
from tailor.models.recipe import Recipe
from tailor.models.source import Source
from tailor.models.targets import Targets, TargetsOnDevice
from tailor.models.training_step import TrainingStep, copy_state, restore_state

#: a graph is captured for more steps than this: capturing takes about as long as a few of them
FEW_STEPS = 10


def train(
    net: Network,
    source: Source,
    positions: np.ndarray,
    targets: np.ndarray | Targets,
    loss: Loss,
    recipe: Recipe,
    *,
    seed: int,
    device: str,
    progress: ProgressCallback = quiet,
) -> bool:
    """Train a network in place.

    A batch has at least two rows, since batch norm knows nothing of the spread of one; a single
    example is doubled.

    positions  (n,) int64, all readable
    targets    (n, K) in [0, 1]

    Returns whether a CUDA graph was replayed.
    """
    plan = _plan_steps(recipe, len(positions))
    net.train()
    take, rows_are_on_device = source.loader(positions)
    device_targets = _to_device(targets, device)
    # A graph can't wait for the host, which has the others.
    all_is_on_device = rows_are_on_device and isinstance(device_targets, Tensor)

    def make_step() -> TrainingStep:
        return TrainingStep(
            net,
            take,
            device_targets,
            loss,
            recipe,
            plan.batch,
            device,
        )

    step = make_step()
    replay: Callable[[], None] | None = None
    with fast_convolutions(), no_counting(net):
        if all_is_on_device and _wants_graph(recipe, plan, device):
            start = copy_state(net)
            replay = _capture(step, device)
            if replay is None:
                # What the failed capture did to the network and the optimizer is undone.
                restore_state(net, start)
                step = make_step()
        _run_steps(
            step,
            replay or step,
            recipe,
            plan,
            seed,
            device,
            progress,
        )
    step.optimizer.zero_grad(set_to_none=True)
    net.eval()
    return replay is not None


class _StepPlan(NamedTuple):
    """How many steps a training takes, and of how many examples each."""

    examples: int
    batch: int
    steps_per_epoch: int
    steps: int  # in all


def _plan_steps(recipe: Recipe, examples: int) -> _StepPlan:
    batch = max(2, min(recipe.batch, examples))
    # Rounded up: the last batch of an epoch is filled up.
    steps_per_epoch = -(-examples // batch)
    steps = recipe.steps
    if steps is None:
        steps = recipe.epochs * steps_per_epoch
    return _StepPlan(
        examples=examples,
        batch=batch,
        steps_per_epoch=steps_per_epoch,
        steps=steps,
    )


def _to_device(targets: np.ndarray | Targets, device: str) -> Tensor | TargetsOnDevice:
    """Targets (n, K) as a training step reads them; those that nobody holds all of are fetched from
    the host, step by step.
    """
    if isinstance(targets, Targets):
        return TargetsOnDevice(targets, device)
    contiguous = np.ascontiguousarray(targets, np.float32)
    return torch.from_numpy(contiguous).to(device)


def _wants_graph(recipe: Recipe, plan: _StepPlan, device: str) -> bool:
    if not device.startswith("cuda"):
        return False
    return recipe.graph and plan.steps > FEW_STEPS


def _run_steps(
    step: TrainingStep,
    run_step: Callable[[], None],
    recipe: Recipe,
    plan: _StepPlan,
    seed: int,
    device: str,
    progress: ProgressCallback,
) -> None:
    """All steps of a training.

    step      where the batch and the learning rate of each step are set
    run_step  does it: the step itself, or its graph
    """
    # Two generators: the order of the examples is the same on any device.
    order_generator = torch.Generator().manual_seed(seed)
    noise_generator = torch.Generator(device).manual_seed(seed)
    batches = draw_batches(plan.examples, plan.batch, order_generator)
    indices = _ahead(batches, plan.steps_per_epoch, device)
    for number in range(plan.steps):
        step.draw(next(indices), noise_generator)
        if recipe.decay:
            lr = _decayed(recipe.lr, number, plan.steps)
            step.set_learning_rate(lr)
        run_step()
        done = number + 1
        if done % plan.steps_per_epoch == 0 or done == plan.steps:
            progress(done, plan.steps, "training")
    # A GPU is still at work when the last step has been handed to it.
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def _decayed(lr: float, number: int, steps: int) -> float:
    """The learning rate of a step: half a cosine from `lr` to 0."""
    cosine = float(np.cos(np.pi * number / steps))
    return lr * 0.5 * (1 + cosine)


def draw_batches(size: int, batch: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Indices (batch,) of examples, without end: every epoch a new order, its last batch filled up
    from its beginning.
    """
    missing = -size % batch
    # More than twice where a batch is larger than all examples together.
    repeats = 1 + -(-missing // size)
    while True:
        order = torch.randperm(size, generator=generator)
        repeated = order.repeat(repeats)
        filled_up = repeated[: size + missing]
        yield from filled_up.split(batch)


def _capture(step: TrainingStep, device: str) -> Callable[[], None] | None:
    """The step as a graph; None, with a notice, where it can't be captured."""
    try:
        with torch.cuda.device(device):
            return step.capture()
    except RuntimeError as error:
        torch.cuda.synchronize(device)
        warnings.warn(f"no CUDA graph, a plain loop instead: {error}", Notice, stacklevel=3)
        return None


def _ahead(batches: Iterator[Tensor], count: int, device: str) -> Iterator[Tensor]:
    """The same batches on the device, where `count` of them go at once: one copy, not one each."""
    while True:
        drawn = [next(batches) for _ in range(count)]
        stacked = torch.stack(drawn)
        on_device = stacked.to(device)
        yield from on_device.unbind()
