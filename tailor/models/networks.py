"""Base classes of networks: what the trainer and the backbones may rely on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, TypeVar

import torch
from torch import Tensor, nn

AnyModule = TypeVar("AnyModule", bound=nn.Module)


def place(net: AnyModule, device: str) -> AnyModule:
    """A network on a device, with channels last in memory, which convolutions there want."""
    placed = net.to(device)
    # torch's own types don't know that to() takes a memory format alone
    return placed.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


class Network(nn.Module, ABC):
    """A network that can be trained: it gives logits, and the features that they come from.

    width  d, the number of features
    """

    width: int
    #: runs in single precision on a GPU, where other networks run in bf16
    single_precision = False
    #: all its convolutions run under autocast, so that training may hold bf16 copies of their
    #: weights
    convolutions_cast = False

    @abstractmethod
    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits (n, K) and features (n, width) of a batch as its source gives it.

        mask  (n, width) factors of the features on their way to the logits, for dropout. The
              features that come back are those without it.
        """

    def output_layer(self) -> nn.Linear | None:
        """The layer whose output the logits are; None where nobody knows which one it is."""
        return None


class SplitNetwork(Network):
    """A network in two parts, features and logits, with dropout between them."""

    @abstractmethod
    def embed(self, x: Tensor) -> Tensor:
        """A batch as its source gives it -> features (n, width)."""

    @abstractmethod
    def classify(self, features: Tensor) -> Tensor:
        """Features (n, width) -> logits (n, K)."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        features = self.embed(x).float()
        dropped = features
        if mask is not None:
            dropped = features * mask
        # Without bf16: the last layer is cheap, and its precision shows in the probabilities.
        with torch.autocast(x.device.type, enabled=False):
            logits = self.classify(dropped)
        return logits, features


class SharedNetwork(Network):
    """A network that the processes of a group train together, each on examples of its own.

    torch's wrapper averages the gradients; this one hands the network's properties through.
    """

    def __init__(self, net: Network) -> None:
        super().__init__()
        self.wrapped = nn.parallel.DistributedDataParallel(net)
        self.width = net.width
        self.single_precision = net.single_precision

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        logits, features = self.wrapped(x, mask)
        return logits, features


class PictureNetwork(nn.Module, ABC):
    """A classifier of normalised pictures (n, 3, H, W), in two parts: features and logits.

    width  d, the number of features
    head   the name of the last layer, whose weights belong to the classes
    """

    width: int
    head: ClassVar[str]

    @abstractmethod
    def embed(self, x: Tensor) -> Tensor:
        """Normalised pictures (n, 3, H, W) -> features (n, width)."""

    @abstractmethod
    def classify(self, features: Tensor) -> Tensor:
        """Features (n, width) -> logits (n, K)."""

    def forward(self, x: Tensor) -> Tensor:
        features = self.embed(x)
        return self.classify(features)


class HeadlessNetwork(PictureNetwork):
    """Another library's network that ends in its features; without classes, it has no logits."""

    head = ""

    def __init__(self, body: nn.Module, width: int) -> None:
        super().__init__()
        self.body = body
        self.width = width

    def embed(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.body(x))

    def classify(self, features: Tensor) -> Tensor:
        return features
