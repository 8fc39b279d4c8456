"""COMB: a bandit rewarded by how evenly the model's predictions spread over the classes."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import xlogy

from tailor.bandits.base import Fit
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
        rates = np.asarray(fit.rates, dtype=np.float64)
        rates = np.clip(rates, 0, 1)
        if task.kind == "multi-class":
            total = rates.sum()
            shares = rates / total if total > 0 else rates
            nats = xlogy(shares, shares).sum()
            most = math.log(task.size)
        else:
            absent = 1 - rates
            nats_by_class = xlogy(rates, rates) + xlogy(absent, absent)
            nats = nats_by_class.mean()
            most = math.log(2)
        entropy = -float(nats) / most
        # Rounding may leave [0, 1] by a little.
        entropy = min(1.0, max(0.0, entropy))
        return math.expm1(entropy) / math.expm1(1)
