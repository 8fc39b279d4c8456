"""Linear Thompson sampling: what is left of TAILOR when only the rewards are seen, not the
labels.
"""

from __future__ import annotations

import numpy as np

from tailor.bandits.base import Outcomes, SavedState, Selector
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
        classes = self.contest.task.size
        self.vectors = np.zeros((0, classes))
        self.pulls = np.zeros((arms, 0))
        self.sums = np.zeros((arms, 0))

    def gaussian(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """weights v (K,) -> mean and variance of K <v, theta_i>, (M,) each."""
        size = self.contest.task.size
        v = check_weights(self.contest, weights)
        x = size * v
        past_vectors = size * self.vectors
        gram = past_vectors @ past_vectors.T  # (R, R)
        cross = past_vectors @ x  # (R,)
        left = self._correction_factors(gram, cross)
        # What the prior at 0 takes off the rewards that were seen.
        shrinkage = np.einsum(
            "mr,rs,ms->m",
            left,
            gram,
            self.sums,
        )
        unshrunk = self.sums @ cross
        mean = unshrunk - shrinkage
        prior_variance = x @ x
        learned = left @ cross
        variance = prior_variance - learned
        # Rounding may take a variance near 0 below it.
        variance = np.maximum(0.0, variance)
        return mean, variance

    def _correction_factors(self, gram: np.ndarray, cross: np.ndarray) -> np.ndarray:
        """gram X X' (R, R), cross X x (R,) -> (M, R): x' X' D (I + D G D)^-1 D of each arm.

        By the Woodbury identity an arm's covariance is I - X' D (I + D G D)^-1 D X, with D the
        diagonal of the roots of its pulls. D stands on both sides, so that the system to solve
        stays symmetric and none of its eigenvalues falls below 1.
        """
        rounds = len(gram)
        root = np.sqrt(self.pulls)
        by_row = root[:, :, None]
        by_column = root[:, None, :]
        scaled_gram = by_row * gram * by_column
        identity = np.eye(rounds)
        system = identity + scaled_gram  # (M, R, R)
        right_sides = root * cross
        # solve() takes a stack of right sides only as columns.
        columns = right_sides[:, :, None]
        solved = np.linalg.solve(system, columns)
        return solved[:, :, 0] * root

    def plan(
        self,
        slots: int,
        weights: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        slots = check_slots(slots)
        mean, variance = self.gaussian(weights)
        spread = np.sqrt(variance)
        arms = len(mean)
        plan = np.empty(slots, np.int64)
        for start in range(0, slots, BLOCK):
            stop = min(start + BLOCK, slots)
            block_slots = stop - start
            noise = rng.standard_normal((block_slots, arms))
            # Every slot draws afresh, so that a batch spreads over the arms.
            scores = mean + spread * noise
            plan[start:stop] = argmax_ties(scores, rng)
        return plan

    def learn(self, outcomes: Outcomes) -> None:
        contest = self.contest
        arms, labels = check_outcomes(contest, outcomes)
        v = check_weights(contest, outcomes.weights)
        column = self._column_of(v)
        unscaled_rewards = labels @ v
        rewards = contest.task.size * unscaled_rewards
        arm_count = contest.size
        pulls = np.bincount(arms, minlength=arm_count)
        sums = np.bincount(arms, weights=rewards, minlength=arm_count)
        # A vector that comes again shares its column with the earlier rounds.
        self.pulls[:, column] += pulls
        self.sums[:, column] += sums

    def _column_of(self, v: np.ndarray) -> int:
        """The column of `pulls` and `sums` for this vector (K,); a new one where it is new."""
        is_equal = (self.vectors == v).all(axis=1)
        equal_rows = np.flatnonzero(is_equal)
        if equal_rows.size:
            return int(equal_rows[0])
        column = len(self.vectors)
        self.vectors = np.vstack([self.vectors, v])
        # No arm has been pulled for a new vector: its column holds zeros.
        zero_column_after = ((0, 0), (0, 1))
        self.pulls = np.pad(self.pulls, zero_column_after)
        self.sums = np.pad(self.sums, zero_column_after)
        return column

    def state(self) -> dict[str, np.ndarray]:
        return {
            "vectors": self.vectors.copy(),
            "pulls": self.pulls.copy(),
            "sums": self.sums.copy(),
        }

    def restore(self, state: SavedState) -> None:
        # Without vectors the first call of restored() says what is missing.
        rows = 0
        if "vectors" in state:
            rows = len(state["vectors"])
        shapes = {
            "vectors": (rows, self.contest.task.size),
            "pulls": (self.contest.size, rows),
            "sums": (self.contest.size, rows),
        }
        arrays = {}
        for name, shape in shapes.items():
            array = restored(state, name, shape)
            arrays[name] = array.astype(np.float64)
        # Only now: a state that lacks one of them changes nothing.
        self.vectors = arrays["vectors"]
        self.pulls = arrays["pulls"]
        self.sums = arrays["sums"]
