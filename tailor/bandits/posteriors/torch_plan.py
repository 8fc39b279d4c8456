"""TAILOR's plan on a torch device: the same draws in distribution as gamma.py, in large parallel
blocks.

A GPU samples a block of (draws, arms, classes) gamma numbers at once; blocks are cut so that memory
stays under `memory` numbers, in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

#: gamma numbers held at once
MEMORY = 1 << 26


def torch_plan(
    a: np.ndarray,
    b: np.ndarray | None,
    v: np.ndarray,
    draws: int,
    rng: np.random.Generator,
    *,
    device: str,
    memory: int = MEMORY,
) -> np.ndarray:
    """a, b (M, K), v (K,) -> (draws,) int64: the arm with the largest <v, theta> in each draw.

    theta is Beta(a, b) element by element, or Dirichlet(a) where b is None.
    """
    generator = _generator(rng, device)
    if b is None:
        sample = _dirichlet
        shapes = [_tensor(a, device)]
    else:
        sample = _beta
        # Classes of weight 0 change nothing, so they are not sampled.
        has_weight = v != 0
        v = v[has_weight]
        a = a[:, has_weight]
        b = b[:, has_weight]
        shapes = [
            _tensor(a, device),
            _tensor(b, device),
        ]
    weights = _tensor(v, device)
    numbers_per_draw = len(shapes) * a.size
    # Without any class of weight nothing is drawn; and a draw is never cut, however large.
    numbers_per_draw = max(1, numbers_per_draw)
    step = max(1, memory // numbers_per_draw)
    best = np.empty(draws, np.int64)
    for start in range(0, draws, step):
        stop = min(start + step, draws)
        scores = sample(
            shapes,
            weights,
            stop - start,
            generator,
        )
        winners = _argmax_ties(scores, generator)
        best[start:stop] = winners.cpu().numpy()
    return best


def _generator(rng: np.random.Generator, device: str) -> torch.Generator:
    """The device's own, seeded by one draw from NumPy's."""
    import torch

    # So that one seed settles the plan, wherever it is drawn.
    seed = int(rng.integers(2**63))
    generator = torch.Generator(device=device)
    generator.manual_seed(seed)
    return generator


def _tensor(array: np.ndarray, device: str) -> torch.Tensor:
    import torch

    return torch.as_tensor(array, dtype=torch.float32, device=device)


def _argmax_ties(scores: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """scores (n, M) -> (n,): the largest of each row; a tie goes to each with the same chance."""
    import torch

    largest = scores.max(dim=1, keepdim=True).values
    is_largest = scores == largest
    luck = torch.rand(scores.shape, generator=generator, device=scores.device)
    # Above 0, so that no arm below the largest can win.
    luck_of_tied = is_largest * (luck + 1)
    return luck_of_tied.argmax(dim=1)


def _gammas(shape: torch.Tensor, n: int, generator: torch.Generator) -> torch.Tensor:
    """shape (M, K) -> (n, M, K); a shape of 0 gives 0, and so does what float32 cannot tell
    from 0.
    """
    import torch

    positive = shape > 0
    # The sampler takes no shape of 0: 1 stands in for it, and what it gives is thrown away.
    ones = torch.ones_like(shape)
    safe = torch.where(positive, shape, ones)
    repeated = safe.expand(n, *shape.shape)
    repeated = repeated.contiguous()
    drawn = torch._standard_gamma(repeated, generator=generator)
    tiny = torch.finfo(torch.float32).tiny
    is_number = positive & (drawn > tiny)
    zero = torch.zeros((), device=shape.device)
    return torch.where(is_number, drawn, zero)


def _beta(
    shapes: list[torch.Tensor],
    weights: torch.Tensor,
    n: int,
    generator: torch.Generator,
) -> Any:
    import torch

    shape_for, shape_against = shapes
    hit = _gammas(shape_for, n, generator)
    miss = _gammas(shape_against, n, generator)
    chance = _mean_of_beta(shape_for, shape_against)
    total = hit + miss
    # Where both numbers underflowed to 0, all mass sits at 0 and 1: a coin decides.
    luck = torch.rand(total.shape, generator=generator, device=total.device)
    coin = luck < chance
    share = hit / total.clamp(min=1e-38)
    has_mass = total > 0
    theta = torch.where(has_mass, share, coin.float())
    return theta @ weights


def _mean_of_beta(shape_for: torch.Tensor, shape_against: torch.Tensor) -> torch.Tensor:
    """(M, K); 1/2 where both shapes are 0."""
    import torch

    both_shapes = shape_for + shape_against
    # Clamped, so that nothing is divided by 0.
    divisor = both_shapes.clamp(min=1e-38)
    mean = shape_for / divisor
    has_shape = both_shapes > 0
    return torch.where(has_shape, mean, 0.5)


def _dirichlet(
    shapes: list[torch.Tensor],
    weights: torch.Tensor,
    n: int,
    generator: torch.Generator,
) -> Any:
    (shape,) = shapes
    drawn = _gammas(shape, n, generator)
    total = drawn.sum(dim=2)
    # As in gamma.py: equal weights must tie exactly.
    base = weights[0]
    weights_above_base = weights - base
    above_base = drawn @ weights_above_base
    divisor = total.clamp(min=1e-38)
    scores = base + above_base / divisor
    is_empty = total <= 0
    if bool(is_empty.any()):
        # All parts underflowed to 0: the mass sits on a single class.
        rows, arms = is_empty.nonzero(as_tuple=True)
        drawn_classes = _one_class(shape, arms, generator)
        scores[rows, arms] = weights[drawn_classes]
    return scores


def _one_class(shape: torch.Tensor, arms: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """shape (M, G), arms (n,) -> (n,): one class for each, drawn in proportion to the arm's shapes
    (evenly if all are 0).
    """
    import torch

    shape_totals = shape.sum(dim=1, keepdim=True)
    has_shape = shape_totals > 0
    ones = torch.ones_like(shape)
    shares = torch.where(has_shape, shape, ones)
    shares_of_arms = shares[arms]
    drawn = torch.multinomial(shares_of_arms, 1, generator=generator)
    return drawn[:, 0]
