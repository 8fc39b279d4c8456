"""A small convolutional network for small pictures and quick trials."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tailor.models.folding import Normed


class SmallCNN(Normed):
    """Three 3x3 convolutions of stride 2 with batch norm, and a mean over what is left of the
    picture.

    >>> SmallCNN(4)(torch.zeros(2, 3, 16, 16)).shape
    torch.Size([2, 4])
    """

    width = 128
    head = "fc"
    normed = tuple((f"convs.{number}", f"norms.{number}") for number in range(3))

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        widths = (3, 32, 64, self.width)
        self.convs = nn.ModuleList(
            nn.Conv2d(a, b, 3, 2, 1, bias=False) for a, b in zip(widths, widths[1:])
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for b in widths[1:])
        self.fc = nn.Linear(self.width, classes)

    def embed(self, x: Tensor) -> Tensor:
        """x (n, 3, H, W) normalised -> (n, 128)."""
        for conv, norm in zip(self.convs, self.norms):
            x = F.relu(norm(conv(x)), inplace=True)
        return x.mean((2, 3))

    def classify(self, features: Tensor) -> Tensor:
        """(n, 128) -> logits (n, K)."""
        return torch.as_tensor(self.fc(features))

    def forward(self, x: Tensor) -> Tensor:
        return self.classify(self.embed(x))
