"""What a linear head says of each labelled example when it has not learned that example's label."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tailor.models.convex import shrinkage
from tailor.models.linear_cross_validation import principal_components
from tailor.models.losses import activate
from tailor.models.stacked_solver import StackedProblem, solve_stacked
from tailor.task import MultiClass, Task

#: parts of the labels, each judged by a head that was trained on the others
FOLDS = 5
#: principal components of the labelled features that the heads see, at most
LARGEST_WIDTH = 256
#: numbers of one kind (heads x examples x classes) that are held at a time, at most
LARGEST_STACK = 20_000_000
#: iterations of each fit
STEPS = 25
#: of the Gaussian prior of a logit. Stronger than a probe's own: a head that can follow single
#: labels gives wrong ones away less (benchmarks/mislabels.py)
LOGIT_VARIANCE = 3.0


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
    among the labels that were given.

    features  (n, d) standardised, on any device, n at least 2
    targets   (n, K) of 0 and 1
    """
    folds = spread_over_folds(task, targets, np.random.default_rng(seed))
    width = features.shape[1]
    components = principal_components(features, LARGEST_WIDTH)
    ones = torch.ones(len(components), 1, device=components.device)
    with_bias = torch.cat([components, ones], 1)
    heads = np.arange(folds.max() + 1)
    is_seen = folds != heads[:, None]
    logits = np.zeros(targets.shape, np.float32)
    # Side by side, as many as fit.
    at_once = max(1, LARGEST_STACK // targets.size)
    for first in range(0, len(heads), at_once):
        seen_by_part = is_seen[first : first + at_once]
        weights = _solve_heads(
            task,
            with_bias,
            targets,
            seen_by_part,
            width,
        )
        for head, seen in zip(weights, seen_by_part):
            rows = np.flatnonzero(~seen)
            held_out = with_bias[torch.from_numpy(rows).to(with_bias.device)]
            of_fold = held_out @ head
            logits[rows] = of_fold.cpu().numpy()
    return activate(task, torch.from_numpy(logits)).numpy()


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


def _solve_heads(
    task: Task,
    features: Tensor,
    targets: np.ndarray,
    is_seen: np.ndarray,
    width: int,
) -> Tensor:
    """(heads, d + 1, K): a head for each row of is_seen (heads, n), trained on what it sees.

    width: of the features before they were reduced to their components
    """
    is_multi_class = isinstance(task, MultiClass)
    device = features.device
    terms = is_seen.sum(1)
    if not is_multi_class:
        terms = terms * task.size
    row_weights = is_seen / terms[:, None]
    strengths = [shrinkage(width, count, LOGIT_VARIANCE) for count in terms.tolist()]
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
