"""Training a network: a plain loop over steps, or a step captured once as a CUDA graph and
replayed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

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
    cuda = device.startswith("cuda")
    size = len(positions)
    batch = max(2, min(recipe.batch, size))
    steps_per_epoch = -(-size // batch)
    total = recipe.steps
    if total is None:
        total = recipe.epochs * steps_per_epoch
    net.train()
    take, on_device = source.loader(positions)
    device_targets: Tensor | TargetsOnDevice
    if isinstance(targets, Targets):
        device_targets = TargetsOnDevice(targets, device)
        on_device = False
    else:
        contiguous = np.ascontiguousarray(targets, np.float32)
        device_targets = torch.from_numpy(contiguous).to(device)

    def make_step() -> TrainingStep:
        return TrainingStep(
            net,
            take,
            device_targets,
            loss,
            recipe,
            batch,
            device,
        )

    step = make_step()
    replay: Callable[[], None] | None = None
    with fast_convolutions(), no_counting(net):
        if recipe.graph and cuda and on_device and total > FEW_STEPS:
            start = copy_state(net)
            replay = _capture(step, device)
            if replay is None:
                # What the failed capture did to the network and the optimizer is undone.
                restore_state(net, start)
                step = make_step()
        order_generator = torch.Generator().manual_seed(seed)
        noise_generator = torch.Generator(device).manual_seed(seed)
        batches = draw_batches(size, batch, order_generator)
        indices = _ahead(batches, steps_per_epoch, device)
        for number in range(total):
            step.draw(next(indices), noise_generator)
            if recipe.decay:
                cosine = float(np.cos(np.pi * number / total))
                step.set_learning_rate(recipe.lr * 0.5 * (1 + cosine))
            if replay is None:
                step()
            else:
                replay()
            done = number + 1
            if done % steps_per_epoch == 0 or done == total:
                progress(done, total, "training")
        if cuda:
            torch.cuda.synchronize(device)
    step.optimizer.zero_grad(set_to_none=True)
    net.eval()
    return replay is not None


def draw_batches(size: int, batch: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Indices (batch,) of examples, without end: every epoch a new order, its last batch filled up
    from its beginning.
    """
    missing = -size % batch
    repeats = 1 + -(-missing // size)
    while True:
        order = torch.randperm(size, generator=generator)
        filled_up = order.repeat(repeats)[: size + missing]
        yield from filled_up.split(batch)


def _capture(step: TrainingStep, device: str) -> Callable[[], None] | None:
    """The step as a graph; None, with a notice, where it can't be captured."""
    try:
        with torch.cuda.device(device):
            return step.capture()
    except RuntimeError as error:
        torch.cuda.synchronize(device)
        warnings.warn(
            f"no CUDA graph, a plain loop instead: {error}",
            Notice,
            stacklevel=3,
        )
        return None


def _ahead(batches: Iterator[Tensor], count: int, device: str) -> Iterator[Tensor]:
    """The same batches on the device, where `count` of them go at once: one copy, not one each."""
    while True:
        drawn = torch.stack([next(batches) for _ in range(count)])
        yield from drawn.to(device).unbind()
