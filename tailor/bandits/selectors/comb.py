"""COMB: a bandit rewarded by how evenly the model's predictions spread over the classes."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import xlogy

from tailor.bandits.base import Fit
from tailor.bandits.checks import as_floats
from tailor.bandits.selectors.exponential_weights import EXP4


class COMB(EXP4):
    """Classification entropy of the predictions on the unlabelled pool as reward, in batches.

    Baram, El-Yaniv and Luz 2004, "Online Choice of Active Learning Algorithms". Multi-class:
    entropy of the predicted class shares over ln K. Multi-label: mean binary entropy, in bits, of
    the positive rates. Stretched by (e^r - 1) / (e - 1), as in the paper; a reward of the user's
    own is taken as it is.

    Formula: p_i = (1 − g) w_i / Σ_j w_j + g/M; each slot of arm i multiplies w_i by exp(g r / (M
    p_i)), with g = √(M ln M / ((e − 1) T)) and r the stretched entropy of the predictions.

    Cost: M numbers; it must be told how the model's predictions spread over the unlabelled pool.

    When to use: to compare with what was published. Its reward assumes that classes are equally
    frequent.
    """

    name = "comb"

    def reward(self, fit: Fit) -> float:
        task = self.contest.task
        rates = as_floats(fit.rates)
        rates = np.clip(rates, 0, 1)
        if task.kind == "multi-class":
            entropy = _entropy_of_shares(rates)
            largest = math.log(task.size)
        else:
            entropy = _mean_binary_entropy(rates)
            largest = math.log(2)
        evenness = entropy / largest
        # Rounding may leave [0, 1] by a little.
        evenness = max(0.0, evenness)
        evenness = min(1.0, evenness)
        stretched = math.expm1(evenness)
        return stretched / math.expm1(1)


def _entropy_of_shares(rates: np.ndarray) -> float:
    """In nats, of rates (K,) as shares of their sum. xlogy() gives 0 for a share of 0."""
    shares = rates
    total = rates.sum()
    if total > 0:
        shares = rates / total
    nats_by_class = xlogy(shares, shares)
    return -float(nats_by_class.sum())


def _mean_binary_entropy(rates: np.ndarray) -> float:
    """In nats, the mean over classes of the entropy of rate (K,) and 1 - rate."""
    absent = 1 - rates
    nats_present = xlogy(rates, rates)
    nats_absent = xlogy(absent, absent)
    nats_by_class = nats_present + nats_absent
    return -float(nats_by_class.mean())
