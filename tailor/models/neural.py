"""What all models that are torch networks share: training, predicting, copies, saving."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from tailor.errors import InputError
from tailor.models.base import Prediction, ProgressCallback, quiet
from tailor.models.files import damaged, read_model, write_model
from tailor.models.inputs import find_device
from tailor.models.network_boundaries import NetworkModel
from tailor.models.prior_correction import Correction, check_prior_correction
from tailor.models.recipe import Recipe
from tailor.models.source_model import DEFAULT_DROPOUT
from tailor.models.targets import Targets
from tailor.pools.base import Pool
from tailor.task import MultiClass, Task

if TYPE_CHECKING:
    import torch

    from tailor.models.losses import Loss
    from tailor.models.network_predictor import NetworkPredictor
    from tailor.models.networks import Network

#: the strength of an automatic correction where labels are too few to choose it
TAU_WITHOUT_CHOICE = 1.0
#: (network, positions (n,), targets (n, K), recipe, seed, progress) -> whether a graph was used
NetworkTrainer = Callable[
    ["Network", np.ndarray, Any, Recipe, int, ProgressCallback],
    bool,
]


class TrainingSet(NamedTuple):
    """What a network is trained on, and how the training is seeded and watched."""

    positions: np.ndarray  # (n,) int64, all readable
    targets: np.ndarray  # (n, K) in [0, 1]
    seed: int
    progress: ProgressCallback

    def only(self, rows: np.ndarray) -> TrainingSet:
        """The examples of rows (n,) bool alone."""
        return self._replace(positions=self.positions[rows], targets=self.targets[rows])


class NeuralModel(NetworkModel):
    """A network that gives logits and features, over the rows of a Source.

    A derived class sets `name`, `source` and `recipe`, and writes new_network().

    net         the trained network, None before fit() and load()
    correction  what was done to the trained network's logits; it is part of its weights
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
        prior_correction: str | float | None = "none",
    ) -> None:
        super().__init__(task, pool)
        self.device = find_device(device)
        self.class_weights = class_weights
        self.prior_correction = check_prior_correction(prior_correction)
        if isinstance(self.prior_correction, float) and not isinstance(task, MultiClass):
            self.say("prior_correction as a number changes nothing in a multi-label task")
        self.correction = Correction()
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
        positions, targets = self._check_training_set(positions, labels)
        training_set = TrainingSet(
            positions,
            targets,
            seed,
            progress,
        )
        # Chosen first: the training of a linear head depends on it.
        self.correction = self._choose_correction(training_set)
        net = self._fit_network(training_set)
        layer = net.output_layer()
        if layer is not None:
            self.correction.fold_into(layer, targets.sum(0))
        # Last: a training that fails leaves the network that was there.
        self.net = net

    def _choose_correction(self, training_set: TrainingSet) -> Correction:
        """What is done to the logits of a network trained on this."""
        if self.prior_correction == "auto":
            return self._choose_on_held_out(training_set)
        return Correction(tau=self._fixed_tau())

    def _fixed_tau(self) -> float:
        """The strength where it is not chosen from labels."""
        if not isinstance(self.task, MultiClass):
            return 0.0
        if isinstance(self.prior_correction, float):
            return self.prior_correction
        if self.prior_correction == "auto":
            return TAU_WITHOUT_CHOICE
        return 0.0

    def _choose_on_held_out(self, training_set: TrainingSet) -> Correction:
        """Train a network on four fifths of the labels, and choose on the last fifth."""
        from tailor.models import cross_validation

        rng = np.random.default_rng(training_set.seed)
        folds = cross_validation.draw_folds(self.task, training_set.targets, rng)
        held_out = training_set.only(folds == 0)
        if len(held_out.positions) < cross_validation.SMALLEST_SAMPLE:
            return Correction(tau=self._fixed_tau())
        seen = training_set.only(folds != 0)
        net = self._fit_network(seen)
        return cross_validation.choose_held_out(
            self.task,
            self._held_out_logits(net, held_out.positions),
            held_out.targets,
            seen.targets.sum(0),
        )

    def _held_out_logits(self, net: Network, positions: np.ndarray) -> np.ndarray:
        """(n, K) float32 at positions (n,), all readable."""
        from tailor.models.network_predictor import NetworkPredictor

        predictor = NetworkPredictor(
            net,
            self.task,
            self.source,
            self.device,
        )
        parts = []
        for _, logits, _ in predictor.outputs(positions):
            on_host = logits.cpu()
            parts.append(on_host.numpy())
        return np.concatenate(parts)

    def _fresh_network(self, seed: int) -> Network:
        """A network on the device that is not trained yet."""
        import torch

        from tailor.models.networks import place

        assert self.source.shape is not None
        # On the CPU, whatever the device: the same seed gives the same weights on both.
        generator = torch.Generator().manual_seed(seed)
        net = self.new_network(generator, self.source.shape)
        return place(net, self.device)

    def _fit_network(self, training_set: TrainingSet) -> Network:
        """A network trained on this."""
        net = self._fresh_network(training_set.seed)
        train: NetworkTrainer = self._train
        if self.trainer is not None:
            train = self.trainer
        self.used_graph = train(
            net,
            training_set.positions,
            training_set.targets,
            self.recipe,
            training_set.seed,
            training_set.progress,
        )
        return net

    def predict(self, positions: np.ndarray, progress: ProgressCallback = quiet) -> Prediction:
        predictor = self._current_predictor()
        return predictor.predict(self._check_positions(positions), progress)

    def finetune(
        self,
        targets: Any,
        epochs: int,
        *,
        seed: int,
    ) -> np.ndarray:
        tuned = self.tuned(targets, epochs, seed=seed)
        everything = np.arange(len(self.source.rows))
        return tuned._current_predictor().probabilities(everything)

    def tuned(
        self,
        targets: Any,
        epochs: int,
        *,
        seed: int,
    ) -> Self:
        net = copy.deepcopy(self._trained())
        checked = self._check_targets(targets)
        readable = np.flatnonzero(self.source.readable)
        if isinstance(checked, Targets):
            readable_targets: np.ndarray | Targets = checked.only(readable)
        else:
            readable_targets = checked[readable]
        # In epochs: the steps of the recipe are for the labelled examples, and these are far more.
        recipe = replace(self.recipe, epochs=epochs, steps=None)
        self._train(
            net,
            readable,
            readable_targets,
            recipe,
            seed,
            quiet,
        )
        # Shallow: pool, source and settings are the same, and are not written to.
        tuned = copy.copy(self)
        tuned.net = net
        return tuned

    def dropout_at(
        self,
        positions: np.ndarray,
        passes: int,
        *,
        seed: int,
    ) -> Iterator[np.ndarray]:
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
        write_model(
            folder,
            self.task,
            settings,
            net.state_dict(),
        )

    def load(self, folder: Path) -> None:
        import torch

        from tailor.models.networks import place

        settings, tensors = read_model(folder, self.task, self.name)
        shape = self._check_input(folder, settings)
        # Its weights are loaded over those that the generator draws, so the seed plays no part.
        generator = torch.Generator().manual_seed(0)
        net = self.new_network(generator, shape)
        try:
            net.load_state_dict(tensors)
        except RuntimeError as error:
            raise InputError(f"the weights in {str(folder)!r} don't fit: {error}") from error
        try:
            self.correction = Correction.from_settings(settings.get("correction"))
        except InputError as error:
            raise damaged(folder, f"{error}; train it again") from error
        self.net = place(net, self.device).eval()

    def _check_input(self, folder: Path, settings: dict[str, Any]) -> tuple[int, ...]:
        """The shape of one row that a saved model reads. Raises InputError where it is damaged, or
        reads other rows than this one.
        """
        if settings["input"] != self.source.fingerprint:
            raise InputError(
                f"the model in {str(folder)!r} was trained on {settings['input']!r}, this one "
                f"reads {self.source.fingerprint!r}: build it with the same options"
            )
        shape: Any = settings.get("shape")
        if not _is_shape(shape):
            raise damaged(folder, f"its shape is {shape!r}; train it again")
        return tuple(shape)

    def loss_for(self, targets: np.ndarray | Targets) -> Loss:
        """The loss on the model's device; its class weights may depend on targets (n, K)."""
        import torch

        from tailor.models.losses import loss_weights, make_loss

        weights = loss_weights(self.task, self.class_weights, targets)
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
