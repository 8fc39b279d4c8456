"""What nature fixes in the simulated bandit: the arms' mean labels, the weights, and the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RegretSetting:
    """One point of a sweep.

    weights  "random": v uniform in [-1/K, 1/K]^K; "diversity": from the counts so far
    rounds   T
    arms     M
    classes  K
    slots    B
    drift    chance that an arm's theta is drawn anew, each round
    """

    kind: str = "multi-class"
    weights: str = "random"
    rounds: int = 50
    arms: int = 10
    classes: int = 10
    slots: int = 10
    drift: float = 0.0


@dataclass(frozen=True)
class World:
    """What nature fixed beforehand, the same for every selector.

    theta  (T, M, K) the mean label of each arm in each round
    v      (T, K) the weights of each round
    """

    theta: np.ndarray
    v: np.ndarray


def draw_world(setting: RegretSetting, rng: np.random.Generator) -> World:
    """Every arm's mean label from the uniform prior, drawn anew where it drifts."""
    theta = _draw_theta(setting, rng)
    bound = 1 / setting.classes
    shape = (setting.rounds, setting.classes)
    # Drawn after all of theta, and where diversity replaces it too: worlds are the same for both.
    v = rng.uniform(-bound, bound, shape)
    return World(theta, v)


def _draw_theta(setting: RegretSetting, rng: np.random.Generator) -> np.ndarray:
    """(T, M, K) the mean label of each arm in each round."""
    current = _from_prior(setting, rng)
    theta = np.empty((setting.rounds, *current.shape))
    # The first round has nothing to drift from.
    theta[0] = current
    for t in range(1, setting.rounds):
        if setting.drift:
            changes = rng.random(setting.arms) < setting.drift
            # All arms are drawn anew whichever change, so that as many numbers are used up.
            redrawn = _from_prior(setting, rng)
            current = np.where(changes[:, None], redrawn, current)
        theta[t] = current
    return theta


def _from_prior(setting: RegretSetting, rng: np.random.Generator) -> np.ndarray:
    """(M, K) a mean label for each arm, uniform on the simplex or in the cube."""
    if setting.kind == "multi-class":
        flat = np.ones(setting.classes)
        return rng.dirichlet(flat, setting.arms)
    return rng.random((setting.arms, setting.classes))


def draw_labels(setting: RegretSetting, theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """theta (n, K), the mean label of each pick -> labels (n, K)."""
    if setting.kind == "multi-label":
        is_positive = rng.random(theta.shape) < theta
        return is_positive.astype(np.float64)
    classes = _draw_classes(theta, rng)
    one_hot = np.eye(setting.classes)
    return one_hot[classes]


def _draw_classes(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """theta (n, K), probabilities -> (n,) a class each."""
    cumulative = np.cumsum(theta, axis=1)
    drawn = rng.random((len(theta), 1))
    chosen = (cumulative < drawn).sum(axis=1)
    # Rounding may leave the last sum below 1, and a number drawn above it.
    last = theta.shape[1] - 1
    return np.minimum(chosen, last)
