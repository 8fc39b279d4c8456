"""Checks that every selector makes before it plans or learns."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailor.bandits.base import Contest, Fit, Outcomes
from tailor.errors import InputError


def check_slots(slots: int) -> int:
    # To Python True is an integer, but nobody means one slot by it.
    is_integer = isinstance(slots, (int, np.integer)) and not isinstance(slots, bool)
    if not is_integer or slots < 0:
        raise InputError(f"slots is {slots!r}: give a whole number of picks, 0 or more")
    return int(slots)


def check_weights(contest: Contest, weights: Any) -> np.ndarray:
    """weights (K,), finite -> float64."""
    v = np.asarray(weights, dtype=np.float64)
    task = contest.task
    if v.shape != (task.size,):
        raise InputError(f"weights have shape {v.shape}: give one a class, ({task.size},)")
    wrong_classes = np.flatnonzero(~np.isfinite(v))
    if wrong_classes.size:
        k = int(wrong_classes[0])
        raise InputError(f"weight of class {task.classes[k]!r} is {v[k]}: weights must be finite")
    return v


def check_arms(contest: Contest, arms: Any) -> np.ndarray:
    """arms (n,) of indices -> int64."""
    array = np.asarray(arms)
    # An empty list is an array of floats, and a round without answers is none the less valid.
    has_integers = array.size == 0 or np.issubdtype(array.dtype, np.integer)
    if array.ndim != 1 or not has_integers:
        raise InputError(
            f"arms must be a list of indices, got shape {array.shape} of {array.dtype}"
        )
    indices = array.astype(np.int64)
    is_wrong = (indices < 0) | (indices >= contest.size)
    if is_wrong.any():
        first_wrong = indices[is_wrong][0]
        last = contest.size - 1
        raise InputError(f"arm {first_wrong} does not exist: indices go from 0 to {last}")
    return indices


def check_vectors(contest: Contest, vectors: Any, rows: int) -> np.ndarray:
    """vectors (n, K) in [0, 1], one row a pick -> float64."""
    array = np.asarray(vectors, dtype=np.float64)
    task = contest.task
    if array.shape != (rows, task.size):
        raise InputError(
            f"what the picks showed has shape {array.shape}: give one row a pick and one column "
            f"a class, ({rows}, {task.size})"
        )
    # Asked for what is right, so that NaN is found too: it compares as false.
    is_right = (array >= 0) & (array <= 1)
    if not is_right.all():
        row, k = np.argwhere(~is_right)[0]
        value = array[row, k]
        raise InputError(
            f"value {value} in row {row}, class {task.classes[k]!r}: it must lie in [0, 1]"
        )
    return array


def check_outcomes(contest: Contest, outcomes: Outcomes) -> tuple[np.ndarray, np.ndarray]:
    """arms (n,) int64 and labels (n, K) float64 of a round."""
    check_weights(contest, outcomes.weights)
    arms = check_arms(contest, outcomes.arms)
    labels = check_vectors(contest, outcomes.labels, len(arms))
    return arms, labels


def check_fit(contest: Contest, outcomes: Outcomes, selector: str) -> Fit:
    """The round's Fit, with every number in its range."""
    fit = outcomes.fit
    if fit is None:
        raise InputError(f"{selector} learns from how the retrained model does: give Outcomes.fit")
    if fit.reward is not None:
        if not 0 <= fit.reward <= 1:
            raise InputError(f"the reward given is {fit.reward}: it must lie in [0, 1]")
        return fit
    if fit.pool < 1:
        raise InputError(
            f"fit.pool is {fit.pool}: it is the number of examples in the pool, 1 or more"
        )
    correct = np.asarray(fit.correct, dtype=np.float64)
    chances = np.asarray(fit.chances, dtype=np.float64)
    rates = np.asarray(fit.rates, dtype=np.float64)
    if correct.ndim != 1 or correct.shape != chances.shape:
        raise InputError(
            f"fit.correct {correct.shape} and fit.chances {chances.shape} must be of one length"
        )
    if rates.shape != (contest.task.size,):
        raise InputError(
            f"fit.rates has shape {rates.shape}: give one a class, ({contest.task.size},)"
        )
    _check_unit_interval(correct, "correct", zero_allowed=True)
    # A chance of 0 is not one: the selector divides by it.
    _check_unit_interval(chances, "chances", zero_allowed=False)
    _check_unit_interval(rates, "rates", zero_allowed=True)
    return fit


def _check_unit_interval(values: np.ndarray, name: str, *, zero_allowed: bool) -> None:
    is_right = (values >= 0) & (values <= 1 + 1e-9)
    if not zero_allowed:
        is_right &= values != 0
    if not is_right.all():
        first_wrong = values[~is_right][0]
        bracket = "[" if zero_allowed else "("
        raise InputError(f"fit.{name} holds {first_wrong}: it must lie in {bracket}0, 1]")


def restored(state: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """One array of a saved state, of the right shape, as a copy."""
    if name not in state:
        raise InputError(
            f"saved state has no {name!r}, only {sorted(state)}: it belongs to another selector"
        )
    array = np.array(state[name])
    if array.shape != shape:
        raise InputError(
            f"saved {name!r} has shape {array.shape}, not {shape}: it is of another contest"
        )
    return array


def argmax_ties(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """scores (n, M) -> (n,) int64: the largest of each row; a tie goes to each with the same
    chance.
    """
    largest = scores.max(axis=1, keepdims=True)
    is_largest = scores == largest
    best: np.ndarray = is_largest.argmax(axis=1)
    largest_counts = is_largest.sum(axis=1)
    tied_rows = np.flatnonzero(largest_counts > 1)
    # Rows without a tie draw no random numbers.
    if tied_rows.size:
        arms = scores.shape[1]
        lots = rng.random((tied_rows.size, arms))
        lots_of_tied = np.where(is_largest[tied_rows], lots, -1.0)
        best[tied_rows] = lots_of_tied.argmax(axis=1)
    return best
