"""The model of the trials: a linear head to its optimum."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tailor.models.convex import shrinkage, solve
from tailor.models.losses import activate, make_loss
from tailor.models.recipe import LOGIT_VARIANCE
from tailor_experiments.metrics import score
from tailor_experiments.policy.pools import LabelledPool

#: steps of L-BFGS from nothing, and from the head before a few labels more
STEPS = 60
MORE_STEPS = 12


class TrialHead:
    """Regularised logistic regression on a pool's features.

    start  a head whose weights this one begins with; None: zero
    """

    def __init__(self, pool: LabelledPool, start: TrialHead | None = None) -> None:
        self._pool = pool
        width = pool.features.shape[1]
        self._layer = nn.Linear(width, pool.task.size)
        self._is_fresh = start is None
        with torch.no_grad():
            if start is None:
                self._layer.weight.zero_()
                self._layer.bias.zero_()
            else:
                self._layer.load_state_dict(start._layer.state_dict())

    def fit(self, labelled: np.ndarray) -> TrialHead:
        """labelled (n,): positions whose labels the head may see."""
        pool = self._pool
        features = torch.from_numpy(pool.features[labelled])
        labels = torch.from_numpy(pool.labels[labelled]).float()
        variance = float(LOGIT_VARIANCE[pool.task.kind])
        count, width = features.shape
        steps = MORE_STEPS
        if self._is_fresh:
            steps = STEPS
        solve(
            self._layer,
            features,
            labels,
            make_loss(pool.task, None),
            strength=shrinkage(width, count, variance),
            steps=steps,
        )
        return self

    def predict(self, features: np.ndarray) -> np.ndarray:
        """features (n, d) -> probabilities (n, K) float32."""
        with torch.no_grad():
            logits = self._layer(torch.from_numpy(features))
            probs: np.ndarray = activate(self._pool.task, logits).numpy()
        return probs

    def test_score(self) -> float:
        """Balanced accuracy on the test set, or mean average precision in a multi-label task."""
        probs = self.predict(self._pool.test_features)
        return score(self._pool.task.kind, self._pool.test_labels, probs)
