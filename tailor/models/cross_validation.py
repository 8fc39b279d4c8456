"""Choosing a correction and a linear head's regularisation from the labels at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tailor.models.convex import shrinkage
from tailor.models.prior_correction import Correction, centred_log_shares
from tailor.models.recipe import LOGIT_VARIANCE
from tailor.models.stacked_solver import StackedProblem, solve_stacked
from tailor.task import MultiClass, Task

FOLDS = 5
#: labels that the choice is made on, at most: more are sampled
LARGEST_SAMPLE = 2000
#: principal components of the labelled features that the fits of the choice see, at most
LARGEST_WIDTH = 256
#: held-out labels that a choice needs, at least
SMALLEST_SAMPLE = 10
#: iterations of each fit
STEPS = 25

TAUS = (0.0, 0.25, 0.5, 0.75, 1.0)
TEMPERATURES = (0.35, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0)
VARIANCES = (3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class Candidates:
    """What is chosen among: every combination.

    variances  of a linear head's logits, ascending
    """

    taus: Sequence[float]
    temperatures: Sequence[float]
    variances: Sequence[float | None] = (None,)


def draw_folds(task: Task, targets: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """targets (n, K) -> the fold (n,) int64 in which each example is held out, from 0 to FOLDS - 1.

    In a multi-class task every class is spread evenly over the folds.
    """
    order = rng.permutation(len(targets))
    if isinstance(task, MultiClass):
        classes = targets.argmax(1)
        order = order[np.argsort(classes[order], kind="stable")]
    folds = np.empty(len(targets), np.int64)
    folds[order] = np.arange(len(targets)) % FOLDS
    return folds


def held_out_losses(
    task: Task,
    logits: np.ndarray,
    targets: np.ndarray,
    counts: np.ndarray,
    candidates: Candidates,
) -> np.ndarray:
    """Log losses (temperatures, taus, n) float64 of held-out examples, multi-label: their mean over
    classes, with one tau.

    logits  (n, K) of a network that was not trained on them
    counts  (K,) of the labels that it was trained on
    """
    logits = logits.astype(np.float64)
    losses = []
    if not isinstance(task, MultiClass):
        for temperature in candidates.temperatures:
            scaled = logits / temperature
            binary = np.logaddexp(0, scaled) - targets * scaled
            losses.append(binary.mean(1)[None])
        return np.stack(losses)
    taus = np.array(candidates.taus)[:, None]
    shifts = taus * centred_log_shares(counts)
    classes = targets.argmax(1)
    rows = np.arange(len(logits))
    for temperature in candidates.temperatures:
        scaled = logits / temperature
        scaled_shifts = shifts / temperature
        largest = scaled.max(1, keepdims=True)
        # The sum of exp((z - shift) / T) over classes, for all taus in one product.
        sums = np.exp(scaled - largest) @ np.exp(-scaled_shifts).T
        log_sums = np.log(sums) + largest
        of_true_class = scaled[rows, classes][:, None] - scaled_shifts.T[classes]
        losses.append((log_sums - of_true_class).T)
    return np.stack(losses)


def example_weights(task: Task, targets: np.ndarray) -> np.ndarray:
    """Weights (n,) of held-out examples that sum to 1: in a multi-class task all classes that occur
    count the same, in a multi-label task all examples.
    """
    if not isinstance(task, MultiClass):
        return np.full(len(targets), 1 / len(targets))
    counts = targets.sum(0)
    occurring = np.count_nonzero(counts)
    return 1 / (occurring * counts[targets.argmax(1)])


def choose(
    task: Task,
    candidates: Candidates,
    losses: np.ndarray,
    targets: np.ndarray,
    counts: np.ndarray,
) -> Correction:
    """The best candidates by the losses of held-out examples.

    In a multi-class task tau and the variance are chosen on classes with two labels or more: a fit
    without a class has nothing to say about it. The temperature is then chosen on all examples:
    the only label of a class, held out, shows how often a class comes that has no label yet, and
    how little a model may be sure of itself.

    losses   (variances, temperatures, taus, n)
    targets  (n, K) of the held-out examples
    counts   (K,) of all labels at hand
    """
    weights = example_weights(task, targets)
    repeated = _repeated(task, targets, counts)
    variance, tau = _default_indices(task, candidates)
    if _enough(task, targets[repeated]):
        repeated_weights = example_weights(task, targets[repeated])
        means = losses[..., repeated] @ repeated_weights
        best = np.unravel_index(int(np.argmin(means)), means.shape)
        variance = int(best[0])
        tau = int(best[2])
    by_temperature = losses[variance, :, tau] @ weights
    temperature = int(np.argmin(by_temperature))
    return Correction(
        tau=candidates.taus[tau],
        temperature=candidates.temperatures[temperature],
        logit_variance=candidates.variances[variance],
    )


def _repeated(task: Task, targets: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(n,) bool: the held-out examples whose class has another label."""
    if not isinstance(task, MultiClass):
        return np.ones(len(targets), bool)
    return counts[targets.argmax(1)] > 1


def _enough(task: Task, targets: np.ndarray) -> bool:
    """Whether targets (n, K) say anything: SMALLEST_SAMPLE of them, of two classes."""
    if len(targets) < SMALLEST_SAMPLE:
        return False
    if not isinstance(task, MultiClass):
        return True
    return bool(np.count_nonzero(targets.sum(0)) > 1)


def _default_indices(task: Task, candidates: Candidates) -> tuple[int, int]:
    """(variance, tau) where labels are too few to choose: the default variance if it is among them,
    and the strongest correction, which the fewest labels need most.
    """
    variances = list(candidates.variances)
    default = LOGIT_VARIANCE[task.kind]
    variance = variances.index(default) if default in variances else 0
    return variance, len(candidates.taus) - 1


def choose_held_out(
    task: Task,
    logits: np.ndarray,
    targets: np.ndarray,
    seen_counts: np.ndarray,
) -> Correction:
    """The tau and the temperature for a network, from logits (n, K) of examples with targets (n, K)
    that it was not trained on.

    seen_counts  (K,) of the labels that it was trained on
    """
    candidates = Candidates(taus_for(task), TEMPERATURES)
    losses = held_out_losses(task, logits, targets, seen_counts, candidates)
    return choose(task, candidates, losses[None], targets, seen_counts + targets.sum(0))


def taus_for(task: Task) -> Sequence[float]:
    """The strengths to choose among. A multi-label task has none: a shift of one class's logits
    changes neither the order of its examples nor another class.
    """
    return TAUS if isinstance(task, MultiClass) else (0.0,)


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
        sample = np.sort(rng.permutation(len(targets))[:LARGEST_SAMPLE])
        features = features[torch.from_numpy(sample).to(features.device)]
        targets = targets[sample]
    folds = draw_folds(task, targets, rng)
    stack = _FoldStack(task, features, targets, class_weights, folds)
    losses = []
    # From the strongest regularisation on: each solution is the start of the next.
    for variance in candidates.variances:
        assert variance is not None
        logits = stack.held_out_logits(variance)
        losses.append(stack.losses(logits, candidates))
    return choose(task, candidates, np.stack(losses), targets, targets.sum(0))


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
        device = features.device
        components = principal_components(features, LARGEST_WIDTH)
        ones = torch.ones(len(components), 1, device=device)
        self.features = torch.cat([components, ones], 1)
        self.device_targets = torch.from_numpy(targets.astype(np.float32)).to(device)
        self.positive_weights: Tensor | None = None
        is_seen = folds != np.arange(FOLDS)[:, None]
        row_weights = is_seen.astype(np.float32)
        self.terms = is_seen.sum(1)
        if isinstance(task, MultiClass):
            if class_weights is not None:
                row_weights = row_weights * (targets @ class_weights)
        else:
            self.terms = self.terms * task.size
            if class_weights is not None:
                self.positive_weights = torch.from_numpy(class_weights).to(device)
        if isinstance(task, MultiClass):
            normed = row_weights / np.maximum(row_weights.sum(1, keepdims=True), 1e-12)
        else:
            normed = row_weights / np.maximum(self.terms, 1)[:, None]
        self.row_weights = torch.from_numpy(normed.astype(np.float32)).to(device)
        shape = (FOLDS, self.features.shape[1], task.size)
        self.weights = torch.zeros(shape, device=device)

    def held_out_logits(self, variance: float) -> np.ndarray:
        """(n, K) float32: of every example by the head that was not trained on it."""
        strengths = [shrinkage(self.width, int(terms), variance) for terms in self.terms]
        problem = StackedProblem(
            features=self.features,
            targets=self.device_targets,
            row_weights=self.row_weights,
            strengths=torch.tensor(strengths, device=self.features.device),
            positive_weights=self.positive_weights,
            multi_class=isinstance(self.task, MultiClass),
        )
        self.weights = solve_stacked(problem, self.weights, STEPS)
        logits = np.zeros(self.targets.shape, np.float32)
        for fold in range(FOLDS):
            rows = np.flatnonzero(self.folds == fold)
            held_out = self.features[torch.from_numpy(rows).to(self.features.device)]
            logits[rows] = (held_out @ self.weights[fold]).cpu().numpy()
        return logits

    def losses(self, logits: np.ndarray, candidates: Candidates) -> np.ndarray:
        """(temperatures, taus, n) of logits (n, K)."""
        shape = (len(candidates.temperatures), len(candidates.taus), len(logits))
        losses = np.zeros(shape)
        for fold in range(FOLDS):
            rows = np.flatnonzero(self.folds == fold)
            counts = self.targets[self.folds != fold].sum(0)
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
        values, vectors = torch.linalg.eigh(features @ features.T)
        coordinates = vectors * values.clamp_min(0).sqrt()
    else:
        _, vectors = torch.linalg.eigh(features.T @ features)
        coordinates = features @ vectors
    # Eigenvalues come in ascending order.
    return coordinates[:, -min(rows, width, most) :].contiguous()
