"""The whole network, trained anew each round."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailor.errors import InputError, UnknownName
from tailor.models.neural import NeuralModel, plain_weights
from tailor.models.pixels import PixelSource, natural_size
from tailor.models.recipe import Recipe
from tailor.pools.base import Pool
from tailor.task import Task

if TYPE_CHECKING:
    import torch

    from tailor.models.networks import Network, PictureNetwork

NETWORKS = ("resnet18", "efficientnet-lite0", "small-cnn")
STEMS = ("imagenet", "small")


class Finetune(NeuralModel):
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
    batch, lr, weight_decay  of Adam
    class_weights  None, "balanced", or one number a class (multi-label: for its positives)
    prior_correction  "none"; a number tau in [0, 1]: tau * log(labelled share) is subtracted from
                   the logits of a multi-class task; "auto": tau and a temperature of the logits are
                   chosen each round on a fifth of the labels, by a network trained on the others,
                   which makes training take 1.8 times as long (multi-label: the temperature)
    dropout        rate on the features, in training and in the passes that bald asks for
    augment        None, or "flip": pictures are mirrored at random
    cache          a folder for the decoded pictures; without one they last as long as this object
    device         "auto", "cpu", "cuda" or "cuda:NUMBER"
    graph          False: always the plain loop

    Formula: minimise Σ_i ℓ(f(x_i), y_i) over all weights of the network f, from the same start each
    round.

    Cost: the whole network is trained each round: seconds to minutes on a GPU, far longer on a CPU.

    When to use: thousands of labels, pictures unlike those of pretrained networks, or a comparison
    with the paper.
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
        prior_correction: str | float | None = "none",
        dropout: float = 0.0,
        augment: str | None = None,
        cache: Path | str | None = None,
        device: str = "auto",
        graph: bool = True,
    ) -> None:
        super().__init__(
            task,
            pool,
            class_weights=class_weights,
            device=device,
            prior_correction=prior_correction,
        )
        if network not in NETWORKS:
            raise UnknownName("network", network, NETWORKS)
        if stem not in STEMS:
            raise UnknownName("stem", stem, STEMS)
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
        # As text: the weights are named in files.
        if weights is None:
            self.weights = None
        else:
            self.weights = str(weights)
        self._first_weights = self._read_first_weights()
        if size is None:
            enlarged = None
            # It halves the resolution five times, and would see next to nothing of small ones.
            if network == "efficientnet-lite0":
                enlarged = 128
            size = natural_size(pool, enlarged, 224)
        self.size = size
        if cache is None:
            folder = None
        else:
            folder = Path(cache)
        self.source = PixelSource(
            pool,
            size,
            folder,
            self.device,
        )

    def _read_first_weights(self) -> dict[str, torch.Tensor] | None:
        from tailor.models.weights import imagenet_weights, read_weights

        if self.weights is None:
            self.say(f"{self.network} starts from scratch: no weights were given")
            return None
        if self.weights == "imagenet":
            return imagenet_weights(self.network)
        return read_weights(Path(self.weights))

    def new_network(self, generator: torch.Generator, shape: tuple[int, ...]) -> Network:
        from tailor.models.heads import PixelNet
        from tailor.models.weights import build, load_body

        make = network_class(self.network)
        options = {}
        if self.network == "resnet18":
            options["stem"] = self.stem
        net = build(lambda: make(self.task.size, **options), generator)
        if self._first_weights is not None:
            load_body(net, self._first_weights)
        mean, deviation = pixel_statistics(self.network)
        return PixelNet(net, mean, deviation)

    def describe(self) -> dict[str, Any]:
        return {
            "model": self.name,
            "network": self.network,
            "weights": self.weights,
            "size": self.size,
            "stem": self.stem,
            "epochs": self.recipe.epochs,
            "steps": self.recipe.steps,
            "batch": self.recipe.batch,
            "lr": self.recipe.lr,
            "weight_decay": self.recipe.weight_decay,
            "dropout": self.recipe.dropout,
            "augment": self.augment,
            "class_weights": plain_weights(self.class_weights),
            "prior_correction": self.prior_correction,
            "correction": self.correction.as_settings(),
        }


def network_class(name: str) -> type[PictureNetwork]:
    """A network's class by name. Raises UnknownName."""
    from tailor.models import efficientnet_lite, resnet, small_cnn

    classes: dict[str, type[PictureNetwork]] = {
        "resnet18": resnet.ResNet18,
        "efficientnet-lite0": efficientnet_lite.EfficientNetLite0,
        "small-cnn": small_cnn.SmallCNN,
    }
    if name not in classes:
        raise UnknownName("network", name, NETWORKS)
    return classes[name]


def pixel_statistics(name: str) -> tuple[Sequence[float], Sequence[float]]:
    """Mean and deviation, one a channel, of the pixels 0 to 255 that a network wants."""
    from tailor.models import efficientnet_lite, resnet

    # The small network wants what most networks were trained with.
    if name != "efficientnet-lite0":
        return resnet.MEAN, resnet.DEVIATION
    return efficientnet_lite.MEAN, efficientnet_lite.DEVIATION
