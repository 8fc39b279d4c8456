"""A frozen backbone's features, and a head trained each round in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.common.checks import check_number
from tailor.errors import InputError, UnknownName
from tailor.models.backbones import Backbone, FeatureSource, make_backbone
from tailor.models.base import Prediction, ProgressCallback, quiet
from tailor.models.neural import NeuralModel, TrainingSet, plain_weights
from tailor.models.prior_correction import Correction
from tailor.models.recipe import LOGIT_VARIANCE, Recipe
from tailor.models.standardisation import Standardisation
from tailor.models.targets import Targets
from tailor.models.uninformed import uninformed_probability
from tailor.pools.base import Pool
from tailor.task import Task

if TYPE_CHECKING:
    import torch

    from tailor.models.cross_validation import Candidates
    from tailor.models.heads import Head
    from tailor.models.networks import Network

#: iterations of the solver, or batches with a hidden layer
STEPS = {"linear": 50, "hidden": 300}


class Probe(NeuralModel):
    """A head on the features of a frozen backbone, which are computed once and kept in a cache.

    The features that arms see are the backbone's, standardised; with a hidden layer, its
    activations.

    backbone        a name, "name(option=value)" or a Backbone; by default what suits the pool's
                    kind
    head            "linear": logistic regression, solved to its optimum; or "hidden": one layer of
                    `hidden` units before it, trained with Adam
    hidden          units of the hidden layer
    steps           iterations of the solver; with a hidden layer, batches, the learning rate
                    falling to 0
    logit_variance  how strongly a linear head is held back: a Gaussian prior under which a logit
                    has this variance; by default 30 in a multi-class task, 10 in a multi-label one;
                    "auto": chosen among 3, 10, 30 and 100 by cross-validation each round
    prior_correction  "none"; a number tau in [0, 1]: tau * log(labelled share) is subtracted from
                    the logits of a multi-class task, so that a class that was labelled often is not
                    predicted for that alone; "auto": tau and a temperature of the logits are chosen
                    each round from the labels at hand, by cross-validation (multi-label: the
                    temperature alone). Saved weights are the corrected ones
    batch, lr, weight_decay  of Adam, for a hidden layer
    class_weights   None, "balanced", or one number a class (multi-label: for its positives)
    dropout         rate on the features, in training and in the passes that bald asks for
    cache           a folder for the features; without one they last as long as this object
    device          "auto", "cpu", "cuda" or "cuda:NUMBER"

    Formula: minimise Σ_i ℓ(W h(x_i) + b, y_i) + a Gaussian prior on W, with h the frozen features
    and ℓ the cross-entropy (multi-label: its binary form, summed over classes).

    Cost: features once for every example (milliseconds a picture on a CPU), then seconds a round.

    When to use: the default: good features of a pretrained network beat a network trained on a few
    hundred labels, and nobody waits.

    >>> from tailor.pools.arrays import Arrays
    >>> from tailor.task import MultiClass
    >>> pool = Arrays(np.random.default_rng(0).normal(size=(20, 4)))
    >>> model = Probe(MultiClass(3), pool, device="cpu")
    >>> model.fit(np.arange(9), np.eye(3)[np.arange(9) % 3], seed=0)
    >>> prediction = model.predict(np.arange(20))
    >>> prediction.probs.shape, prediction.features.shape
    ((20, 3), (20, 4))
    """

    name = "probe"
    has_first_features = True

    def __init__(
        self,
        task: Task,
        pool: Pool,
        *,
        backbone: str | Backbone | None = None,
        head: str = "linear",
        hidden: int = 256,
        steps: int | None = None,
        logit_variance: float | str | None = None,
        prior_correction: str | float | None = "none",
        batch: int = 1024,
        lr: float = 3e-3,
        weight_decay: float = 0.01,
        class_weights: Any = None,
        dropout: float = 0.0,
        cache: Path | str | None = None,
        device: str = "auto",
    ) -> None:
        super().__init__(
            task,
            pool,
            class_weights=class_weights,
            device=device,
            prior_correction=prior_correction,
        )
        if head not in STEPS:
            raise UnknownName("head", head, list(STEPS))
        if hidden < 1:
            raise InputError(f"hidden is {hidden}: at least 1 unit is needed")
        if logit_variance is None:
            logit_variance = LOGIT_VARIANCE[task.kind]
        self.head = head
        self.hidden = hidden
        self.logit_variance = _check_logit_variance(logit_variance)
        if steps is None:
            steps = STEPS[head]
        self.recipe = Recipe(
            steps=steps,
            batch=batch,
            lr=lr,
            weight_decay=weight_decay,
            decay=True,
            dropout=dropout,
        )
        self.backbone = make_backbone(backbone, pool, self.device)
        if self.backbone.notice:
            self.say(self.backbone.notice)
        if cache is None:
            folder = None
        else:
            folder = Path(cache)
        self.source = FeatureSource(
            pool,
            self.backbone,
            folder,
            self.device,
        )
        self._standardisation = Standardisation(self.source)

    def first_features(self, positions: np.ndarray) -> np.ndarray:
        checked = self._check_positions(positions)
        return self._standardisation.rows(self.run_positions, checked)

    def new_network(self, generator: torch.Generator, shape: tuple[int, ...]) -> Network:
        from torch import nn

        from tailor.models.heads import Head
        from tailor.models.weights import build

        hidden = None
        if self.head == "hidden":
            hidden = self.hidden
        net = build(lambda: Head(shape[0], hidden, self.task.size), generator)
        # At first it says the same of every example.
        nn.init.zeros_(net.out.weight)
        nn.init.zeros_(net.out.bias)
        if len(self.source.rows):
            mean, deviation = self._standardisation.measure(self.run_positions)
        else:  # to be loaded: mean and deviation are among the weights
            mean = np.zeros(shape, np.float32)
            deviation = np.ones(shape, np.float32)
        net.standardise(mean, deviation)
        return net

    def _train(
        self,
        net: Network,
        positions: np.ndarray,
        targets: np.ndarray | Targets,
        recipe: Recipe,
        seed: int,
        progress: ProgressCallback,
    ) -> bool:
        if self.head != "linear":
            return super()._train(
                net,
                positions,
                targets,
                recipe,
                seed,
                progress,
            )
        from tailor.models.convex import shrinkage

        # The loss is a mean over these, and the prior stands against their sum.
        loss_terms = targets.size
        if self.task.kind == "multi-class":
            loss_terms = len(targets)
        variance = self._current_variance()
        strength = shrinkage(net.width, loss_terms, variance)
        # A linear head has one optimum, which is solved for; not so with noise in training, or
        # where it is fine-tuned for some epochs only.
        if recipe.dropout or recipe.steps is None:
            recipe = replace(recipe, weight_decay=strength)
            return super()._train(
                net,
                positions,
                targets,
                recipe,
                seed,
                progress,
            )
        self._solve(
            net,
            positions,
            targets,
            strength,
            recipe.steps,
        )
        progress(recipe.steps, recipe.steps, "training")
        net.eval()
        return False

    def _current_variance(self) -> float:
        """Of the logits of the head that is being trained, or was trained last."""
        if self.correction.logit_variance is not None:
            return self.correction.logit_variance
        if isinstance(self.logit_variance, float):
            return self.logit_variance
        return LOGIT_VARIANCE[self.task.kind]

    def head_ridge(self) -> float | None:
        if self.head != "linear" or self.net is None:
            return None
        # As shrinkage() has it, times the number of the loss's terms.
        return self.net.width / self._current_variance()

    def _choose_correction(self, training_set: TrainingSet) -> Correction:
        is_automatic = "auto" in (self.prior_correction, self.logit_variance)
        if self.head != "linear" or not is_automatic:
            return super()._choose_correction(training_set)
        from tailor.models import cross_validation
        from tailor.models.heads import Head
        from tailor.models.linear_cross_validation import choose_linear
        from tailor.models.losses import loss_weights

        targets = training_set.targets
        if len(targets) < cross_validation.SMALLEST_SAMPLE:
            return Correction(tau=self._fixed_tau())
        # It is not trained: only its standardised features are wanted.
        net = self._fresh_network(training_set.seed)
        assert isinstance(net, Head)
        return choose_linear(
            self.task,
            self._embedded(net, training_set.positions),
            targets,
            loss_weights(self.task, self.class_weights, targets),
            self._candidates(),
            training_set.seed,
        )

    def _candidates(self) -> Candidates:
        from tailor.models import cross_validation

        taus: Sequence[float] = (self._fixed_tau(),)
        temperatures: Sequence[float] = (1.0,)
        if self.prior_correction == "auto":
            taus = cross_validation.taus_for(self.task)
            temperatures = cross_validation.TEMPERATURES
        variances: Sequence[float] = cross_validation.VARIANCES
        if isinstance(self.logit_variance, float):
            variances = (self.logit_variance,)
        return cross_validation.Candidates(taus, temperatures, variances)

    def _embedded(self, net: Head, positions: np.ndarray) -> torch.Tensor:
        """(n, d) on the device: the standardised rows at positions (n,)."""
        import torch

        with torch.no_grad():
            self.source.resident()
            device_positions = torch.from_numpy(positions).to(self.device)
            embedded = []
            for part in device_positions.split(self.source.batch):
                rows = self.source.take(part)
                embedded.append(net.embed(rows))
            return torch.cat(embedded)

    def _solve(
        self,
        net: Network,
        positions: np.ndarray,
        targets: np.ndarray | Targets,
        strength: float,
        steps: int,
    ) -> None:
        """Set a linear head to its optimum, on all examples at once."""
        import torch

        from tailor.models.convex import solve
        from tailor.models.heads import Head

        assert isinstance(net, Head)
        features = self._embedded(net, positions)
        contiguous = np.ascontiguousarray(targets, np.float32)
        device_targets = torch.from_numpy(contiguous).to(self.device)
        # In place: the head is part of the network.
        solve(
            net.out,
            features,
            device_targets,
            self.loss_for(targets),
            strength=strength,
            steps=steps,
        )

    def predict(self, positions: np.ndarray, progress: ProgressCallback = quiet) -> Prediction:
        """As Model.predict(). A linear head's features, the standardised ones, are kept on a CPU
        from round to round: don't write there.
        """
        if self.head != "linear" or self.device != "cpu" or self.net is None:
            return super().predict(positions, progress)
        from tailor.models.heads import Head
        from tailor.models.network_predictor import fits_memory

        net = self._trained()
        assert isinstance(net, Head)
        if not fits_memory(len(self.pool), net.width):
            return super().predict(positions, progress)
        return self._predict_linear(net, self._check_positions(positions), progress)

    def _predict_linear(
        self,
        net: Head,
        positions: np.ndarray,
        progress: ProgressCallback,
    ) -> Prediction:
        import torch

        from tailor.models.losses import activate

        features = self._standardisation.features(net)
        all_positions = np.arange(len(features))
        # All of the pool is most often asked for, and need not be copied.
        if not np.array_equal(positions, all_positions):
            features = features[positions]
        shape = (len(positions), self.task.size)
        probs = np.empty(shape, np.float32)
        batch = self.source.batch
        with torch.no_grad():
            for start in range(0, len(features), batch):
                part = slice(start, start + batch)
                part_features = torch.from_numpy(features[part])
                logits = net.classify(part_features)
                probs[part] = activate(self.task, logits).numpy()
        unreadable = ~self.source.readable[positions]
        probs[unreadable] = uninformed_probability(self.task)
        progress(len(positions), len(positions), "predicting")
        return Prediction(probs, features)

    def describe(self) -> dict[str, Any]:
        return {
            "model": self.name,
            "backbone": self.backbone.describe(),
            "head": self.head,
            "hidden": self.hidden,
            "steps": self.recipe.steps,
            "logit_variance": self.logit_variance,
            "prior_correction": self.prior_correction,
            "correction": self.correction.as_settings(),
            "batch": self.recipe.batch,
            "lr": self.recipe.lr,
            "weight_decay": self.recipe.weight_decay,
            "dropout": self.recipe.dropout,
            "class_weights": plain_weights(self.class_weights),
        }


def _check_logit_variance(value: float | str) -> float | str:
    """The word auto, or a number above 0. Raises InputError."""
    if value == "auto":
        return "auto"
    variance = check_number(value, "logit_variance", "'auto' or a number above 0 is needed")
    if not variance > 0:
        raise InputError(f"logit_variance is {value}: it must be above 0")
    return variance
