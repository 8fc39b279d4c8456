"""A network that the user brings, with one of its layers as the features."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from tailor.errors import InputError, UnknownName
from tailor.models.backbones import Backbone, FeatureSource, make_backbone
from tailor.models.base import ProgressCallback, quiet
from tailor.models.networks import Network
from tailor.models.neural import NeuralModel
from tailor.models.pixels import PixelSource, natural_size
from tailor.models.recipe import Recipe
from tailor.models.sklearn_model import SklearnModel
from tailor.pools.base import Pool
from tailor.task import Task

__all__ = ["SklearnModel", "TorchModel"]

Transform = Callable[[Tensor], Tensor]


class TorchModel(NeuralModel):
    """Any nn.Module, trained each round from the weights it was handed in with; the module itself
    is left as it is.

    module         (n, ...) -> logits (n, K)
    feature_layer  the name of the layer whose output is the features, as module.named_modules()
                   gives it
    transform      a batch as the pool gives it -> what the module takes: pictures are (n, 3, size,
                   size) uint8 (by default divided by 255), vectors and a backbone's features (n, d)
                   float32 (by default as they are)
    backbone       feed the module with a backbone's features instead
    size           of the pictures; by default their own up to 64, else 224
    epochs         passes over the labels each round
    batch, lr, weight_decay  of Adam
    class_weights  None, "balanced", or one number a class (multi-label: for its positives)
    dropout        rate on the features, in training and in the passes that bald asks for
    cache          a folder for what is computed once; without one it lasts as long as this object
    device         "auto", "cpu", "cuda" or "cuda:NUMBER"
    graph          False: always the plain loop

    Formula: minimise Σ_i ℓ(module(x_i), y_i) over all its weights, from those it was handed in
    with.

    Cost: `epochs` passes of the module over the labels each round, and one over the pool.

    When to use: you have a network of your own, and it is not worth a Model class of its own.

    >>> from tailor.pools.arrays import Arrays
    >>> from tailor.task import MultiClass
    >>> pool = Arrays(np.random.default_rng(0).normal(size=(20, 4)))
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> model = TorchModel(MultiClass(3), pool, net, feature_layer="1")
    >>> model.fit(np.arange(9), np.eye(3)[np.arange(9) % 3], seed=0)
    >>> prediction = model.predict(np.arange(20))
    >>> prediction.probs.shape, prediction.features.shape
    ((20, 3), (20, 8))
    """

    name = "torch"

    def __init__(
        self,
        task: Task,
        pool: Pool,
        module: nn.Module,
        *,
        feature_layer: str,
        transform: Transform | None = None,
        backbone: str | Backbone | None = None,
        size: int | None = None,
        epochs: int = 10,
        batch: int = 50,
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        class_weights: Any = None,
        dropout: float = 0.0,
        cache: Path | str | None = None,
        device: str = "auto",
        graph: bool = True,
    ) -> None:
        super().__init__(
            task,
            pool,
            class_weights=class_weights,
            device=device,
        )
        layers = []
        for name, _ in module.named_modules():
            if name:
                layers.append(name)
        if feature_layer not in layers:
            raise UnknownName("layer", feature_layer, layers)
        self.feature_layer = feature_layer
        self.recipe = Recipe(
            epochs=epochs,
            batch=batch,
            lr=lr,
            weight_decay=weight_decay,
            dropout=dropout,
            graph=graph,
        )
        if cache is None:
            folder = None
        else:
            folder = Path(cache)
        # A backbone's features are taken where one is named, of pictures too.
        if pool.kind == "image" and backbone is None:
            if size is None:
                size = natural_size(pool, None, 224)
            self.source = PixelSource(
                pool,
                size,
                folder,
                self.device,
            )
            self.transform = transform or _zero_to_one
        else:
            made = make_backbone(backbone, pool, self.device)
            self.source = FeatureSource(
                pool,
                made,
                folder,
                self.device,
            )
            self.transform = transform or _as_float
        # A copy: every round starts from the weights that it has now.
        self._module = copy.deepcopy(module).cpu()

    def new_network(self, generator: torch.Generator, shape: tuple[int, ...]) -> Network:
        dtype = torch.float32
        if isinstance(self.source, PixelSource):
            dtype = torch.uint8
        rows = torch.zeros(2, *shape, dtype=dtype)
        example = self.source.arrange(rows)
        return HookedNetwork(
            copy.deepcopy(self._module),
            self.feature_layer,
            self.transform,
            example,
            self.task.size,
        )

    def fit(
        self,
        positions: np.ndarray,
        labels: np.ndarray,
        *,
        seed: int,
        progress: ProgressCallback = quiet,
    ) -> None:
        with self._seeded_global_numbers(seed):
            super().fit(
                positions,
                labels,
                seed=seed,
                progress=progress,
            )

    def tuned(
        self,
        targets: Any,
        epochs: int,
        *,
        seed: int,
    ) -> Self:
        with self._seeded_global_numbers(seed):
            return super().tuned(targets, epochs, seed=seed)

    @contextmanager
    def _seeded_global_numbers(self, seed: int) -> Iterator[None]:
        """The module may draw from torch's global numbers (nn.Dropout): they start at `seed` and
        are put back after.
        """
        devices = []
        if self.device.startswith("cuda"):
            devices.append(torch.device(self.device).index or 0)
        with torch.random.fork_rng(devices):
            torch.manual_seed(seed)
            yield

    def describe(self) -> dict[str, Any]:
        return {
            "model": self.name,
            "module": type(self._module).__name__,
            "feature_layer": self.feature_layer,
            "epochs": self.recipe.epochs,
            "batch": self.recipe.batch,
            "lr": self.recipe.lr,
            "weight_decay": self.recipe.weight_decay,
            "dropout": self.recipe.dropout,
        }


class HookedNetwork(Network):
    """A module that also gives the output of one of its layers, flattened, with dropout on it.

    layer    the name of that layer
    example  a batch as the source gives it, to learn the number of features

    Raises InputError where the module's logits have another shape than (n, classes), or where the
    layer gives no tensor or is not reached.
    """

    def __init__(
        self,
        module: nn.Module,
        layer: str,
        transform: Transform,
        example: Tensor,
        classes: int,
    ) -> None:
        super().__init__()
        self.module = module
        self.transform = transform
        self._mask: Tensor | None = None
        self._features: Tensor | None = None
        module.get_submodule(layer).register_forward_hook(self._hook)
        module.eval()
        with torch.no_grad():
            logits, features = self(example)
        if logits.shape != (len(example), classes):
            raise InputError(
                f"the module gives {tuple(logits.shape)} for {len(example)} examples of "
                f"{classes} classes"
            )
        self.width = int(features.shape[1])
        # By its name: kept as an attribute, the layer would be saved a second time.
        self._output_name = self._find_output_layer(example)

    def output_layer(self) -> nn.Linear | None:
        if self._output_name is None:
            return None
        layer = self.module.get_submodule(self._output_name)
        assert isinstance(layer, nn.Linear)
        return layer

    @torch.no_grad()
    def _find_output_layer(self, example: Tensor) -> str | None:
        """The name of the linear layer that makes the logits of the features, if there is one."""
        generator = torch.Generator().manual_seed(0)
        # Noise, in the range of pixels too: zeros pass through most layers unchanged.
        noise = torch.rand(example.shape, generator=generator) * 255
        logits, features = self(noise.to(example.dtype))
        shape = (logits.shape[1], features.shape[1])
        for name, layer in self.module.named_modules():
            if not isinstance(layer, nn.Linear) or layer.weight.shape != shape:
                continue
            if torch.allclose(layer(features), logits, rtol=1e-4, atol=1e-4):
                return name
        return None

    def _hook(
        self,
        layer: nn.Module,
        inputs: Any,
        output: Tensor,
    ) -> Tensor | None:
        if not isinstance(output, Tensor):
            raise InputError(
                f"the feature layer gives a {type(output).__name__}, not a tensor: name another "
                "layer"
            )
        self._features = output.flatten(1)
        if self._mask is None:
            return None
        # What a hook returns goes on to the layers behind.
        dropped = self._features * self._mask
        return dropped.view(output.shape)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        self._mask = mask
        logits = self.module(self.transform(x))
        features = self._features
        # Not kept: they would hold the batch's graph in memory.
        self._mask = None
        self._features = None
        if features is None:
            raise InputError(
                "the feature layer was not reached by the module's forward(): name another layer"
            )
        return logits, features


def _zero_to_one(x: Tensor) -> Tensor:
    return x.float() / 255


def _as_float(x: Tensor) -> Tensor:
    return x.float()
