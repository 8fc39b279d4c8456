"""One training step, as a function call or captured as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from tailor.models.gpu import HalfPrecisionWeights, precision
from tailor.models.losses import Loss
from tailor.models.networks import Network
from tailor.models.optimizers import Adam
from tailor.models.recipe import Recipe
from tailor.models.targets import TargetsOnDevice

#: runs of a step before it is captured: allocations, cuDNN's choice of algorithms and the
#: optimizer's state must all be there
WARM_UP = 3


class TrainingStep:
    """One step of Adam on the examples that `index` names.

    A graph replays the same kernels on the same addresses, so all that changes from step to step
    lies in buffers that stay in place.

    net      the network that is trained
    take     index (batch,) of training examples -> a batch of them, as the source gives it
    targets  (n, K) float32 on the device, in [0, 1]; or what fetches them
    batch    examples a step
    """

    def __init__(
        self,
        net: Network,
        take: Callable[[Tensor], Tensor],
        targets: Tensor | TargetsOnDevice,
        loss: Loss,
        recipe: Recipe,
        batch: int,
        device: str,
    ) -> None:
        self.net = net
        self.take = take
        self.targets = targets
        self.loss = loss
        self.device = device
        # Buffers that draw() fills.
        self.index = torch.zeros(batch, dtype=torch.int64, device=device)
        self.keep_rate = 1 - recipe.dropout
        self.mask: Tensor | None = None
        if recipe.dropout:
            self.mask = torch.ones(batch, net.width, device=device)
        self.mirrored: Tensor | None = None
        if recipe.flip:
            self.mirrored = torch.zeros(
                batch,
                1,
                1,
                1,
                dtype=torch.bool,
                device=device,
            )
        cuda = device.startswith("cuda")
        self.half_weights: HalfPrecisionWeights | None = None
        if cuda and net.convolutions_cast:
            self.half_weights = HalfPrecisionWeights(net)
        self.optimizer = _make_optimizer(net, recipe, device)

    def draw(self, index: Tensor, generator: torch.Generator) -> None:
        """Set what changes from step to step: index (batch,) and the random numbers."""
        self.index.copy_(index, non_blocking=True)
        if self.mask is not None:
            self.mask.bernoulli_(self.keep_rate, generator=generator)
            self.mask.div_(self.keep_rate)
        if self.mirrored is not None:
            uniform = torch.rand(self.mirrored.shape, generator=generator, device=self.device)
            self.mirrored.copy_(uniform < 0.5)

    def set_learning_rate(self, lr: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr

    def __call__(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        x = self.take(self.index)
        if self.mirrored is not None:
            x = torch.where(self.mirrored, x.flip(3), x)
        with precision(self.device, self.net):
            if self.half_weights is None:
                logits, _ = self.net(x, self.mask)
            else:
                self.half_weights.refresh()
                logits, _ = torch.func.functional_call(
                    self.net, self.half_weights.half, (x, self.mask)
                )
        # In single precision, and outside of autocast: bf16 has too few digits for a mean.
        targets = self.targets[self.index]
        loss = self.loss(logits.float(), targets)
        loss.backward()
        if self.half_weights is not None:
            self.half_weights.give_back()
        self.optimizer.step()

    def capture(self) -> Callable[[], None]:
        """This step as a CUDA graph, ready to replay. The network and the optimizer are as
        before.
        """
        start = copy_state(self.net)
        main_stream = torch.cuda.current_stream()
        side_stream = torch.cuda.Stream()
        side_stream.wait_stream(main_stream)
        with torch.cuda.stream(side_stream):
            for _ in range(WARM_UP):
                self()
        main_stream.wait_stream(side_stream)
        self._rewind(start)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self()
        return graph.replay

    def _rewind(self, start: dict[str, Tensor]) -> None:
        """All in place: the graph keeps the addresses."""
        restore_state(self.net, start)
        for state in self.optimizer.state.values():
            for tensor in state.values():
                tensor.zero_()


def _make_optimizer(net: Network, recipe: Recipe, device: str) -> Adam:
    """Adam on the weights of a network that are trained."""
    cuda = device.startswith("cuda")
    # As a tensor, the learning rate can change between two replays of a graph.
    lr: Tensor | float = recipe.lr
    if cuda:
        lr = torch.tensor(recipe.lr, device=device)
    trained = []
    for parameter in net.parameters():
        if parameter.requires_grad:
            trained.append(parameter)
    return Adam(
        trained,
        lr=lr,
        weight_decay=recipe.weight_decay,
        fused=True,
        capturable=cuda,
    )


def copy_state(net: nn.Module) -> dict[str, Tensor]:
    """Copies of the network's tensors, by name."""
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


@torch.no_grad()
def restore_state(net: nn.Module, start: dict[str, Tensor]) -> None:
    """The network's tensors as copy_state() gave them, each in its place."""
    for name, tensor in net.state_dict().items():
        tensor.copy_(start[name])
