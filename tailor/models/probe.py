"""A frozen backbone's features, and a head trained each round in seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.errors import InputError, UnknownName
from tailor.models import neural
from tailor.models.backbones import Backbone, FeatureSource, make_backbone
from tailor.models.base import Prediction, ProgressCallback, quiet
from tailor.models.neural import Neural
from tailor.pools.base import Pool
from tailor.task import Task

if TYPE_CHECKING:
    import torch
    from torch import nn

    from tailor.models.heads import Head
    from tailor.models.trainer import Recipe

#: the features' mean and spread are measured on at most this many rows, evenly spaced
MEASURED = 65536
#: how far a linear head's logits may spread, by kind of task: best over five datasets' pools, on
#: held-out parts
VARIANCE = {"multi-class": 30.0, "multi-label": 10.0}


class Probe(Neural):
    """A head on the features of a frozen backbone, which are computed once and kept in a cache.

    The features that arms see are the backbone's, standardised; with a hidden layer, its
    activations.

    backbone       a name, "name(option=value)" or a Backbone; by default what suits the pool's kind
    head           "linear": logistic regression, solved to its optimum; or "hidden": one layer of
                   `hidden` units before it, trained with Adam
    steps          iterations of the solver; with a hidden layer, batches, the learning rate falling
                   to 0
    logit_variance how strongly a linear head is held back: a Gaussian prior under which a logit has
    this variance;
                   by default 30 in a multi-class task, 10 in a multi-label one
    batch, lr, weight_decay  of Adam, for a hidden layer
    class_weights  None, "balanced", or one number a class (multi-label: for its positives)
    dropout        rate on the features, in training and in the passes that bald asks for
    cache          a folder for the features; without one they last as long as this object
    """

    name = "probe"

    def __init__(
        self,
        task: Task,
        pool: Pool,
        *,
        backbone: str | Backbone | None = None,
        head: str = "linear",
        hidden: int = 256,
        steps: int | None = None,
        logit_variance: float | None = None,
        batch: int = 1024,
        lr: float = 3e-3,
        weight_decay: float = 0.01,
        class_weights: Any = None,
        dropout: float = 0.0,
        cache: Path | str | None = None,
        device: str = "auto",
    ) -> None:
        from tailor.models.trainer import Recipe

        super().__init__(task, pool, class_weights=class_weights, device=device)
        if head not in ("linear", "hidden"):
            raise UnknownName("head", head, ["linear", "hidden"])
        if hidden < 1:
            raise InputError(f"hidden is {hidden}: at least 1 unit is needed")
        self.head = head
        self.hidden = hidden
        self.logit_variance = VARIANCE[task.kind] if logit_variance is None else logit_variance
        if not self.logit_variance > 0:
            raise InputError(f"logit_variance is {logit_variance}: it must be above 0")
        steps = steps if steps is not None else 50 if head == "linear" else 300
        self.recipe = Recipe(
            steps=steps, batch=batch, lr=lr, weight_decay=weight_decay, decay=True, dropout=dropout
        )
        self.backbone = make_backbone(backbone, pool, self.device)
        if self.backbone.notice:
            self.say(self.backbone.notice)
        self.source = FeatureSource(
            pool, self.backbone, None if cache is None else Path(cache), self.device
        )
        self._measured: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._standard: tuple[tuple[np.ndarray, ...], np.ndarray] | None = None

    def _fresh(self, generator: torch.Generator, shape: tuple[int, ...]) -> nn.Module:
        from torch import nn

        from tailor.models.heads import Head
        from tailor.models.weights import build

        hidden = self.hidden if self.head == "hidden" else None
        net = build(lambda: Head(shape[0], hidden, self.task.size), generator)
        assert isinstance(net, Head)
        nn.init.zeros_(net.out.weight)
        nn.init.zeros_(net.out.bias)
        spread = (
            self._spread()
            if len(self.source.rows)
            else (np.zeros(shape, np.float32), np.ones(shape, np.float32))
        )
        net.standardise(*spread)
        return net

    def _train(
        self,
        net: nn.Module,
        positions: np.ndarray,
        targets: Any,
        recipe: Recipe,
        seed: int,
        progress: ProgressCallback,
    ) -> bool:
        """A linear head has one optimum, which is found; with a hidden layer or dropout Adam goes
        its way.
        """
        if self.head != "linear":
            return super()._train(net, positions, targets, recipe, seed, progress)
        import torch

        from tailor.models.convex import shrinkage, solve
        from tailor.models.heads import Head

        assert isinstance(net, Head)
        terms = (
            len(targets) if self.task.kind == "multi-class" else targets.size
        )  # that the loss is the mean of
        strength = shrinkage(net.width, terms, self.logit_variance)
        if (
            recipe.dropout or recipe.steps is None
        ):  # noise in training, or fine-tuning for some epochs
            return super()._train(
                net, positions, targets, replace(recipe, weight_decay=strength), seed, progress
            )
        with torch.no_grad():
            self.source.resident()
            where = torch.from_numpy(positions).to(self.device)
            features = torch.cat(
                [net.embed(self.source.take(part)) for part in where.split(self.source.batch)]
            )
        wanted = torch.from_numpy(np.ascontiguousarray(targets, np.float32)).to(self.device)
        solve(net.out, features, wanted, self._loss(targets), strength=strength, steps=recipe.steps)
        progress(recipe.steps, recipe.steps, "training")
        net.eval()
        return False

    def predict(self, positions: np.ndarray, progress: ProgressCallback = quiet) -> Prediction:
        """A linear head's features, the standardised ones, are kept on a CPU from round to round:
        don't write there.
        """
        rows = len(self.pool)
        width = int((self.source.shape or (1,))[0])
        if (
            self.head != "linear"
            or self.device != "cpu"
            or self.net is None
            or rows * width * 4 > neural.LARGE
        ):
            return super().predict(positions, progress)
        import torch
        from torch.nn import functional as F

        from tailor.models.heads import Head, activate, uniform

        net = self._trained()
        where = self._positions(positions)
        assert isinstance(net, Head)
        kept = self._standardised(net)
        whole = len(where) == len(kept) and bool((where == np.arange(len(kept))).all())
        features = kept if whole else kept[where]
        with torch.no_grad():
            parts = [
                activate(self.task, F.linear(x, net.out.weight, net.out.bias))
                for x in torch.from_numpy(features).split(self.source.batch)
            ]
        probs = torch.cat(parts).numpy() if parts else np.empty((0, self.task.size), np.float32)
        probs[~self.source.readable[where]] = uniform(self.task)
        progress(len(where), len(where), "predicting")
        return Prediction(probs, features)

    def _standardised(self, net: Head) -> np.ndarray:
        """(N, d) float32: what net.embed() makes of the pool, 0 where an entry can't be read."""
        import torch

        known = (self.source.rows, net.mean.numpy(), net.scale.numpy())
        if self._standard is None or not all(
            np.array_equal(a, b) for a, b in zip(self._standard[0], known)
        ):
            features = np.zeros((len(self.source.rows), net.width), np.float32)
            good = np.flatnonzero(self.source.readable)
            with torch.no_grad():
                for start in range(0, len(good), self.source.batch):
                    part = good[start : start + self.source.batch]
                    features[part] = net.embed(self.source.take(torch.from_numpy(part))).numpy()
            self._standard = (tuple(a.copy() for a in known), features)
        return self._standard[1]

    def _spread(self) -> tuple[np.ndarray, np.ndarray]:
        """(d,) mean and (d,) deviation of the pool's features, float32; 1 where a feature is
        constant.
        """
        known = np.arange(len(self.source.rows)) if self.known is None else self.known
        if self._measured is None or not np.array_equal(self._measured[0], known):
            good = known[self.source.readable[known]]
            if len(good) == 0:
                width = self.source.shape or (1,)
                return np.zeros(width, np.float32), np.ones(width, np.float32)
            good = good[:: max(1, -(-len(good) // MEASURED))]
            total, square = 0.0, 0.0
            for start in range(0, len(good), 4096):
                part = self.source.take_host(good[start : start + 4096]).astype(np.float64)
                total = total + part.sum(0)
                square = square + (part**2).sum(0)
            mean = np.asarray(total / len(good))
            deviation = np.sqrt(np.maximum(square / len(good) - mean**2, 0))
            deviation = np.where(deviation > 1e-6, deviation, 1)
            self._measured = (known.copy(), mean.astype(np.float32), deviation.astype(np.float32))
        return self._measured[1:]

    def describe(self) -> dict[str, Any]:
        r = self.recipe
        return {
            "model": self.name,
            "backbone": self.backbone.describe(),
            "head": self.head,
            "hidden": self.hidden,
            "steps": r.steps,
            "logit_variance": self.logit_variance,
            "batch": r.batch,
            "lr": r.lr,
            "weight_decay": r.weight_decay,
            "dropout": r.dropout,
            "class_weights": self.class_weights
            if isinstance(self.class_weights, str | None)
            else [float(w) for w in self.class_weights],
        }
