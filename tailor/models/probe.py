"""A frozen backbone's features, and a head trained each round in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.errors import InputError, UnknownName
from tailor.models.backbones import Backbone, FeatureSource, make_backbone
from tailor.models.neural import Neural
from tailor.pools.base import Pool
from tailor.task import Task

if TYPE_CHECKING:
    import torch
    from torch import nn

#: the features' mean and spread are measured on at most this many rows, evenly spaced
MEASURED = 65536


class Probe(Neural):
    """A head on the features of a frozen backbone, which are computed once and kept in a cache.

    The features that arms see are the backbone's, standardised; with a hidden layer, its activations.

    backbone       a name, "name(option=value)" or a Backbone; by default what suits the pool's kind
    head           "linear", or "hidden": one layer of `hidden` units before it
    steps, batch   how long the head is trained: that many batches, the learning rate falling to 0
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
        steps: int = 300,
        batch: int = 1024,
        lr: float = 3e-3,
        weight_decay: float = 0.1,
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
        self.head, self.hidden = head, hidden
        self.recipe = Recipe(
            steps=steps, batch=batch, lr=lr, weight_decay=weight_decay, decay=True, dropout=dropout
        )
        self.backbone = make_backbone(backbone, pool, self.device)
        if self.backbone.notice:
            self.say(self.backbone.notice)
        self.source = FeatureSource(pool, self.backbone, None if cache is None else Path(cache), self.device)
        self._measured: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def _fresh(self, generator: torch.Generator, shape: tuple[int, ...]) -> nn.Module:
        from torch import nn

        from tailor.models.heads import Head
        from tailor.models.weights import build

        hidden = self.hidden if self.head == "hidden" else None
        net = build(lambda: Head(shape[0], hidden, self.task.size), generator)
        assert isinstance(net, Head)
        nn.init.zeros_(net.out.weight)
        nn.init.zeros_(net.out.bias)
        spread = self._spread() if len(self.source.rows) else (np.zeros(shape, np.float32), np.ones(shape, np.float32))
        net.standardise(*spread)
        return net

    def _spread(self) -> tuple[np.ndarray, np.ndarray]:
        """(d,) mean and (d,) deviation of the pool's features, float32; 1 where a feature is constant."""
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
                total, square = total + part.sum(0), square + (part**2).sum(0)
            mean = np.asarray(total / len(good))
            deviation = np.sqrt(np.maximum(square / len(good) - mean**2, 0))
            deviation = np.where(deviation > 1e-6, deviation, 1)
            self._measured = (known.copy(), mean.astype(np.float32), deviation.astype(np.float32))
        return self._measured[1:]

    def describe(self) -> dict[str, Any]:
        r = self.recipe
        return {
            "model": self.name, "backbone": self.backbone.describe(), "head": self.head, "hidden": self.hidden,
            "steps": r.steps, "batch": r.batch, "lr": r.lr, "weight_decay": r.weight_decay, "dropout": r.dropout,
            "class_weights": self.class_weights if isinstance(self.class_weights, str | None) else
            [float(w) for w in self.class_weights],
        }  # fmt: skip
