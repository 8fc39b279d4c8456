"""A small convolutional network for small pictures and quick trials."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tailor.models.folding import FoldableModule
from tailor.models.networks import PictureNetwork


class SmallCNN(PictureNetwork, FoldableModule):
    """Three 3x3 convolutions of stride 2 with batch norm, and a mean over what is left of the
    picture.

    >>> SmallCNN(4)(torch.zeros(2, 3, 16, 16)).shape
    torch.Size([2, 4])
    """

    width = 128
    head = "fc"
    conv_norm_pairs = tuple((f"convs.{number}", f"norms.{number}") for number in range(3))

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        channels = (3, 32, 64, self.width)
        self.convs = nn.ModuleList()
        self.norms = nn.ModuleList()
        for inputs, outputs in pairwise(channels):
            # Without a bias: the batch norm behind would take it away again.
            conv = nn.Conv2d(
                inputs,
                outputs,
                kernel_size=3,
                stride=2,
                padding=1,
                bias=False,
            )
            self.convs.append(conv)
            self.norms.append(nn.BatchNorm2d(outputs))
        self.fc = nn.Linear(self.width, classes)

    def embed(self, x: Tensor) -> Tensor:
        for conv, norm in zip(self.convs, self.norms):
            x = norm(conv(x))
            x = F.relu(x, inplace=True)
        return x.mean((2, 3))

    def classify(self, features: Tensor) -> Tensor:
        return torch.as_tensor(self.fc(features))
