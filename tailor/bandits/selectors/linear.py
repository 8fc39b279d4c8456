"""Linear Thompson sampling: what is left of TAILOR when only the rewards are seen, not the
labels.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tailor.bandits.base import Contest, Outcomes, Selector
from tailor.bandits.checks import argmax_ties, check_outcomes, check_slots, check_weights, restored


class LinearThompson(Selector):
    """A Gaussian over each arm's theta in R^K, prior N(0, I), noise variance 1, fed with (v, <v,
    y>) only.

    Russo and Van Roy 2014, "Learning to Optimize via Posterior Sampling". Vectors and rewards are
    both scaled by K, so theta keeps its meaning. A round has one v: with R distinct vectors X (R,
    K) and n (R,) pulls of each, the Woodbury identity needs only the Gram matrix X X' (R, R), never
    a K x K matrix.
    """

    name = "linear-thompson"

    def __init__(self, contest: Contest) -> None:
        super().__init__(contest)
        self.vectors = np.zeros((0, contest.task.size))  # (R, K) distinct v, unscaled
        self.pulls = np.zeros((contest.size, 0))  # (M, R)
        self.sums = np.zeros((contest.size, 0))  # (M, R) of scaled rewards

    def gaussian(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """weights v (K,) -> mean and variance of K <v, theta_i>, (M,) each."""
        k = self.contest.task.size
        x = k * check_weights(self.contest, weights)
        known = k * self.vectors
        # (R, R), (R,)
        gram = known @ known.T
        cross = known @ x
        root = np.sqrt(self.pulls)
        # Sigma = I - X' D (I + D G D)^-1 D X with D = diag(root), for each arm
        inner = np.eye(len(known)) + root[:, :, None] * gram * root[:, None, :]
        left = np.linalg.solve(inner, (root * cross)[:, :, None])[:, :, 0] * root  # (M, R)
        mean = self.sums @ cross - np.einsum("mr,rs,ms->m", left, gram, self.sums)
        return mean, np.maximum(0.0, x @ x - left @ cross)

    def plan(self, slots: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        slots = check_slots(slots)
        mean, variance = self.gaussian(weights)
        spread = np.sqrt(variance)
        best = np.empty(slots, np.int64)
        for start in range(0, slots, 1024):  # a thousand slots at a time keep memory small
            n = min(1024, slots - start)
            best[start : start + n] = argmax_ties(
                mean + spread * rng.standard_normal((n, len(mean))), rng
            )
        return best

    def learn(self, outcomes: Outcomes) -> None:
        arms, labels = check_outcomes(self.contest, outcomes)
        v = check_weights(self.contest, outcomes.weights)
        same = np.flatnonzero((self.vectors == v).all(axis=1))
        if same.size:
            column = int(same[0])
        else:
            column = len(self.vectors)
            self.vectors = np.vstack([self.vectors, v])
            self.pulls, self.sums = (np.pad(x, ((0, 0), (0, 1))) for x in (self.pulls, self.sums))
        rewards = self.contest.task.size * (labels @ v)
        self.pulls[:, column] += np.bincount(arms, minlength=self.contest.size)
        self.sums[:, column] += np.bincount(arms, weights=rewards, minlength=self.contest.size)

    def state(self) -> dict[str, np.ndarray]:
        return {
            "vectors": self.vectors.copy(),
            "pulls": self.pulls.copy(),
            "sums": self.sums.copy(),
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        rows = len(state["vectors"]) if "vectors" in state else 0
        vectors = restored(state, "vectors", (rows, self.contest.task.size))
        pulls, sums = (
            restored(state, name, (self.contest.size, rows)) for name in ("pulls", "sums")
        )
        self.vectors, self.pulls, self.sums = (x.astype(np.float64) for x in (vectors, pulls, sums))
