"""Choosing a correction and a linear head's regularisation from the labels at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailor.models.prior_correction import Correction, centred_log_shares
from tailor.models.recipe import LOGIT_VARIANCE
from tailor.task import MultiClass, Task

FOLDS = 5
#: held-out labels that a choice needs, at least
SMALLEST_SAMPLE = 10

#: of the Gaussian prior of a temperature's logarithm
LOG_TEMPERATURE_VARIANCE = 0.1
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
        # Sorted by class, and within one as they were shuffled.
        classes = targets.argmax(1)
        by_class = np.argsort(classes[order], kind="stable")
        order = order[by_class]
    places = np.arange(len(targets))
    folds = np.empty(len(targets), np.int64)
    folds[order] = places % FOLDS
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
    taus = np.array(candidates.taus)
    log_shares = centred_log_shares(counts)
    shifts = np.outer(taus, log_shares)
    losses = []
    for temperature in candidates.temperatures:
        scaled = logits / temperature
        if isinstance(task, MultiClass):
            of_temperature = _cross_entropies(scaled, shifts / temperature, targets)
        else:
            of_temperature = _binary_cross_entropies(scaled, targets)
        losses.append(of_temperature)
    return np.stack(losses)


def _binary_cross_entropies(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Log losses (1, n) of logits (n, K), their mean over classes."""
    losses = np.logaddexp(0, logits)
    losses -= targets * logits
    of_examples = losses.mean(1)
    return of_examples[None]


def _cross_entropies(logits: np.ndarray, shifts: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Log losses (shifts, n) of logits (n, K) less each of shifts (shifts, K)."""
    # Less the largest: exp() of a large logit would be infinite.
    largest = logits.max(1, keepdims=True)
    raised = np.exp(logits - largest)
    # The sum of exp(logit - shift) over classes, for all shifts in one product.
    factors = np.exp(-shifts)
    sums = factors @ raised.T
    log_sums = np.log(sums) + largest.T
    classes = targets.argmax(1)
    rows = np.arange(len(logits))
    of_true_class = logits[rows, classes] - shifts[:, classes]
    return log_sums - of_true_class


def example_weights(task: Task, targets: np.ndarray) -> np.ndarray:
    """Weights (n,) of held-out examples that sum to 1: in a multi-class task all classes that occur
    count the same, in a multi-label task all examples.
    """
    count = len(targets)
    if not isinstance(task, MultiClass):
        return np.full(count, 1 / count)
    counts = targets.sum(0)
    occurring = np.count_nonzero(counts)
    classes = targets.argmax(1)
    per_example = occurring * counts[classes]
    return 1 / per_example


def choose(
    task: Task,
    candidates: Candidates,
    losses: np.ndarray,
    targets: np.ndarray,
    counts: np.ndarray,
) -> Correction:
    """The best candidates by the losses of held-out examples.

    In a multi-class task tau and the variance are chosen on classes with two labels or more: a fit
    without a class has nothing to say about it. The temperature is then chosen with the other
    labels too: the only label of a class, held out, stands for the classes that have no label yet,
    of which a model must not be sure. Where labels are few, it stays close to 1.

    losses   (variances, temperatures, taus, n)
    targets  (n, K) of the held-out examples
    counts   (K,) of all labels at hand
    """
    variance, tau = _default_indices(task, candidates)
    temperature = candidates.temperatures.index(1.0)
    is_repeated = _repeated(task, targets, counts)
    repeated_targets = targets[is_repeated]
    weights = np.zeros(len(targets))
    weights[is_repeated] = example_weights(task, repeated_targets)
    if _enough(task, repeated_targets):
        # The temperature that goes with the best two is chosen again below, on more labels.
        means = losses @ weights
        smallest = np.argmin(means)
        indices = np.unravel_index(smallest, means.shape)
        variance = int(indices[0])
        tau = int(indices[2])
    if _enough(task, targets):
        is_unlabelled = counts == 0
        weights = _with_single_labels(weights, is_repeated, unlabelled_share=is_unlabelled.mean())
        temperature = _best_temperature(candidates.temperatures, losses[variance, :, tau], weights)
    return Correction(
        tau=candidates.taus[tau],
        temperature=candidates.temperatures[temperature],
        logit_variance=candidates.variances[variance],
    )


def _with_single_labels(
    weights: np.ndarray, is_repeated: np.ndarray, unlabelled_share: float
) -> np.ndarray:
    """Weights (n,) of examples with a single label of their class included: together they count as
    much as the classes without a label, of which there is this share.
    """
    singles = np.count_nonzero(~is_repeated)
    if singles == 0:
        return weights
    if singles == len(weights):
        return np.full(singles, 1 / singles)
    labelled_share = 1 - unlabelled_share
    return np.where(is_repeated, labelled_share * weights, unlabelled_share / singles)


def _best_temperature(
    temperatures: Sequence[float], losses: np.ndarray, weights: np.ndarray
) -> int:
    """The index of the temperature with the smallest mean of losses (temperatures, n), its
    logarithm held back by a Gaussian prior around 0.
    """
    log_temperatures = np.log(temperatures)
    squares = np.square(log_temperatures)
    # Weights sum to 1: so many examples of equal weight would say as much.
    squared_weights = np.square(weights)
    examples = 1 / squared_weights.sum()
    precision = 1 / LOG_TEMPERATURE_VARIANCE
    penalties = 0.5 * precision * squares / examples
    means = losses @ weights
    penalised = means + penalties
    return int(np.argmin(penalised))


def _repeated(task: Task, targets: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(n,) bool: the held-out examples whose class has another label."""
    if not isinstance(task, MultiClass):
        return np.ones(len(targets), bool)
    classes = targets.argmax(1)
    return counts[classes] > 1


def _enough(task: Task, targets: np.ndarray) -> bool:
    """Whether targets (n, K) say anything: SMALLEST_SAMPLE of them, of two classes."""
    if len(targets) < SMALLEST_SAMPLE:
        return False
    if not isinstance(task, MultiClass):
        return True
    counts = targets.sum(0)
    occurring = np.count_nonzero(counts)
    return bool(occurring > 1)


def _default_indices(task: Task, candidates: Candidates) -> tuple[int, int]:
    """(variance, tau) where labels are too few to choose: the default variance if it is among them,
    and the strongest correction, which the fewest labels need most.
    """
    variances = list(candidates.variances)
    default = LOGIT_VARIANCE[task.kind]
    variance = 0
    if default in variances:
        variance = variances.index(default)
    strongest = len(candidates.taus) - 1
    return variance, strongest


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
    losses = held_out_losses(
        task,
        logits,
        targets,
        seen_counts,
        candidates,
    )
    all_counts = seen_counts + targets.sum(0)
    return choose(
        task,
        candidates,
        losses[None],
        targets,
        all_counts,
    )


def taus_for(task: Task) -> Sequence[float]:
    """The strengths to choose among. A multi-label task has none: a shift of one class's logits
    changes neither the order of its examples nor another class.
    """
    if isinstance(task, MultiClass):
        return TAUS
    return (0.0,)
