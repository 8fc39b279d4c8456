"""Cross-validation of linear heads: all folds of a regularisation solved side by side."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tailor.common.stacked_solver import StackedProblem, solve_stacked
from tailor.models.convex import shrinkage
from tailor.models.cross_validation import (
    FOLDS,
    Candidates,
    choose,
    draw_folds,
    held_out_losses,
)
from tailor.models.prior_correction import Correction
from tailor.task import MultiClass, Task

#: labels that the choice is made on, at most: more are sampled
LARGEST_SAMPLE = 2000
#: principal components of the labelled features that the fits of the choice see, at most
LARGEST_WIDTH = 256
#: where the weights of all rows of a head are smaller together, they are taken for this
SMALLEST_TOTAL = 1e-12
#: iterations of each fit
STEPS = 25


def choose_linear(
    task: Task,
    features: Tensor,
    targets: np.ndarray,
    class_weights: np.ndarray | None,
    candidates: Candidates,
    seed: int,
) -> Correction:
    """The candidates with the smallest held-out loss of linear heads on standardised features, by
    five-fold cross-validation: class-balanced log loss, in a multi-label task mean log loss.

    The fits see a random sample of at most LARGEST_SAMPLE labels and the LARGEST_WIDTH first
    principal components of their features. All folds are solved side by side.

    features       (n, d) on any device, n at least SMALLEST_SAMPLE
    targets        (n, K) of 0 and 1
    class_weights  (K,) in the loss, or None
    """
    rng = np.random.default_rng(seed)
    if len(targets) > LARGEST_SAMPLE:
        # Drawn evenly over all labels: a sample with balanced classes would hide their skew.
        order = rng.permutation(len(targets))
        sample = np.sort(order[:LARGEST_SAMPLE])
        features = _rows(features, sample)
        targets = targets[sample]
    folds = draw_folds(task, targets, rng)
    stack = _FoldStack(
        task,
        features,
        targets,
        class_weights,
        folds,
    )
    losses = []
    # From the strongest regularisation on: each solution is the start of the next.
    for variance in candidates.variances:
        assert variance is not None
        logits = stack.held_out_logits(variance)
        losses.append(stack.losses(logits, candidates))
    return choose(
        task,
        candidates,
        np.stack(losses),
        targets,
        targets.sum(0),
    )


class _FoldStack:
    """One linear head for each fold, trained on the other folds.

    As choose_linear() has them; folds (n,) as draw_folds() gives them.
    """

    def __init__(
        self,
        task: Task,
        features: Tensor,
        targets: np.ndarray,
        class_weights: np.ndarray | None,
        folds: np.ndarray,
    ) -> None:
        self.task = task
        self.targets = targets
        self.folds = folds
        self.width = features.shape[1]
        self.device = features.device
        components = principal_components(features, LARGEST_WIDTH)
        self.features = _with_ones(components)
        self.device_targets = self._to_device(targets)
        #: (K,) of a class's positives, in a multi-label task
        self.positive_weights: Tensor | None = None
        if class_weights is not None and not isinstance(task, MultiClass):
            self.positive_weights = self._to_device(class_weights)
        is_seen = self._seen_by_heads()
        #: (FOLDS,) terms of the loss of each head
        self.terms = is_seen.sum(1)
        if not isinstance(task, MultiClass):
            self.terms = self.terms * task.size
        row_weights = self._weigh_rows(is_seen, class_weights)
        self.row_weights = self._to_device(row_weights)
        #: (FOLDS, width + 1, K) of the solution before, where the next one starts
        self.weights = torch.zeros(
            FOLDS,
            self.features.shape[1],
            task.size,
            device=self.device,
        )

    def _seen_by_heads(self) -> np.ndarray:
        """(FOLDS, n) bool: the examples that each head is trained on."""
        fold_numbers = np.arange(FOLDS)
        return self.folds != fold_numbers[:, None]

    def _weigh_rows(self, is_seen: np.ndarray, class_weights: np.ndarray | None) -> np.ndarray:
        """(FOLDS, n) float64: the weight of each example in the loss of each head, a mean over its
        terms.
        """
        row_weights = is_seen.astype(np.float64)
        if isinstance(self.task, MultiClass):
            if class_weights is not None:
                row_weights *= self.targets @ class_weights
            totals = row_weights.sum(1)
        else:
            totals = self.terms.astype(np.float64)
        # Classes of weight 0 may be all that a head sees.
        divisors = np.maximum(totals, SMALLEST_TOTAL)
        row_weights /= divisors[:, None]
        return row_weights

    def _to_device(self, array: np.ndarray) -> Tensor:
        single_precision = array.astype(np.float32)
        return torch.from_numpy(single_precision).to(self.device)

    def held_out_logits(self, variance: float) -> np.ndarray:
        """(n, K) float32: of every example by the head that was not trained on it."""
        strengths = []
        for terms in self.terms.tolist():
            strength = shrinkage(self.width, terms, variance)
            strengths.append(strength)
        problem = StackedProblem(
            features=self.features,
            targets=self.device_targets,
            row_weights=self.row_weights,
            strengths=torch.tensor(strengths, device=self.device),
            positive_weights=self.positive_weights,
            multi_class=isinstance(self.task, MultiClass),
        )
        self.weights = solve_stacked(problem, self.weights, STEPS)
        logits = np.zeros(self.targets.shape, np.float32)
        for fold in range(FOLDS):
            rows = np.flatnonzero(self.folds == fold)
            held_out = _rows(self.features, rows)
            of_fold = held_out @ self.weights[fold]
            logits[rows] = of_fold.cpu().numpy()
        return logits

    def losses(self, logits: np.ndarray, candidates: Candidates) -> np.ndarray:
        """(temperatures, taus, n) of logits (n, K)."""
        shape = (
            len(candidates.temperatures),
            len(candidates.taus),
            len(logits),
        )
        losses = np.zeros(shape)
        for fold in range(FOLDS):
            rows = np.flatnonzero(self.folds == fold)
            seen = self.targets[self.folds != fold]
            counts = seen.sum(0)
            losses[:, :, rows] = held_out_losses(
                self.task,
                logits[rows],
                self.targets[rows],
                counts,
                candidates,
            )
        return losses


def principal_components(features: Tensor, most: int) -> Tensor:
    """features (n, d) -> their coordinates (n, r) along the r = min(n, d, most) directions in which
    they are longest: without loss where r is n or d.
    """
    rows, width = features.shape
    # The smaller of the two products of the features with themselves has the same eigenvalues.
    if rows <= width:
        products = features @ features.T
        values, vectors = torch.linalg.eigh(products)
        lengths = values.clamp_min(0).sqrt()
        coordinates = vectors * lengths
    else:
        products = features.T @ features
        _, vectors = torch.linalg.eigh(products)
        coordinates = features @ vectors
    # Eigenvalues come in ascending order.
    count = min(rows, width, most)
    return coordinates[:, -count:].contiguous()


def _with_ones(features: Tensor) -> Tensor:
    """features (n, d) -> (n, d + 1), the last column 1: its weight is the bias."""
    ones = torch.ones(len(features), 1, device=features.device)
    return torch.cat([features, ones], 1)


def _rows(features: Tensor, rows: np.ndarray) -> Tensor:
    """features (n, d) at rows (m,) -> (m, d)."""
    index = torch.from_numpy(rows).to(features.device)
    return features[index]
