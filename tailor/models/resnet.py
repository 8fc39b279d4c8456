"""ResNet-18, with the parameter names of torchvision's, so that its weight files fit."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tailor.models.folding import Normed

#: the official ImageNet weights; the letters in the name are the start of the file's SHA-256
ADDRESS = "https://download.pytorch.org/models/resnet18-f37072fd.pth"
#: of pixels 0..255, by channel
MEAN = (123.675, 116.28, 103.53)
DEVIATION = (58.395, 57.12, 57.375)


class Block(Normed):
    """Two 3x3 convolutions and a shortcut, projected where the shape changes."""

    normed = (("conv1", "bn1"), ("conv2", "bn2"), ("downsample.0", "downsample.1"))

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or inside != outside:
            self.downsample = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(x)).add_(shortcut), inplace=True)


class ResNet18(Normed):
    """He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition (CVPR 2016), the 18-layer
    network.

    stem    "imagenet": a 7x7 convolution of stride 2 and a max-pool, as published, whatever the
            size of the pictures; "small": one 3x3 convolution of stride 1, which keeps the
            resolution of small pictures at 16 times the work

    >>> ResNet18(10)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    width = 512
    head = "fc"
    normed = (("conv1", "bn1"),)

    def __init__(self, classes: int = 1000, *, stem: str = "imagenet") -> None:
        super().__init__()
        small = stem == "small"
        self.conv1 = (
            nn.Conv2d(3, 64, 3, 1, 1, bias=False)
            if small
            else nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        )
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, 2, 1)
        widths = (64, 64, 128, 256, 512)
        for number, (inside, outside) in enumerate(zip(widths, widths[1:]), 1):
            stride = 1 if number == 1 else 2
            layer = nn.Sequential(Block(inside, outside, stride), Block(outside, outside, 1))
            self.add_module(f"layer{number}", layer)
        self.fc = nn.Linear(self.width, classes)

    def embed(self, x: Tensor) -> Tensor:
        """x (n, 3, H, W) normalised -> (n, 512)."""
        x = self.maxpool(F.relu(self.bn1(self.conv1(x)), inplace=True))
        for number in range(1, 5):
            x = self.get_submodule(f"layer{number}")(x)
        return x.mean((2, 3))

    def classify(self, features: Tensor) -> Tensor:
        """(n, 512) -> logits (n, K)."""
        return torch.as_tensor(self.fc(features))

    def forward(self, x: Tensor) -> Tensor:
        return self.classify(self.embed(x))
