"""Random streams for compiled loops: a counter hashed to 64 bits, and ziggurat normals and
exponentials.

A stream is one 64-bit number that travels through the calls, so a loop owns its stream and no lock,
no global state and no thread enters the result. Splitmix64 (Steele, Lea and Flood 2014) hashes the
counter; the ziggurat (Marsaglia and Tsang 2000, 256 layers) turns one hash into a variate in 99 of
100 cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import erfc

from tailor.common.compiled import njit

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
# Shifts: a NumPy number of 64 bits and a Python one would give a float in compiled code.
_S8 = np.uint64(8)
_S11 = np.uint64(11)
_S12 = np.uint64(12)
_S27 = np.uint64(27)
_S30 = np.uint64(30)
_S31 = np.uint64(31)
_BYTE = np.uint64(255)
_ONE = np.uint64(1)
_UNIT53 = 2.0**-53
_UNIT52 = 2.0**-52

#: where the tail of each density starts, such that 256 layers of equal area fit
_NORMAL_TAIL = 3.6541528853610088
_EXPONENTIAL_TAIL = 7.69711747013105


def _normal_density(x: float) -> float:
    exponent = -0.5 * x * x
    return math.exp(exponent)


def _inverse_normal_density(y: float) -> float:
    log_density = math.log(y)
    return math.sqrt(-2 * log_density)


def _normal_layer_area() -> float:
    """That of the lowest layer, and so of each: a rectangle up to the tail, and the tail itself."""
    scaled_tail = _NORMAL_TAIL / math.sqrt(2)
    beyond_tail = float(erfc(scaled_tail))
    half_area = math.sqrt(math.pi / 2)
    tail_area = half_area * beyond_tail
    density_at_tail = _normal_density(_NORMAL_TAIL)
    return _NORMAL_TAIL * density_at_tail + tail_area


def _exponential_density(x: float) -> float:
    return math.exp(-x)


def _inverse_exponential_density(y: float) -> float:
    log_density = math.log(y)
    return -log_density


def _exponential_layer_area() -> float:
    """As _normal_layer_area(). Beyond any point lies as much as the density there is high."""
    density_at_tail = _exponential_density(_EXPONENTIAL_TAIL)
    width = _EXPONENTIAL_TAIL + 1
    return width * density_at_tail


def _layers(
    density: Callable[[float], float],
    inverse: Callable[[float], float],
    tail: float,
    area: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Right edges x (257,) of the layers, widest first, and the density there (257,).

    inverse  of the density
    tail     where the tail starts
    area     of each layer
    """
    edges = np.zeros(257)
    # As wide as a rectangle of the tail's height and of the lowest layer's area would be.
    edges[0] = area / density(tail)
    edges[1] = tail
    # Every layer has the same area, so its width tells how much higher the next one begins.
    for i in range(1, 255):
        edge = edges[i]
        height = area / edge
        next_density = density(edge) + height
        edges[i + 1] = inverse(next_density)
    # The last edge is 0, and an array's own exp() may round otherwise than math.exp().
    densities = np.empty(257)
    for i, edge in enumerate(edges):
        densities[i] = density(edge)
    return edges, densities


NORMAL_X, NORMAL_F = _layers(
    _normal_density,
    _inverse_normal_density,
    _NORMAL_TAIL,
    _normal_layer_area(),
)
_EXP_X, _EXP_F = _layers(
    _exponential_density,
    _inverse_exponential_density,
    _EXPONENTIAL_TAIL,
    _exponential_layer_area(),
)


@njit(cache=True, nogil=True)
def mix(counter: Any) -> Any:
    """A 64-bit hash of the counter."""
    z = counter
    z ^= z >> _S30
    z *= _MIX1
    z ^= z >> _S27
    z *= _MIX2
    z ^= z >> _S31
    return z


@njit(cache=True, nogil=True)
def stream(seed: int, first: int, second: int) -> Any:
    """The start of a stream of its own for (seed, first, second), hashed so that starts lie far
    apart.
    """
    seed_bits = np.uint64(seed)
    first_bits = np.uint64(first)
    second_bits = np.uint64(second) * _MIX1
    seed_key = mix(seed_bits + _STEP)
    first_key = mix(first_bits + _STEP)
    second_key = mix(second_bits + _STEP)
    key = mix(seed_key ^ first_key)
    return mix(key ^ second_key)


@njit(cache=True, nogil=True)
def uniform(state: Any) -> tuple[float, Any]:
    """A number in [0, 1) and the stream after it."""
    state = state + _STEP
    bits = mix(state)
    # The upper 53 bits: as many as a float64 holds exactly.
    whole = np.float64(bits >> _S11)
    return whole * _UNIT53, state


@njit(cache=True, nogil=True, inline="always")
def _height_in(densities: np.ndarray, layer: Any, u: float) -> float:
    """A height in a layer, u in [0, 1) of the way up."""
    low = densities[layer]
    high = densities[layer + 1]
    span = high - low
    height: float = low + u * span
    return height


@njit(cache=True, nogil=True)
def _normal_tail(state: Any) -> tuple[float, Any]:
    """|x| beyond the tail's start (Marsaglia 1964): an exponential, accepted by a second one."""
    while True:
        u, state = uniform(state)
        w, state = uniform(state)
        # 1 - u lies in (0, 1], where the logarithm is finite.
        log_u = math.log(1.0 - u)
        log_w = math.log(1.0 - w)
        x = -log_u / _NORMAL_TAIL
        limit = -2.0 * log_w
        if limit > x * x:
            return _NORMAL_TAIL + x, state


@njit(cache=True, nogil=True)
def _normal_edge(layer: Any, size: float, state: Any) -> tuple[float, Any]:
    """The rare part of the ziggurat: the tail or the rim of a layer. Gives |x|, or -1 to draw
    again.
    """
    if layer == 0:
        return _normal_tail(state)
    u, state = uniform(state)
    height = _height_in(NORMAL_F, layer, u)
    exponent = -0.5 * size * size
    if height < math.exp(exponent):
        return size, state
    return -1.0, state


@njit(cache=True, nogil=True)
def normal(state: Any) -> tuple[float, Any]:
    """A standard normal number and the stream after it."""
    while True:
        state = state + _STEP
        bits = mix(state)
        # The lowest 8 bits choose the layer, the upper 52 how far into it.
        layer = np.int64(bits & _BYTE)
        whole = np.float64(bits >> _S12)
        fraction = whole * _UNIT52
        size = fraction * NORMAL_X[layer]
        if size >= NORMAL_X[layer + 1]:
            size, state = _normal_edge(layer, size, state)
            if size < 0:
                continue
        # The bit above those of the layer is the sign.
        is_positive = (bits >> _S8) & _ONE
        if is_positive:
            return size, state
        return -size, state


@njit(cache=True, nogil=True)
def exponential(state: Any) -> tuple[float, Any]:
    """An exponential number of mean 1 and the stream after it."""
    shift = 0.0
    while True:
        state = state + _STEP
        bits = mix(state)
        layer = np.int64(bits & _BYTE)
        whole = np.float64(bits >> _S12)
        fraction = whole * _UNIT52
        x = fraction * _EXP_X[layer]
        if x < _EXP_X[layer + 1]:
            return shift + x, state
        if layer == 0:
            shift += _EXPONENTIAL_TAIL  # the tail of an exponential is an exponential again
            continue
        u, state = uniform(state)
        height = _height_in(_EXP_F, layer, u)
        if height < math.exp(-x):
            return shift + x, state
