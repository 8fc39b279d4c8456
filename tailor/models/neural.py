"""What all models that are torch networks share: training, predicting, copies, saving."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tailor.errors import InputError
from tailor.models.base import Prediction, ProgressCallback, quiet
from tailor.models.files import damaged, read_model, write_model
from tailor.models.inputs import find_device
from tailor.models.recipe import Recipe
from tailor.models.source_model import DEFAULT_DROPOUT, SourceModel
from tailor.models.targets import Targets
from tailor.pools.base import Pool
from tailor.task import Task

if TYPE_CHECKING:
    import torch

    from tailor.models.losses import Loss
    from tailor.models.network_predictor import NetworkPredictor
    from tailor.models.networks import Network

#: (network, positions (n,), targets (n, K), recipe, seed, progress) -> whether a graph was used
NetworkTrainer = Callable[
    ["Network", np.ndarray, Any, Recipe, int, ProgressCallback],
    bool,
]


class NeuralModel(SourceModel):
    """A network that gives logits and features, over the rows of a Source.

    A derived class sets `name`, `source` and `recipe`, and writes new_network().

    net         the trained network, None before fit() and load()
    used_graph  whether the last fit() replayed a CUDA graph
    """

    recipe: Recipe
    #: trains a network instead of _train(): workers that train one network together set it
    trainer: NetworkTrainer | None = None

    def __init__(
        self,
        task: Task,
        pool: Pool,
        *,
        class_weights: Any,
        device: str,
    ) -> None:
        super().__init__(task, pool)
        self.device = find_device(device)
        self.class_weights = class_weights
        self.net: Network | None = None
        self.used_graph = False
        self._predictor: NetworkPredictor | None = None

    @abstractmethod
    def new_network(self, generator: torch.Generator, shape: tuple[int, ...]) -> Network:
        """A network on the CPU that is not trained yet.

        generator  draws its weights, unless they are loaded
        shape      of one row of the source
        """

    def fit(
        self,
        positions: np.ndarray,
        labels: np.ndarray,
        *,
        seed: int,
        progress: ProgressCallback = quiet,
    ) -> None:
        import torch

        from tailor.models.networks import place

        positions, targets = self._check_training_set(positions, labels)
        assert self.source.shape is not None
        generator = torch.Generator().manual_seed(seed)
        net = place(self.new_network(generator, self.source.shape), self.device)
        train = self._train if self.trainer is None else self.trainer
        self.used_graph = train(
            net,
            positions,
            targets,
            self.recipe,
            seed,
            progress,
        )
        self.net = net

    def predict(self, positions: np.ndarray, progress: ProgressCallback = quiet) -> Prediction:
        predictor = self._current_predictor()
        return predictor.predict(self._check_positions(positions), progress)

    def finetune(self, targets: Any, epochs: int, *, seed: int) -> np.ndarray:
        tuned = self.tuned(targets, epochs, seed=seed)
        everything = np.arange(len(self.source.rows))
        return tuned._current_predictor().probabilities(everything)

    def tuned(self, targets: Any, epochs: int, *, seed: int) -> Self:
        net = copy.deepcopy(self._trained())
        checked = self._check_targets(targets)
        readable = np.flatnonzero(self.source.readable)
        if isinstance(checked, Targets):
            readable_targets: np.ndarray | Targets = checked.only(readable)
        else:
            readable_targets = checked[readable]
        recipe = replace(
            self.recipe,
            epochs=epochs,
            steps=None,
        )
        self._train(
            net,
            readable,
            readable_targets,
            recipe,
            seed,
            quiet,
        )
        tuned = copy.copy(self)
        tuned.net = net
        return tuned

    def dropout_at(self, positions: np.ndarray, passes: int, *, seed: int) -> Iterator[np.ndarray]:
        import torch

        predictor = self._current_predictor()
        positions = self._check_positions(positions)
        rate = self.recipe.dropout or DEFAULT_DROPOUT
        generator = torch.Generator(self.device).manual_seed(seed)
        for _ in range(passes):
            yield predictor.probabilities(positions, rate, generator)

    def save(self, folder: Path) -> None:
        net = self._trained()
        settings = {
            "shape": self.source.shape,
            "input": self.source.fingerprint,
            **self.describe(),
        }
        write_model(folder, self.task, settings, net.state_dict())

    def load(self, folder: Path) -> None:
        import torch

        from tailor.models.networks import place

        settings, tensors = read_model(folder, self.task, self.name)
        if settings["input"] != self.source.fingerprint:
            raise InputError(
                f"the model in {str(folder)!r} was trained on {settings['input']!r}, this one "
                f"reads {self.source.fingerprint!r}: build it with the same options"
            )
        shape: Any = settings.get("shape")
        if not _is_shape(shape):
            raise damaged(folder, f"its shape is {shape!r}; train it again")
        # Its weights are loaded over those that the generator draws, so the seed plays no part.
        generator = torch.Generator().manual_seed(0)
        net = self.new_network(generator, tuple(shape))
        try:
            net.load_state_dict(tensors)
        except RuntimeError as error:
            raise InputError(f"the weights in {str(folder)!r} don't fit: {error}") from error
        self.net = place(net, self.device).eval()

    def loss_for(self, targets: np.ndarray | Targets) -> Loss:
        """The loss on the model's device; its class weights may depend on targets (n, K)."""
        import torch

        from tailor.models.losses import class_weights, make_loss

        weights = class_weights(self.task, self.class_weights, targets)
        if weights is None:
            return make_loss(self.task, None)
        device_weights = torch.from_numpy(weights).to(self.device)
        return make_loss(self.task, device_weights)

    def _train(
        self,
        net: Network,
        positions: np.ndarray,
        targets: np.ndarray | Targets,
        recipe: Recipe,
        seed: int,
        progress: ProgressCallback,
    ) -> bool:
        """Train in place on positions (n,) with targets (n, K) -> whether a graph was used."""
        from tailor.models.trainer import train

        return train(
            net,
            self.source,
            positions,
            targets,
            self.loss_for(targets),
            recipe,
            seed=seed,
            device=self.device,
            progress=progress,
        )

    def _trained(self) -> Network:
        if self.net is None:
            raise self._not_trained()
        return self.net

    def _current_predictor(self) -> NetworkPredictor:
        """The predictor of the network that is trained now."""
        from tailor.models.network_predictor import NetworkPredictor

        net = self._trained()
        if self._predictor is None or self._predictor.net is not net:
            self._predictor = NetworkPredictor(
                net,
                self.task,
                self.source,
                self.device,
            )
        return self._predictor


def _is_shape(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(length, int) and length > 0 for length in value)


def plain_weights(class_weights: Any) -> str | list[float] | None:
    """The option class_weights as JSON takes it."""
    if class_weights is None or isinstance(class_weights, str):
        return class_weights
    return [float(weight) for weight in class_weights]
