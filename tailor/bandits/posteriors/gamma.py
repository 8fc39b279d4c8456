"""Many draws of <v, theta> for every arm, theta Beta or Dirichlet, and the arm that is largest in
each draw.

Gamma numbers by Marsaglia and Tsang (2000, "A simple method for generating gamma variables"); a
shape under 1 is boosted, gamma(a) = gamma(a + 1) * exp(-E / a) with E exponential. Draws are cut
into chunks of fixed size; every chunk and arm has a stream of its own, so a result depends on the
seed alone, never on the number of threads. Inside, an arm's class comes before the draws: what
depends on the shape is computed once a chunk.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tailor.bandits.posteriors.ziggurat import exponential, normal, stream, uniform
from tailor.common.compiled import njit, prange

#: draws that one task handles; a chunk holds CHUNK x M scores
CHUNK = 256


@njit(cache=True, nogil=True)
def _gamma(
    d: float,
    c: float,
    squeeze: float,
    boost: float,
    state: Any,
) -> tuple[float, Any]:
    """One gamma number; the four constants are those of _constants."""
    while True:
        x, state = normal(state)
        t = 1.0 + c * x
        if t <= 0.0:
            continue
        if t > 0.5:
            bound = squeeze
        else:
            bound = 0.0331
        t = t * t * t
        u, state = uniform(state)
        square = x * x
        # The squeeze accepts most draws without a logarithm.
        surely_below = 1.0 - bound * square * square
        if u < surely_below:
            break
        if u > 0.0:
            cube_term = 1.0 - t + math.log(t)
            log_limit = 0.5 * square + d * cube_term
            if math.log(u) < log_limit:
                break
    number = d * t
    if boost > 0.0:
        e, state = exponential(state)
        shrinking = math.exp(-e * boost)
        number = number * shrinking
    return number, state


@njit(cache=True, nogil=True)
def _constants(shape: float) -> tuple[float, float, float, float]:
    """What a shape fixes: d, c, the squeeze and the boost (0 for none).

    The exact test is log u < h, h = 3d (log(1 + y) - y + y^2/2 - y^3/3) with y = c x. The published
    squeeze, u < 1 - 0.0331 x^4, sends a tenth of the draws of a large shape to the logarithms. For
    y > -1/2 the series of h gives h > -1.5 d y^4 = -x^4 / (54 d), so 1 - x^4 / (54 d) is as safe,
    and tight where d is large.
    """
    boost = 0.0
    if shape < 1.0:
        boost = 1.0 / shape
        shape = shape + 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    tight = 1.0 / (54.0 * d)
    squeeze = min(0.0331, tight)
    return d, c, squeeze, boost


@njit(cache=True, nogil=True)
def gamma_numbers(shape: float, draws: int, seed: int) -> np.ndarray:
    """(draws,) float64 gamma numbers of one shape; a shape of 0 gives zeros."""
    out = np.zeros(draws)
    if shape > 0.0:
        d, c, squeeze, boost = _constants(shape)
        state = stream(seed, 0, 0)
        for j in range(draws):
            out[j], state = _gamma(
                d,
                c,
                squeeze,
                boost,
                state,
            )
    return out


@njit(cache=True, nogil=True)
def _beta_row(
    a: np.ndarray,
    b: np.ndarray,
    v: np.ndarray,
    out: np.ndarray,
    state: Any,
) -> None:
    """a, b, v (K,): one arm's <v, theta>, theta ~ Beta(a, b), into out (draws,)."""
    out[:] = 0.0
    for k in range(v.size):
        weight = v[k]
        if weight == 0.0:
            continue
        shape_for = a[k]
        shape_against = b[k]
        # With one shape at 0 theta is not random: it is 0, or 1.
        if shape_for <= 0.0 and shape_against > 0.0:
            continue
        if shape_against <= 0.0 and shape_for > 0.0:
            for j in range(out.size):
                out[j] += weight
            continue
        chance = 0.5
        if shape_for > 0.0:
            chance = shape_for / (shape_for + shape_against)
            d1, c1, squeeze1, boost1 = _constants(shape_for)
            d2, c2, squeeze2, boost2 = _constants(shape_against)
        for j in range(out.size):
            hit = 0.0
            miss = 0.0
            if shape_for > 0.0:
                hit, state = _gamma(
                    d1,
                    c1,
                    squeeze1,
                    boost1,
                    state,
                )
                miss, state = _gamma(
                    d2,
                    c2,
                    squeeze2,
                    boost2,
                    state,
                )
            total = hit + miss
            if total > 0.0:
                theta = hit / total
                out[j] += weight * theta
            else:
                # Both shapes are so small that all mass sits at 0 and 1.
                u, state = uniform(state)
                if u < chance:
                    out[j] += weight


@njit(cache=True, nogil=True)
def _one_class(a: np.ndarray, state: Any) -> tuple[int, Any]:
    """a (G,): one class, drawn in proportion to a (evenly if all are 0)."""
    u, state = uniform(state)
    total = a.sum()
    if total <= 0.0:
        last = a.size - 1
        position = int(u * a.size)
        return min(last, position), state
    left = u * total
    drawn = 0
    for g in range(a.size):
        part = a[g]
        if part > 0.0:
            drawn = g
            left -= part
            if left < 0.0:
                break
    return drawn, state


@njit(cache=True, nogil=True)
def _dirichlet_row(
    a: np.ndarray,
    v: np.ndarray,
    out: np.ndarray,
    total: np.ndarray,
    state: Any,
) -> None:
    """a, v (G,): one arm's <v, theta>, theta ~ Dirichlet(a), into out (draws,); total (draws,) is
    scratch.
    """
    # <v, theta> = v_0 + <v - v_0, theta>: arms with equal weights everywhere then tie exactly
    base = v[0]
    out[:] = 0.0
    total[:] = 0.0
    for g in range(v.size):
        shape = a[g]
        if shape <= 0.0:
            continue
        d, c, squeeze, boost = _constants(shape)
        weight = v[g] - base
        for j in range(out.size):
            x, state = _gamma(
                d,
                c,
                squeeze,
                boost,
                state,
            )
            total[j] += x
            out[j] += weight * x
    for j in range(out.size):
        drawn_total = total[j]
        if drawn_total > 0.0:
            above_base = out[j] / drawn_total
            out[j] = base + above_base
        else:
            # All parts underflowed to 0: the mass sits on a single class.
            g, state = _one_class(a, state)
            out[j] = v[g]


@njit(cache=True, nogil=True)
def _argmax_columns(scores: np.ndarray, best: np.ndarray, state: Any) -> None:
    """scores (M, n) -> best (n,): the largest of each column; a tie goes to each with the same
    chance.
    """
    for j in range(best.size):
        top = scores[0, j]
        ties = 1
        arm = 0
        for i in range(1, scores.shape[0]):
            score = scores[i, j]
            if score > top:
                top = score
                ties = 1
                arm = i
            elif score == top:
                ties += 1
                # The n-th of the tied replaces the earlier ones with chance 1/n.
                u, state = uniform(state)
                if u * ties < 1.0:
                    arm = i
        best[j] = arm


@njit(cache=True, nogil=True)
def _chunk_count(draws: int) -> int:
    """Chunks that hold all draws; the last may be shorter."""
    rounded_up = draws + CHUNK - 1
    return rounded_up // CHUNK


@njit(cache=True, nogil=True, parallel=True)
def beta_scores(
    a: np.ndarray,
    b: np.ndarray,
    v: np.ndarray,
    draws: int,
    seed: int,
) -> np.ndarray:
    """a, b (M, K), v (K,) float64 -> (draws, M) float64 of <v, theta>, theta_k ~ Beta(a_k, b_k)."""
    arms = a.shape[0]
    out = np.empty((draws, arms))
    for chunk in prange(_chunk_count(draws)):
        start = chunk * CHUNK
        stop = min(start + CHUNK, draws)
        chunk_draws = stop - start
        row = np.empty(chunk_draws)
        for i in range(arms):
            state = stream(seed, chunk, i)
            _beta_row(
                a[i],
                b[i],
                v,
                row,
                state,
            )
            out[start:stop, i] = row
    return out


@njit(cache=True, nogil=True, parallel=True)
def dirichlet_scores(
    a: np.ndarray,
    v: np.ndarray,
    draws: int,
    seed: int,
) -> np.ndarray:
    """a (M, G), v (G,) float64 -> (draws, M) float64 of <v, theta>, theta ~ Dirichlet(a)."""
    arms = a.shape[0]
    out = np.empty((draws, arms))
    for chunk in prange(_chunk_count(draws)):
        start = chunk * CHUNK
        stop = min(start + CHUNK, draws)
        chunk_draws = stop - start
        row = np.empty(chunk_draws)
        scratch = np.empty(chunk_draws)
        for i in range(arms):
            state = stream(seed, chunk, i)
            _dirichlet_row(
                a[i],
                v,
                row,
                scratch,
                state,
            )
            out[start:stop, i] = row
    return out


@njit(cache=True, nogil=True, parallel=True)
def beta_plan(
    a: np.ndarray,
    b: np.ndarray,
    v: np.ndarray,
    draws: int,
    seed: int,
) -> np.ndarray:
    """a, b (M, K), v (K,) float64 -> (draws,) int64: the arm with the largest <v, theta> in each
    draw.
    """
    arms = a.shape[0]
    best = np.empty(draws, np.int64)
    for chunk in prange(_chunk_count(draws)):
        start = chunk * CHUNK
        stop = min(start + CHUNK, draws)
        chunk_draws = stop - start
        # An arm's draws lie side by side in memory, for they are written one after the other.
        scores = np.empty((arms, chunk_draws))
        for i in range(arms):
            state = stream(seed, chunk, i)
            _beta_row(
                a[i],
                b[i],
                v,
                scores[i],
                state,
            )
        # Ties have a stream of their own, after those of the arms.
        tie_state = stream(seed, chunk, arms)
        _argmax_columns(scores, best[start:stop], tie_state)
    return best


@njit(cache=True, nogil=True, parallel=True)
def dirichlet_plan(
    a: np.ndarray,
    v: np.ndarray,
    draws: int,
    seed: int,
) -> np.ndarray:
    """a (M, G), v (G,) float64 -> (draws,) int64: the arm with the largest <v, theta> in each
    draw.
    """
    arms = a.shape[0]
    best = np.empty(draws, np.int64)
    for chunk in prange(_chunk_count(draws)):
        start = chunk * CHUNK
        stop = min(start + CHUNK, draws)
        chunk_draws = stop - start
        # An arm's draws lie side by side in memory, for they are written one after the other.
        scores = np.empty((arms, chunk_draws))
        scratch = np.empty(chunk_draws)
        for i in range(arms):
            state = stream(seed, chunk, i)
            _dirichlet_row(
                a[i],
                v,
                scores[i],
                scratch,
                state,
            )
        # Ties have a stream of their own, after those of the arms.
        tie_state = stream(seed, chunk, arms)
        _argmax_columns(scores, best[start:stop], tie_state)
    return best
