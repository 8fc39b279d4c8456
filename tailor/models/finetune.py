"""The whole network, trained anew each round."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailor.errors import InputError, UnknownName
from tailor.models.neural import Neural
from tailor.models.pixels import PixelSource, natural_size
from tailor.pools.base import Pool
from tailor.task import Task

if TYPE_CHECKING:
    import torch
    from torch import nn

NETWORKS = ("resnet18", "efficientnet-lite0", "small-cnn")


class Finetune(Neural):
    """A picture network trained on all labels each round, from the same start: Adam, as in the
    paper.

    The pictures are decoded once to bytes of one size; on a GPU they stay there, the arithmetic is
    bf16 with channels last, and a training step is one captured CUDA graph.

    network        "resnet18", "efficientnet-lite0" or "small-cnn"
    weights        None: from scratch, drawn from the seed; "imagenet"; or the path of a weight file
    epochs, steps  passes over the labels each round; with `steps` that many batches instead,
                   however many labels
    size           pixels a side; by default the pool's own up to 64, else 224 (EfficientNet
                   enlarges small ones to 128)
    stem           of resnet18: "imagenet" as published, "small" keeps the resolution of small
                   pictures
    class_weights  None, "balanced", or one number a class (multi-label: for its positives)
    dropout        rate on the features, in training and in the passes that bald asks for
    augment        None, or "flip": pictures are mirrored at random
    cache          a folder for the decoded pictures; without one they last as long as this object
    graph          False: always the plain loop
    """

    name = "finetune"

    def __init__(
        self,
        task: Task,
        pool: Pool,
        *,
        network: str = "resnet18",
        weights: str | Path | None = None,
        size: int | None = None,
        stem: str = "imagenet",
        epochs: int = 10,
        steps: int | None = None,
        batch: int = 50,
        lr: float = 1e-4,
        weight_decay: float = 5e-5,
        class_weights: Any = None,
        dropout: float = 0.0,
        augment: str | None = None,
        cache: Path | str | None = None,
        device: str = "auto",
        graph: bool = True,
    ) -> None:
        from tailor.models.trainer import Recipe

        super().__init__(task, pool, class_weights=class_weights, device=device)
        if network not in NETWORKS:
            raise UnknownName("network", network, NETWORKS)
        if stem not in ("imagenet", "small"):
            raise UnknownName("stem", stem, ["imagenet", "small"])
        if augment not in (None, "flip"):
            raise UnknownName("augment", str(augment), ["flip"])
        if pool.kind != "image":
            raise InputError(
                f"finetune needs a pool of images, not of kind {pool.kind!r}: the probe takes "
                "any kind"
            )
        self.network = network
        self.stem = stem
        self.augment = augment
        self.recipe = Recipe(
            epochs=epochs,
            steps=steps,
            batch=batch,
            lr=lr,
            weight_decay=weight_decay,
            dropout=dropout,
            flip=augment == "flip",
            graph=graph,
        )
        self.weights = None if weights is None else str(weights)
        self._start = self._read_start()
        if size is None:
            size = natural_size(pool, 128 if network == "efficientnet-lite0" else None, 224)
        self.source = PixelSource(pool, size, None if cache is None else Path(cache), self.device)
        self.size = size

    def _read_start(self) -> dict[str, torch.Tensor] | None:
        from tailor.models.weights import imagenet_weights, read_weights

        if self.weights is None:
            self.say(f"{self.network} starts from scratch: no weights were given")
            return None
        if self.weights == "imagenet":
            return imagenet_weights(self.network)
        return read_weights(Path(self.weights))

    def _fresh(self, generator: torch.Generator, shape: tuple[int, ...]) -> nn.Module:
        from tailor.models.heads import PixelNet
        from tailor.models.weights import build, load_body

        net, mean, deviation = make_network(
            self.network, self.task.size, self.stem, generator, build
        )
        if self._start is not None:
            load_body(net, self._start)
        return PixelNet(net, mean, deviation)

    def describe(self) -> dict[str, Any]:
        r = self.recipe
        return {
            "model": self.name,
            "network": self.network,
            "weights": self.weights,
            "size": self.size,
            "stem": self.stem,
            "epochs": r.epochs,
            "steps": r.steps,
            "batch": r.batch,
            "lr": r.lr,
            "weight_decay": r.weight_decay,
            "dropout": r.dropout,
            "augment": self.augment,
            "class_weights": self.class_weights
            if isinstance(self.class_weights, str | None)
            else [float(w) for w in self.class_weights],
        }


def network_class(name: str) -> Any:
    from tailor.models import efficientnet_lite, resnet, small_cnn

    if name not in NETWORKS:
        raise UnknownName("network", name, NETWORKS)
    found = (resnet.ResNet18, efficientnet_lite.EfficientNetLite0, small_cnn.SmallCNN)
    return dict(zip(NETWORKS, found, strict=True))[name]


def make_network(
    name: str, classes: int, stem: str, generator: Any, build: Any
) -> tuple[Any, Any, Any]:
    """(network with weights from `generator`, mean, deviation of the pixels it wants)."""
    from tailor.models import efficientnet_lite, resnet

    kind = network_class(name)
    options = {"stem": stem} if name == "resnet18" else {}
    pixels = efficientnet_lite if name == "efficientnet-lite0" else resnet
    return build(lambda: kind(classes, **options), generator), pixels.MEAN, pixels.DEVIATION
