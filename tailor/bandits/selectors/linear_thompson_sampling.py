"""Linear Thompson sampling: what is left of TAILOR when only the rewards are seen, not the
labels.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tailor.bandits.base import Outcomes, Selector
from tailor.bandits.checks import argmax_ties, check_outcomes, check_slots, check_weights, restored

#: slots that are sampled at once, so that memory stays small
BLOCK = 1024


class LinearThompsonSampling(Selector):
    """A Gaussian over each arm's theta in R^K, prior N(0, I), noise variance 1, fed with (v, <v,
    y>) only.

    Russo and Van Roy 2014, "Learning to Optimize via Posterior Sampling". Vectors and rewards are
    both scaled by K, so theta keeps its meaning. A round has one v: with R distinct vectors X (R,
    K) and n (R,) pulls of each, the Woodbury identity needs only the Gram matrix X X' (R, R), never
    a K x K matrix.

    Formula: for every slot θ_i ~ N(μ_i, Σ_i), the Bayesian linear regression of rewards on v; the
    slot gets arm argmax_i ⟨v, θ_i⟩.

    Cost: slots × arms normal numbers, and an R × R system for each arm after R rounds.

    When to use: to see what the labels are worth beside the rewards alone; a strong rival of TAILOR
    with the search reward.
    """

    name = "linear-thompson"
    vectors: np.ndarray  # (R, K) distinct v, unscaled
    pulls: np.ndarray  # (M, R)
    sums: np.ndarray  # (M, R) of scaled rewards

    def reset(self) -> None:
        arms = self.contest.size
        self.vectors = np.zeros((0, self.contest.task.size))
        self.pulls = np.zeros((arms, 0))
        self.sums = np.zeros((arms, 0))

    def gaussian(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """weights v (K,) -> mean and variance of K <v, theta_i>, (M,) each."""
        size = self.contest.task.size
        x = size * check_weights(self.contest, weights)
        past_vectors = size * self.vectors
        gram = past_vectors @ past_vectors.T  # (R, R)
        cross = past_vectors @ x  # (R,)
        root = np.sqrt(self.pulls)
        # Sigma = I - X' D (I + D G D)^-1 D X with D = diag(root), for each arm
        identity = np.eye(len(past_vectors))
        scaled_gram = root[:, :, None] * gram * root[:, None, :]
        inner = identity + scaled_gram
        right_sides = root * cross
        solved = np.linalg.solve(inner, right_sides[:, :, None])
        left = solved[:, :, 0] * root  # (M, R)
        shrinkage = np.einsum("mr,rs,ms->m", left, gram, self.sums)
        mean = self.sums @ cross - shrinkage
        variance = x @ x - left @ cross
        # Rounding may take a variance near 0 below it.
        return mean, np.maximum(0.0, variance)

    def plan(self, slots: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        slots = check_slots(slots)
        mean, variance = self.gaussian(weights)
        spread = np.sqrt(variance)
        plan = np.empty(slots, np.int64)
        for start in range(0, slots, BLOCK):
            stop = min(start + BLOCK, slots)
            noise = rng.standard_normal((stop - start, len(mean)))
            scores = mean + spread * noise
            plan[start:stop] = argmax_ties(scores, rng)
        return plan

    def learn(self, outcomes: Outcomes) -> None:
        arms, labels = check_outcomes(self.contest, outcomes)
        v = check_weights(self.contest, outcomes.weights)
        column = self._column_of(v)
        contest = self.contest
        rewards = contest.task.size * (labels @ v)
        pulls = np.bincount(arms, minlength=contest.size)
        sums = np.bincount(arms, weights=rewards, minlength=contest.size)
        self.pulls[:, column] += pulls
        self.sums[:, column] += sums

    def _column_of(self, v: np.ndarray) -> int:
        """The column of `pulls` and `sums` for this vector (K,); a new one where it is new."""
        is_equal = (self.vectors == v).all(axis=1)
        equal_rows = np.flatnonzero(is_equal)
        if equal_rows.size:
            return int(equal_rows[0])
        one_column_more = ((0, 0), (0, 1))
        self.vectors = np.vstack([self.vectors, v])
        self.pulls = np.pad(self.pulls, one_column_more)
        self.sums = np.pad(self.sums, one_column_more)
        return len(self.vectors) - 1

    def state(self) -> dict[str, np.ndarray]:
        return {
            "vectors": self.vectors.copy(),
            "pulls": self.pulls.copy(),
            "sums": self.sums.copy(),
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        rows = len(state["vectors"]) if "vectors" in state else 0
        arms = self.contest.size
        vectors = restored(state, "vectors", (rows, self.contest.task.size))
        pulls = restored(state, "pulls", (arms, rows))
        sums = restored(state, "sums", (arms, rows))
        self.vectors = vectors.astype(np.float64)
        self.pulls = pulls.astype(np.float64)
        self.sums = sums.astype(np.float64)
