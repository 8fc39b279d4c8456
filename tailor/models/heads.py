"""Networks as models train them: a head on features, and a picture network fed with bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tailor.models.networks import PictureNetwork, SplitNetwork


class Head(SplitNetwork):
    """A linear layer on standardised features, or one hidden layer before it.

    Mean and scale of the features are part of the weights. The features that it gives are the
    standardised ones, or the hidden layer's activations.

    inputs   d, numbers in a row
    hidden   units of the hidden layer; None for a linear head
    classes  K
    """

    single_precision = True

    def __init__(
        self,
        inputs: int,
        hidden: int | None,
        classes: int,
    ) -> None:
        super().__init__()
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))
        self.width = hidden or inputs
        self.hidden: nn.Linear | None = None
        if hidden:
            self.hidden = nn.Linear(inputs, hidden)
        self.out = nn.Linear(self.width, classes)

    def standardise(self, mean: np.ndarray, deviation: np.ndarray) -> None:
        """Subtract mean (d,) and divide by deviation (d,) from now on."""
        # Multiplying is quicker than dividing, in every batch.
        scale = 1 / deviation
        self.mean.copy_(torch.from_numpy(mean))
        self.scale.copy_(torch.from_numpy(scale))

    def embed(self, x: Tensor) -> Tensor:
        """Rows (n, d) of any precision -> features (n, width)."""
        centred = x.float() - self.mean
        standardised = centred * self.scale
        if self.hidden is None:
            return standardised
        activations = self.hidden(standardised)
        return F.relu(activations)

    def classify(self, features: Tensor) -> Tensor:
        return torch.as_tensor(self.out(features))

    def output_layer(self) -> nn.Linear:
        return self.out


class PixelNet(SplitNetwork):
    """A picture network fed with bytes, which it normalises itself.

    mean, deviation  of pixels from 0 to 255, one number a channel
    """

    convolutions_cast = True

    def __init__(
        self,
        net: PictureNetwork,
        mean: Sequence[float],
        deviation: Sequence[float],
    ) -> None:
        super().__init__()
        self.net = net
        self.width = net.width
        # As x * scale + shift, which is one operation on the device.
        scale = 1 / _by_channel(deviation)
        shift = -_by_channel(mean) * scale
        self.scale: Tensor
        self.shift: Tensor
        self.register_buffer("scale", scale)
        self.register_buffer("shift", shift)

    def embed(self, x: Tensor) -> Tensor:
        """Bytes (n, 3, H, W) -> features (n, width)."""
        normalised = torch.addcmul(self.shift, x.float(), self.scale)
        return self.net.embed(normalised)

    def classify(self, features: Tensor) -> Tensor:
        return self.net.classify(features)

    def output_layer(self) -> nn.Linear:
        layer = self.net.get_submodule(self.net.head)
        assert isinstance(layer, nn.Linear)
        return layer


def _by_channel(values: Sequence[float]) -> Tensor:
    """(3,) -> (1, 3, 1, 1) float32."""
    channels = torch.tensor(values, dtype=torch.float32)
    return channels.view(1, 3, 1, 1)
