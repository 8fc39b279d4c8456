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
    import torch

    seed = int(rng.integers(2**63))
    generator = torch.Generator(device=device).manual_seed(seed)
    parameters = [a]
    sample = _dirichlet
    if b is not None:
        # Classes of weight 0 change nothing, so they are not sampled.
        has_weight = v != 0
        parameters = [a[:, has_weight], b[:, has_weight]]
        v = v[has_weight]
        sample = _beta
    shapes = [
        torch.as_tensor(parameter, dtype=torch.float32, device=device) for parameter in parameters
    ]
    weights = torch.as_tensor(v, dtype=torch.float32, device=device)
    numbers_per_draw = sum(parameter.size for parameter in parameters)
    step = max(1, memory // max(1, numbers_per_draw))
    best = np.empty(draws, np.int64)
    for start in range(0, draws, step):
        stop = min(start + step, draws)
        scores = sample(shapes, weights, stop - start, generator)
        largest = scores.max(dim=1, keepdim=True).values
        is_largest = scores == largest
        # A random number on the tied arms only, so that each wins with the same chance.
        luck = torch.rand(scores.shape, generator=generator, device=device) + 1
        winners = (is_largest * luck).argmax(dim=1)
        best[start:stop] = winners.cpu().numpy()
    return best


def _gammas(shape: torch.Tensor, n: int, generator: torch.Generator) -> torch.Tensor:
    """shape (M, K) -> (n, M, K); a shape of 0 gives 0, and so does what float32 cannot tell
    from 0.
    """
    import torch

    positive = shape > 0
    # The sampler takes no shape of 0: 1 stands in for it, and what it gives is thrown away.
    safe = torch.where(positive, shape, torch.ones_like(shape))
    repeated = safe.expand(n, *shape.shape).contiguous()
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
    both_shapes = shape_for + shape_against
    mean = shape_for / both_shapes.clamp(min=1e-38)
    chance = torch.where(both_shapes > 0, mean, 0.5)
    total = hit + miss
    # Where both numbers underflowed to 0, all mass sits at 0 and 1: a coin decides.
    luck = torch.rand(total.shape, generator=generator, device=total.device)
    coin = luck < chance
    share = hit / total.clamp(min=1e-38)
    theta = torch.where(total > 0, share, coin.float())
    return theta @ weights


def _dirichlet(
    shapes: list[torch.Tensor],
    weights: torch.Tensor,
    n: int,
    generator: torch.Generator,
) -> Any:
    import torch

    (shape,) = shapes
    drawn = _gammas(shape, n, generator)
    total = drawn.sum(dim=2)
    # As in gamma.py: equal weights must tie exactly.
    base = weights[0]
    above_base = drawn @ (weights - base)
    scores = base + above_base / total.clamp(min=1e-38)
    is_empty = total <= 0
    if bool(is_empty.any()):
        # All parts underflowed to 0: the mass sits on a single class.
        rows, arms = is_empty.nonzero(as_tuple=True)
        shape_totals = shape.sum(dim=1, keepdim=True)
        shares = torch.where(shape_totals > 0, shape, torch.ones_like(shape))
        drawn_classes = torch.multinomial(shares[arms], 1, generator=generator)[:, 0]
        scores[rows, arms] = weights[drawn_classes]
    return scores
