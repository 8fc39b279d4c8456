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
def _gamma(d: float, c: float, squeeze: float, boost: float, state: Any) -> tuple[float, Any]:
    """One gamma number; the four constants are those of _constants."""
    while True:
        x, state = normal(state)
        t = 1.0 + c * x
        if t <= 0.0:
            continue
        bound = squeeze if t > 0.5 else 0.0331
        t = t * t * t
        u, state = uniform(state)
        square = x * x
        if u < 1.0 - bound * square * square or (
            u > 0.0 and math.log(u) < 0.5 * square + d * (1.0 - t + math.log(t))
        ):
            break
    if boost > 0.0:
        e, state = exponential(state)
        return d * t * math.exp(-e * boost), state
    return d * t, state


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
    return d, 1.0 / math.sqrt(9.0 * d), min(0.0331, 1.0 / (54.0 * d)), boost


@njit(cache=True, nogil=True)
def gamma_numbers(shape: float, draws: int, seed: int) -> np.ndarray:
    """(draws,) float64 gamma numbers of one shape; a shape of 0 gives zeros."""
    out = np.zeros(draws)
    if shape > 0.0:
        d, c, squeeze, boost = _constants(shape)
        state = stream(seed, 0, 0)
        for j in range(draws):
            out[j], state = _gamma(d, c, squeeze, boost, state)
    return out


@njit(cache=True, nogil=True)
def _beta_row(a: np.ndarray, b: np.ndarray, v: np.ndarray, out: np.ndarray, state: Any) -> None:
    """a, b, v (K,): one arm's <v, theta>, theta ~ Beta(a, b), into out (draws,)."""
    out[:] = 0.0
    for k in range(v.size):
        weight = v[k]
        if weight == 0.0:
            continue
        if a[k] <= 0.0 and b[k] > 0.0:
            continue
        if b[k] <= 0.0 and a[k] > 0.0:
            for j in range(out.size):
                out[j] += weight
            continue
        chance = 0.5
        if a[k] > 0.0:
            chance = a[k] / (a[k] + b[k])
            d1, c1, squeeze1, boost1 = _constants(a[k])
            d2, c2, squeeze2, boost2 = _constants(b[k])
        for j in range(out.size):
            hit, miss = 0.0, 0.0
            if a[k] > 0.0:
                hit, state = _gamma(d1, c1, squeeze1, boost1, state)
                miss, state = _gamma(d2, c2, squeeze2, boost2, state)
            total = hit + miss
            if total > 0.0:
                out[j] += weight * (hit / total)
            else:  # both shapes so small that all mass sits at 0 and 1
                u, state = uniform(state)
                if u < chance:
                    out[j] += weight


@njit(cache=True, nogil=True)
def _one_class(a: np.ndarray, state: Any) -> tuple[int, Any]:
    """a (G,): one class, drawn in proportion to a (evenly if all are 0)."""
    u, state = uniform(state)
    total = a.sum()
    if total <= 0.0:
        return min(a.size - 1, int(u * a.size)), state
    left = u * total
    last = 0
    for g in range(a.size):
        if a[g] > 0.0:
            last = g
            left -= a[g]
            if left < 0.0:
                break
    return last, state


@njit(cache=True, nogil=True)
def _dirichlet_row(
    a: np.ndarray, v: np.ndarray, out: np.ndarray, total: np.ndarray, state: Any
) -> None:
    """a, v (G,): one arm's <v, theta>, theta ~ Dirichlet(a), into out (draws,); total (draws,) is
    scratch.
    """
    # <v, theta> = v_0 + <v - v_0, theta>: arms with equal weights everywhere then tie exactly
    base = v[0]
    out[:] = 0.0
    total[:] = 0.0
    for g in range(v.size):
        if a[g] <= 0.0:
            continue
        d, c, squeeze, boost = _constants(a[g])
        weight = v[g] - base
        for j in range(out.size):
            x, state = _gamma(d, c, squeeze, boost, state)
            total[j] += x
            out[j] += weight * x
    for j in range(out.size):
        if total[j] > 0.0:
            out[j] = base + out[j] / total[j]
        else:
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
            if scores[i, j] > top:
                top = scores[i, j]
                ties = 1
                arm = i
            elif scores[i, j] == top:
                ties += 1
                u, state = uniform(state)
                if u * ties < 1.0:
                    arm = i
        best[j] = arm


@njit(cache=True, nogil=True, parallel=True)
def beta_scores(a: np.ndarray, b: np.ndarray, v: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """a, b (M, K), v (K,) float64 -> (draws, M) float64 of <v, theta>, theta_k ~ Beta(a_k, b_k)."""
    arms = a.shape[0]
    out = np.empty((draws, arms))
    for chunk in prange((draws + CHUNK - 1) // CHUNK):
        n = min(CHUNK, draws - chunk * CHUNK)
        row = np.empty(n)
        for i in range(arms):
            _beta_row(a[i], b[i], v, row, stream(seed, chunk, i))
            out[chunk * CHUNK : chunk * CHUNK + n, i] = row
    return out


@njit(cache=True, nogil=True, parallel=True)
def dirichlet_scores(a: np.ndarray, v: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """a (M, G), v (G,) float64 -> (draws, M) float64 of <v, theta>, theta ~ Dirichlet(a)."""
    arms = a.shape[0]
    out = np.empty((draws, arms))
    for chunk in prange((draws + CHUNK - 1) // CHUNK):
        n = min(CHUNK, draws - chunk * CHUNK)
        row = np.empty(n)
        scratch = np.empty(n)
        for i in range(arms):
            _dirichlet_row(a[i], v, row, scratch, stream(seed, chunk, i))
            out[chunk * CHUNK : chunk * CHUNK + n, i] = row
    return out


@njit(cache=True, nogil=True, parallel=True)
def beta_plan(a: np.ndarray, b: np.ndarray, v: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """a, b (M, K), v (K,) float64 -> (draws,) int64: the arm with the largest <v, theta> in each
    draw.
    """
    arms = a.shape[0]
    best = np.empty(draws, np.int64)
    for chunk in prange((draws + CHUNK - 1) // CHUNK):
        n = min(CHUNK, draws - chunk * CHUNK)
        scores = np.empty((arms, n))
        for i in range(arms):
            _beta_row(a[i], b[i], v, scores[i], stream(seed, chunk, i))
        _argmax_columns(scores, best[chunk * CHUNK : chunk * CHUNK + n], stream(seed, chunk, arms))
    return best


@njit(cache=True, nogil=True, parallel=True)
def dirichlet_plan(a: np.ndarray, v: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """a (M, G), v (G,) float64 -> (draws,) int64: the arm with the largest <v, theta> in each
    draw.
    """
    arms = a.shape[0]
    best = np.empty(draws, np.int64)
    for chunk in prange((draws + CHUNK - 1) // CHUNK):
        n = min(CHUNK, draws - chunk * CHUNK)
        scores = np.empty((arms, n))
        scratch = np.empty(n)
        for i in range(arms):
            _dirichlet_row(a[i], v, scores[i], scratch, stream(seed, chunk, i))
        _argmax_columns(scores, best[chunk * CHUNK : chunk * CHUNK + n], stream(seed, chunk, arms))
    return best
