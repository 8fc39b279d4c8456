"""What a linear head says of each labelled example when it has not learned that example's label."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from tailor.common.stacked_solver import StackedProblem, solve_stacked
from tailor.models.convex import shrinkage
from tailor.models.linear_cross_validation import principal_components
from tailor.models.losses import activate
from tailor.task import MultiClass, Task

#: terms of a loss -> how strongly weights are held back beside their mean
Shrinkage = Callable[[int], float]

#: parts of the labels, each judged by a head that was trained on the others
FOLDS = 5
#: principal components of the labelled features that the heads see, at most
LARGEST_WIDTH = 256
#: numbers of one kind (heads x examples x classes) that are held at a time, at most
LARGEST_STACK = 20_000_000
#: iterations of each fit
STEPS = 25
#: of the Gaussian prior of a logit, the strongest first. Stronger than a probe's own: a head that
#: can follow single labels gives wrong ones away less (benchmarks/mislabels.py)
LOGIT_VARIANCES = (1.0, 3.0, 10.0)
#: a label that is less probable counts as this probable: wrong ones must not decide
SMALLEST_PROBABILITY = 1e-3


def cross_fit_linear(
    task: Task,
    features: Tensor,
    targets: np.ndarray,
    *,
    seed: int,
) -> np.ndarray:
    """Probabilities (n, K) float32 of every labelled example, by a linear head that was trained on
    the labels of the other folds alone.

    The heads have no correction for skewed labels: what they are asked is how likely a label is
    among the labels that were given. Of LOGIT_VARIANCES the one counts whose heads find the labels
    likeliest.

    features  (n, d) standardised, on any device, n at least 2
    targets   (n, K) of 0 and 1
    """
    folds = spread_over_folds(task, targets, np.random.default_rng(seed))
    width = features.shape[1]
    components = principal_components(features, LARGEST_WIDTH)
    ones = torch.ones(len(components), 1, device=components.device)
    with_bias = torch.cat([components, ones], 1)
    best = None
    smallest_loss = np.inf
    for variance in LOGIT_VARIANCES:
        logits = _held_out_logits(
            task,
            with_bias,
            targets,
            folds,
            shrinkage_of=partial(shrinkage, width, variance=variance),
        )
        probs = activate(task, torch.from_numpy(logits)).numpy()
        loss = _log_loss(targets, probs)
        # The loss has one minimum: a weaker prior makes it no better.
        if loss >= smallest_loss:
            break
        best = probs
        smallest_loss = loss
    assert best is not None
    return best


def _log_loss(targets: np.ndarray, probs: np.ndarray) -> float:
    """Of targets (n, K) with probs (n, K), the mean over all."""
    of_target = np.where(targets > 0.5, probs, 1 - probs)
    logarithms = np.log(np.maximum(of_target, SMALLEST_PROBABILITY))
    return -float(logarithms.mean())


def _held_out_logits(
    task: Task,
    features: Tensor,
    targets: np.ndarray,
    folds: np.ndarray,
    shrinkage_of: Shrinkage,
) -> np.ndarray:
    """(n, K) float32: of every example by the head that did not see it."""
    heads = np.arange(folds.max() + 1)
    is_seen = folds != heads[:, None]
    logits = np.zeros(targets.shape, np.float32)
    # Side by side, as many as fit.
    at_once = max(1, LARGEST_STACK // targets.size)
    for first in range(0, len(heads), at_once):
        seen_by_part = is_seen[first : first + at_once]
        weights = solve_heads(
            task,
            features,
            targets,
            seen_by_part,
            shrinkage_of,
        )
        for head, seen in zip(weights, seen_by_part):
            rows = np.flatnonzero(~seen)
            held_out = features[torch.from_numpy(rows).to(features.device)]
            of_fold = held_out @ head
            logits[rows] = of_fold.cpu().numpy()
    return logits


def spread_over_folds(task: Task, targets: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """targets (n, K) -> the fold (n,) int64 in which each example is held out: FOLDS of them, or
    one an example where there are fewer. In a multi-class task every class is spread evenly.
    """
    count = len(targets)
    order = rng.permutation(count)
    if isinstance(task, MultiClass):
        # Sorted by class, and within one as they were shuffled.
        classes = targets.argmax(1)
        by_class = np.argsort(classes[order], kind="stable")
        order = order[by_class]
    folds = np.empty(count, np.int64)
    folds[order] = np.arange(count) % min(FOLDS, count)
    return folds


def solve_heads(
    task: Task,
    features: Tensor,
    targets: np.ndarray,
    is_seen: np.ndarray,
    shrinkage_of: Shrinkage,
) -> Tensor:
    """(heads, d + 1, K): a head for each row of is_seen (heads, n), trained on what it sees.

    features      (n, d + 1), the last column 1
    shrinkage_of  terms of a loss -> what half the sum of squared weights counts beside their mean
    """
    is_multi_class = isinstance(task, MultiClass)
    device = features.device
    terms = is_seen.sum(1)
    if not is_multi_class:
        terms = terms * task.size
    row_weights = is_seen / terms[:, None]
    strengths = [shrinkage_of(count) for count in terms.tolist()]
    problem = StackedProblem(
        features=features,
        targets=torch.from_numpy(targets.astype(np.float32)).to(device),
        row_weights=torch.from_numpy(row_weights.astype(np.float32)).to(device),
        strengths=torch.tensor(strengths, device=device),
        positive_weights=None,
        multi_class=is_multi_class,
    )
    start = torch.zeros(
        len(is_seen),
        features.shape[1],
        task.size,
        device=device,
    )
    return solve_stacked(problem, start, STEPS)
