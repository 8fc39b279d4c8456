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

    generator = torch.Generator(device=device).manual_seed(int(rng.integers(2**63)))
    if b is not None:  # classes of weight 0 change nothing: do not sample them
        a = a[:, v != 0]
        b = b[:, v != 0]
        v = v[v != 0]
    parameters = [a] if b is None else [a, b]
    shapes = [torch.as_tensor(p, dtype=torch.float32, device=device) for p in parameters]
    weights = torch.as_tensor(v, dtype=torch.float32, device=device)
    arms, classes = a.shape
    step = max(1, memory // max(1, arms * classes * len(shapes)))
    best = np.empty(draws, np.int64)
    for start in range(0, draws, step):
        n = min(step, draws - start)
        sample = _dirichlet if b is None else _beta
        score = sample(shapes, weights, n, generator)
        # a random number on the tied arms only, so that each wins with the same chance
        tied = score == score.max(dim=1, keepdim=True).values
        luck = torch.rand(score.shape, generator=generator, device=device) + 1
        best[start : start + n] = (tied * luck).argmax(dim=1).cpu().numpy()
    return best


def _gammas(shape: torch.Tensor, n: int, generator: torch.Generator) -> torch.Tensor:
    """shape (M, K) -> (n, M, K); a shape of 0 gives 0, and so does what float32 cannot tell
    from 0.
    """
    import torch

    positive = shape > 0
    safe = torch.where(positive, shape, torch.ones_like(shape))
    drawn = torch._standard_gamma(safe.expand(n, *shape.shape).contiguous(), generator=generator)
    tiny = torch.finfo(torch.float32).tiny
    return torch.where(positive & (drawn > tiny), drawn, torch.zeros((), device=shape.device))


def _beta(
    shapes: list[torch.Tensor], weights: torch.Tensor, n: int, generator: torch.Generator
) -> Any:
    import torch

    hit = _gammas(shapes[0], n, generator)
    miss = _gammas(shapes[1], n, generator)
    both = shapes[0] + shapes[1]
    chance = torch.where(both > 0, shapes[0] / both.clamp(min=1e-38), 0.5)
    total = hit + miss
    coin = torch.rand(total.shape, generator=generator, device=total.device) < chance
    theta = torch.where(total > 0, hit / total.clamp(min=1e-38), coin.float())
    return theta @ weights


def _dirichlet(
    shapes: list[torch.Tensor], weights: torch.Tensor, n: int, generator: torch.Generator
) -> Any:
    import torch

    (shape,) = shapes
    drawn = _gammas(shape, n, generator)
    total = drawn.sum(dim=2)
    # as in gamma.py: equal weights must tie exactly
    score = weights[0] + (drawn @ (weights - weights[0])) / total.clamp(min=1e-38)
    empty = total <= 0
    if bool(empty.any()):
        row, arm = empty.nonzero(as_tuple=True)
        share = torch.where(shape.sum(dim=1, keepdim=True) > 0, shape, torch.ones_like(shape))
        drawn_class = torch.multinomial(share[arm], 1, generator=generator)[:, 0]
        score[row, arm] = weights[drawn_class]
    return score
