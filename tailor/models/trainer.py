"""Training: one small step, run as a plain loop, or captured once as a CUDA graph and replayed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from tailor.errors import InputError
from tailor.models.base import Notice, ProgressCallback, quiet
from tailor.models.gpu import Halves, fast_convolutions, no_counting, precision
from tailor.models.source import Source
from tailor.models.targets import OnDevice, Targets


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    epochs, steps  passes over the examples; with `steps` that many batches instead, however many
                   examples there are
    batch          examples a step; the last batch of an epoch is filled up from the epoch's
                   beginning
    decay          the learning rate falls to 0 along half a cosine
    dropout        rate, on the features
    flip           half of the pictures are mirrored, anew each time
    graph          on a GPU, capture the step as a CUDA graph
    """

    epochs: int = 10
    steps: int | None = None
    batch: int = 50
    lr: float = 1e-4
    weight_decay: float = 5e-5
    decay: bool = False
    dropout: float = 0.0
    flip: bool = False
    graph: bool = True

    def __post_init__(self) -> None:
        for name in ("epochs", "steps", "batch"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}: at least 1 is needed")
        if not self.lr > 0:
            raise InputError(f"lr is {self.lr}: it must be above 0")
        if self.weight_decay < 0:
            raise InputError(f"weight_decay is {self.weight_decay}: it must not be negative")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}: it must lie in [0, 1)")


class Step:
    """One step of Adam on the examples that `index` names, all in buffers that stay in place.

    net        (x, mask (n, width) or None) -> (logits (n, K), features (n, width)); the mask is for
               dropout
    take       index (batch,) of training examples -> a batch of them, as the source gives it
    targets    (n, K) float32 on the device, in [0, 1]; or what fetches them
    """

    def __init__(
        self,
        net: nn.Module,
        take: Callable[[Tensor], Tensor],
        targets: Tensor | OnDevice,
        loss: Callable[[Tensor, Tensor], Tensor],
        recipe: Recipe,
        batch: int,
        device: str,
    ) -> None:
        self.net = net
        self.take = take
        self.targets = targets
        self.loss = loss
        self.device = device
        self.index = torch.zeros(batch, dtype=torch.int64, device=device)
        self.keep = 1 - recipe.dropout
        self.mask = torch.ones(batch, int(net.width), device=device) if recipe.dropout else None  # type: ignore[arg-type]
        self.mirror = (
            torch.zeros(batch, 1, 1, 1, dtype=torch.bool, device=device) if recipe.flip else None
        )
        cuda = device.startswith("cuda")
        self.halves = Halves(net) if cuda and getattr(net, "convolutions_cast", False) else None
        lr: Tensor | float = torch.tensor(recipe.lr, device=device) if cuda else recipe.lr
        self.optimizer = torch.optim.Adam(
            [p for p in net.parameters() if p.requires_grad],
            lr=lr,
            weight_decay=recipe.weight_decay,
            fused=True,
            capturable=cuda,
        )

    def draw(self, index: Tensor, generator: torch.Generator) -> None:
        """What changes from step to step: index (batch,), and the random numbers."""
        self.index.copy_(index, non_blocking=True)
        if self.mask is not None:
            self.mask.bernoulli_(self.keep, generator=generator).div_(self.keep)
        if self.mirror is not None:
            self.mirror.copy_(
                torch.rand(self.mirror.shape, generator=generator, device=self.device) < 0.5
            )

    def rate(self, lr: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr

    def __call__(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        x = self.take(self.index)
        if self.mirror is not None:
            x = torch.where(self.mirror, x.flip(3), x)
        with precision(self.device, self.net):
            if self.halves is None:
                logits, _ = self.net(x, self.mask)
            else:
                self.halves.refresh()
                logits, _ = torch.func.functional_call(self.net, self.halves.half, (x, self.mask))
        self.loss(logits.float(), self.targets[self.index]).backward()
        if self.halves is not None:
            self.halves.give_back()
        self.optimizer.step()

    def captured(self) -> Callable[[], None]:
        """This step as a CUDA graph, ready to replay. The network and the optimizer are as
        before.
        """
        start = {name: tensor.clone() for name, tensor in self.net.state_dict().items()}
        here = torch.cuda.current_stream()
        aside = torch.cuda.Stream()
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            for _ in range(
                3
            ):  # allocations, cuDNN's choice of algorithms and the optimizer's state come first
                self()
        here.wait_stream(aside)
        self._rewind(start)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self()
        return graph.replay

    def _rewind(self, start: dict[str, Tensor]) -> None:
        """All in place: the graph keeps the addresses."""
        put_back(self.net, start)
        for state in self.optimizer.state.values():
            for tensor in state.values():
                tensor.zero_()


@torch.no_grad()
def put_back(net: nn.Module, start: dict[str, Tensor]) -> None:
    """The network's tensors as they were, each in its place."""
    for name, tensor in net.state_dict().items():
        tensor.copy_(start[name])


def orders(size: int, batch: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Batches (batch,) without end: every epoch a new order, its last batch filled up from its
    beginning.
    """
    while True:
        order = torch.randperm(size, generator=generator)
        short = -size % batch
        yield from order.repeat(1 + -(-short // size))[: size + short].split(batch)


def train(
    net: nn.Module,
    source: Source,
    positions: np.ndarray,
    targets: np.ndarray | Targets,
    loss: Callable[[Tensor, Tensor], Tensor],
    recipe: Recipe,
    *,
    seed: int,
    device: str,
    progress: ProgressCallback = quiet,
) -> bool:
    """Train `net` in place on positions (n,) with targets (n, K) in [0, 1] -> whether a CUDA graph
    was replayed.

    A batch has at least two rows, since batch norm knows nothing of the spread of one; a single
    example is doubled.
    """
    cuda = device.startswith("cuda")
    shuffle = torch.Generator().manual_seed(seed)
    noise = torch.Generator(device).manual_seed(seed)
    size = len(positions)
    batch = max(2, min(recipe.batch, len(positions)))
    a_pass = -(-size // batch)
    total = recipe.steps if recipe.steps is not None else recipe.epochs * a_pass
    net.train()
    take, on_device = source.loader(positions)
    wanted: Tensor | OnDevice
    if isinstance(targets, Targets):
        wanted = OnDevice(targets, device)
        on_device = False
    else:
        wanted = torch.from_numpy(np.ascontiguousarray(targets, np.float32)).to(device)
    step = Step(net, take, wanted, loss, recipe, batch, device)
    run: Callable[[], None] = step
    with fast_convolutions(), no_counting(net):
        if recipe.graph and cuda and on_device and total > 10:
            start = {name: tensor.clone() for name, tensor in net.state_dict().items()}
            try:
                with torch.cuda.device(device):
                    run = step.captured()
            except RuntimeError as error:
                torch.cuda.synchronize(device)
                warnings.warn(f"no CUDA graph, a plain loop instead: {error}", Notice, stacklevel=2)
                put_back(net, start)
                step = Step(net, take, wanted, loss, recipe, batch, device)
                run = step
        batches = orders(size, batch, shuffle)
        ahead: list[Tensor] = []
        for number in range(total):
            if not ahead:  # a whole pass goes to the device at once
                ahead = list(
                    torch.stack([next(batches) for _ in range(a_pass)]).to(device).unbind()
                )[::-1]
            step.draw(ahead.pop(), noise)
            if recipe.decay:
                step.rate(recipe.lr * 0.5 * (1 + float(np.cos(np.pi * number / total))))
            run()
            if (number + 1) % a_pass == 0 or number + 1 == total:
                progress(number + 1, total, "training")
        if cuda:
            torch.cuda.synchronize(device)
    step.optimizer.zero_grad(set_to_none=True)
    net.eval()
    return run is not step


@torch.no_grad()
def outputs(
    net: nn.Module,
    source: Source,
    positions: np.ndarray,
    *,
    device: str,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """(slice of positions, logits (m, K), features (m, width)): large batches, on the device, in
    single precision.
    """
    net.eval()
    source.resident()
    where = torch.from_numpy(np.ascontiguousarray(positions, np.int64)).to(device)
    for start in range(0, len(where), source.batch):
        part = slice(start, min(start + source.batch, len(where)))
        rows = part.stop - start
        taken = _filled_up(where[part], source.batch) if device.startswith("cuda") else where[part]
        # The context holds no longer than one batch: what runs between two batches is not ours.
        with fast_convolutions(), precision(device, net):
            mask = None
            if dropout:
                mask = torch.empty(len(taken), int(net.width), device=device)  # type: ignore[arg-type]
                mask.bernoulli_(1 - dropout, generator=generator).div_(1 - dropout)
            logits, features = net(source.take(taken), mask)
        yield part, logits[:rows].float(), features[:rows].float()


def _filled_up(positions: Tensor, batch: int) -> Tensor:
    """positions (n,) repeated up to a power of two, at most `batch`: cuDNN then meets few
    shapes.
    """
    size = min(batch, max(64, 1 << (len(positions) - 1).bit_length()))
    return positions.repeat(-(-size // len(positions)))[:size]
