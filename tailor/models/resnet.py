"""ResNet-18, with the parameter names of torchvision's, so that its weight files fit."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tailor.models.folding import FoldableModule
from tailor.models.networks import PictureNetwork

#: the official ImageNet weights; the letters in the name are the start of the file's SHA-256
ADDRESS = "https://download.pytorch.org/models/resnet18-f37072fd.pth"
#: of pixels 0..255, by channel
MEAN = (123.675, 116.28, 103.53)
DEVIATION = (58.395, 57.12, 57.375)
#: of the stem, and of the four stages after it
CHANNELS = (64, 64, 128, 256, 512)


class ResidualBlock(FoldableModule):
    """Two 3x3 convolutions and a shortcut, projected where the shape changes."""

    conv_norm_pairs = (("conv1", "bn1"), ("conv2", "bn2"), ("downsample.0", "downsample.1"))

    def __init__(
        self,
        inputs: int,
        outputs: int,
        stride: int,
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(
            inputs,
            outputs,
            kernel_size=3,
            stride=stride,
            padding=1,
            bias=False,
        )
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(
            outputs,
            outputs,
            kernel_size=3,
            stride=1,
            padding=1,
            bias=False,
        )
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(
                    inputs,
                    outputs,
                    kernel_size=1,
                    stride=stride,
                    bias=False,
                ),
                nn.BatchNorm2d(outputs),
            )

    def forward(self, x: Tensor) -> Tensor:
        if self.downsample is None:
            shortcut = x
        else:
            shortcut = self.downsample(x)
        x = self.bn1(self.conv1(x))
        x = F.relu(x, inplace=True)
        x = self.bn2(self.conv2(x))
        return F.relu(x.add_(shortcut), inplace=True)


class ResNet18(PictureNetwork, FoldableModule):
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
    conv_norm_pairs = (("conv1", "bn1"),)

    def __init__(self, classes: int = 1000, *, stem: str = "imagenet") -> None:
        super().__init__()
        self.maxpool: nn.Module
        if stem == "small":
            self.conv1 = nn.Conv2d(
                3,
                64,
                kernel_size=3,
                stride=1,
                padding=1,
                bias=False,
            )
            self.bn1 = nn.BatchNorm2d(64)
            self.maxpool = nn.Identity()
        else:
            self.conv1 = nn.Conv2d(
                3,
                64,
                kernel_size=7,
                stride=2,
                padding=3,
                bias=False,
            )
            self.bn1 = nn.BatchNorm2d(64)
            self.maxpool = nn.MaxPool2d(3, 2, 1)
        for number in range(1, 5):
            inputs = CHANNELS[number - 1]
            outputs = CHANNELS[number]
            # The first layer leaves the picture's size as it is.
            stride = 2
            if number == 1:
                stride = 1
            first = ResidualBlock(inputs, outputs, stride=stride)
            second = ResidualBlock(outputs, outputs, stride=1)
            self.add_module(f"layer{number}", nn.Sequential(first, second))
        self.fc = nn.Linear(self.width, classes)

    def embed(self, x: Tensor) -> Tensor:
        x = self.bn1(self.conv1(x))
        x = F.relu(x, inplace=True)
        x = self.maxpool(x)
        for number in range(1, 5):
            x = self.get_submodule(f"layer{number}")(x)
        return x.mean((2, 3))

    def classify(self, features: Tensor) -> Tensor:
        return torch.as_tensor(self.fc(features))
