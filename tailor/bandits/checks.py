"""Checks that every selector makes before it plans or learns."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailor.bandits.base import Contest, Fit, Outcomes
from tailor.errors import InputError


def as_floats(values: Any) -> np.ndarray:
    """A list or an array as float64; no copy where it is that already."""
    return np.asarray(values, dtype=np.float64)


def check_slots(slots: int) -> int:
    is_integer = isinstance(slots, (int, np.integer))
    # To Python True is an integer, but nobody means one slot by it.
    if isinstance(slots, bool):
        is_integer = False
    if not is_integer or slots < 0:
        raise InputError(f"slots is {slots!r}: give a whole number of picks, 0 or more")
    return int(slots)


def check_weights(contest: Contest, weights: Any) -> np.ndarray:
    """weights (K,), finite -> float64."""
    v = as_floats(weights)
    task = contest.task
    size = task.size
    if v.shape != (size,):
        raise InputError(f"weights have shape {v.shape}: give one a class, ({size},)")
    is_finite = np.isfinite(v)
    if not is_finite.all():
        k = int(np.argmin(is_finite))
        name = task.classes[k]
        weight = v[k]
        raise InputError(f"weight of class {name!r} is {weight}: weights must be finite")
    return v


def check_arms(contest: Contest, arms: Any) -> np.ndarray:
    """arms (n,) of indices -> int64."""
    array = np.asarray(arms)
    # An empty list is an array of floats, and a round without answers is none the less valid.
    can_be_indices = array.size == 0
    if np.issubdtype(array.dtype, np.integer):
        can_be_indices = True
    if array.ndim != 1 or not can_be_indices:
        raise InputError(
            f"arms must be a list of indices, got shape {array.shape} of {array.dtype}"
        )
    indices = array.astype(np.int64)
    last = contest.size - 1
    is_below = indices < 0
    is_above = indices > last
    is_wrong = is_below | is_above
    if is_wrong.any():
        wrong_indices = indices[is_wrong]
        first_wrong = wrong_indices[0]
        raise InputError(f"arm {first_wrong} does not exist: indices go from 0 to {last}")
    return indices


def check_vectors(contest: Contest, vectors: Any, rows: int) -> np.ndarray:
    """vectors (n, K) in [0, 1], one row a pick -> float64."""
    array = as_floats(vectors)
    task = contest.task
    expected_shape = (rows, task.size)
    if array.shape != expected_shape:
        raise InputError(
            f"what the picks showed has shape {array.shape}: give one row a pick and one column "
            f"a class, {expected_shape}"
        )
    # Asked for what is right, so that NaN is found too: it compares as false.
    is_right = (array >= 0) & (array <= 1)
    if not is_right.all():
        wrong_cells = np.argwhere(~is_right)
        row, k = wrong_cells[0]
        value = array[row, k]
        name = task.classes[k]
        raise InputError(f"value {value} in row {row}, class {name!r}: it must lie in [0, 1]")
    return array


def check_outcomes(contest: Contest, outcomes: Outcomes) -> tuple[np.ndarray, np.ndarray]:
    """arms (n,) int64 and labels (n, K) float64 of a round."""
    check_weights(contest, outcomes.weights)
    arms = check_arms(contest, outcomes.arms)
    picks = len(arms)
    labels = check_vectors(contest, outcomes.labels, picks)
    return arms, labels


def check_fit(contest: Contest, outcomes: Outcomes, selector: str) -> Fit:
    """The round's Fit, with every number in its range."""
    fit = outcomes.fit
    if fit is None:
        raise InputError(f"{selector} learns from how the retrained model does: give Outcomes.fit")
    # With the user's own reward nothing else is read, so nothing else is checked.
    if fit.reward is not None:
        if not 0 <= fit.reward <= 1:
            raise InputError(f"the reward given is {fit.reward}: it must lie in [0, 1]")
        return fit
    if fit.pool < 1:
        raise InputError(
            f"fit.pool is {fit.pool}: it is the number of examples in the pool, 1 or more"
        )
    _check_fit_arrays(fit, contest.task.size)
    return fit


def _check_fit_arrays(fit: Fit, classes: int) -> None:
    """The shapes of correct, chances and rates, and every number's range."""
    correct = as_floats(fit.correct)
    chances = as_floats(fit.chances)
    rates = as_floats(fit.rates)
    if correct.ndim != 1 or correct.shape != chances.shape:
        raise InputError(
            f"fit.correct {correct.shape} and fit.chances {chances.shape} must be of one length"
        )
    if rates.shape != (classes,):
        raise InputError(f"fit.rates has shape {rates.shape}: give one a class, ({classes},)")
    _check_unit_interval(correct, "correct", zero_allowed=True)
    # A chance of 0 is not one: the selector divides by it.
    _check_unit_interval(chances, "chances", zero_allowed=False)
    _check_unit_interval(rates, "rates", zero_allowed=True)


def _check_unit_interval(values: np.ndarray, name: str, *, zero_allowed: bool) -> None:
    if zero_allowed:
        interval = "[0, 1]"
        is_right = values >= 0
    else:
        interval = "(0, 1]"
        is_right = values > 0
    # A share that was computed may round to a little over 1.
    is_right &= values <= 1 + 1e-9
    if not is_right.all():
        wrong_values = values[~is_right]
        first_wrong = wrong_values[0]
        raise InputError(f"fit.{name} holds {first_wrong}: it must lie in {interval}")


def restored(state: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """One array of a saved state, of the right shape, as a copy."""
    if name not in state:
        names = sorted(state)
        raise InputError(
            f"saved state has no {name!r}, only {names}: it belongs to another selector"
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
    if tied_rows.size == 0:
        return best
    is_tied = is_largest[tied_rows]
    lots = rng.random(is_tied.shape)
    # No lot is below 0, so an arm that is not tied never has the largest.
    lots_of_tied = np.where(is_tied, lots, -1.0)
    best[tied_rows] = lots_of_tied.argmax(axis=1)
    return best
