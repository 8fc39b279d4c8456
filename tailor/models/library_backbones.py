"""Networks of other libraries, timm and torchvision, as backbones."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tailor.errors import InputError
from tailor.models.network_backbones import NetworkBackbone
from tailor.pools.base import Pool

if TYPE_CHECKING:
    from tailor.models.heads import PixelNet


#: letters, digits, and what stands between them; no address, no path
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class Timm(NetworkBackbone):
    """Any model of the timm library, by name, with its pretrained weights: "timm:NAME"."""

    name = "timm"

    def __init__(
        self,
        pool: Pool,
        device: str,
        *,
        model: str,
        size: int | None = None,
    ) -> None:
        super().__init__(pool, device, size)
        self.model = _checked_name(self.name, model)
        self._library = _import_library("timm")

    @property
    def fingerprint(self) -> str:
        return f"timm {self._library.__version__} {self.model} {self.size}"

    def make(self) -> PixelNet:
        from tailor.models.heads import PixelNet
        from tailor.models.networks import HeadlessNetwork

        body = self._library.create_model(self.model, pretrained=True, num_classes=0)
        # timm has them for pixels from 0 to 1, PixelNet takes bytes.
        settings = body.pretrained_cfg
        mean = [255 * float(value) for value in settings["mean"]]
        deviation = [255 * float(value) for value in settings["std"]]
        width = int(body.num_features)
        net = HeadlessNetwork(body, width)
        return PixelNet(net, mean, deviation)

    def describe(self) -> str:
        return f"timm:{self.model}(size={self.size})"


class Torchvision(NetworkBackbone):
    """Any classifier of torchvision, by name, with its default weights, without its last layer:
    "torchvision:NAME".
    """

    name = "torchvision"

    def __init__(
        self,
        pool: Pool,
        device: str,
        *,
        model: str,
        size: int | None = None,
    ) -> None:
        super().__init__(pool, device, size)
        self.model = _checked_name(self.name, model)
        self._library = _import_library("torchvision")

    @property
    def fingerprint(self) -> str:
        return f"torchvision {self._library.__version__} {self.model} {self.size}"

    def make(self) -> PixelNet:
        from torch import nn

        from tailor.models.heads import PixelNet
        from tailor.models.networks import HeadlessNetwork
        from tailor.models.resnet import DEVIATION, MEAN

        body = self._library.models.get_model(self.model, weights="DEFAULT")
        # Its networks have no common name for the layer of the classes: it is the last linear one.
        last_name = ""
        for name, layer in body.named_modules():
            if isinstance(layer, nn.Linear):
                last_name = name
        last_layer = body.get_submodule(last_name)
        width = int(last_layer.in_features)
        body.set_submodule(last_name, nn.Identity())
        net = HeadlessNetwork(body, width)
        return PixelNet(net, MEAN, DEVIATION)

    def describe(self) -> str:
        return f"torchvision:{self.model}(size={self.size})"


def _checked_name(library: str, model: str) -> str:
    """The name of a model that the library has itself.

    timm would also take "hf-hub:..." and "local-dir:...", whose weights may be pickles. Raises
    InputError for those.
    """
    if not _PLAIN_NAME.fullmatch(model):
        raise InputError(
            f"{library}:{model} is no plain name of a model: those at other addresses and in "
            "folders are not loaded, as their weights may be pickles"
        )
    return model


def _import_library(name: str) -> Any:
    try:
        return import_module(name)
    # Any of them: a torchvision built for another torch fails with a RuntimeError.
    except Exception as error:
        raise InputError(
            f"{name} can't be imported here: {error}; install it, or choose another backbone"
        ) from error
