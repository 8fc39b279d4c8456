"""Where a network's classes meet: its last layer, and how far examples lie from a boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailor.common.checks import check_whole
from tailor.common.linear_head import LinearHead
from tailor.models.source_model import SourceModel

if TYPE_CHECKING:
    import torch

    from tailor.models.networks import Network

#: of the other classes, the likeliest ones whose boundaries are looked at
RIVALS = 10
#: where a gradient is shorter, there is nowhere to go
SMALLEST_SQUARE = 1e-20
#: examples whose gradients are computed at once
BATCH = 64


class NetworkModel(SourceModel):
    """A model that is a torch network, seen from outside: its last layer and its boundaries."""

    can_measure_boundaries = True
    device: str

    def linear_head(self) -> LinearHead | None:
        layer = self._trained().output_layer()
        if layer is None:
            return None
        weights = layer.weight.detach().cpu().double()
        bias = None
        if layer.bias is not None:
            offsets = layer.bias.detach().cpu().double()
            bias = offsets.numpy()
        return LinearHead(weights.numpy(), bias, self.head_ridge())

    def head_ridge(self) -> float | None:
        """What half the sum of squared weights of the last layer counted beside the summed loss;
        None where the whole network was trained.
        """
        return None

    def boundary_distances(self, positions: np.ndarray, steps: int) -> np.ndarray:
        import torch

        net: Network = self._trained()
        positions = self._check_positions(positions)
        steps = check_whole(steps, "steps")
        net.eval()
        self.source.resident()
        distances = np.full(len(positions), np.inf)
        readable = np.flatnonzero(self.source.readable[positions])
        for start in range(0, len(readable), BATCH):
            stop = start + BATCH
            rows = readable[start:stop]
            batch = torch.from_numpy(positions[rows]).to(self.device)
            inputs = self.source.take(batch).float()
            of_batch = deepfool_distances(net, inputs, steps)
            distances[rows] = of_batch.cpu().numpy()
        return distances


def deepfool_distances(net: Network, inputs: torch.Tensor, steps: int) -> torch.Tensor:
    """(n,) how far DeepFool moves each of inputs (n, ...) until its predicted class changes, in so
    many steps at most (Moosavi-Dezfooli, Fawzi and Frossard 2016).

    Each step goes straight to the boundary with the one of the RIVALS likeliest other classes that
    is nearest if the network were linear.
    """

    moved = inputs.detach().clone()
    predicted: torch.Tensor | None = None
    for _ in range(steps):
        moved.requires_grad_()
        logits, _ = net(moved)
        if predicted is None:
            predicted = logits.argmax(1)
        is_same = logits.argmax(1) == predicted
        if not is_same.any():
            break
        step = _step_to_boundary(logits, moved, predicted)
        step[~is_same] = 0
        moved = (moved + step).detach()
    way = (moved - inputs).detach()
    return way.flatten(1).norm(dim=1)


def _step_to_boundary(
    logits: torch.Tensor,
    moved: torch.Tensor,
    predicted: torch.Tensor,
) -> torch.Tensor:
    """As moved (n, ...), whose logits (n, K) have a graph: the way to the nearest boundary."""
    import torch

    own = predicted[:, None]
    own_logits = logits.gather(1, own)
    others = logits.detach().scatter(1, own, -torch.inf)
    count = min(RIVALS, logits.shape[1] - 1)
    rivals = others.topk(count).indices
    nearest = logits.new_full((len(logits),), torch.inf)
    step = torch.zeros_like(moved)
    # that a number for each example has beside its input
    shape = (-1,) + (1,) * (moved.ndim - 1)
    for number in range(count):
        rival = rivals[:, number : number + 1]
        gaps = own_logits - logits.gather(1, rival)
        # An example's gap depends on its own input alone, so that one sum gives all gradients.
        (slopes,) = torch.autograd.grad(gaps.sum(), moved, retain_graph=True)
        gap = gaps.detach().squeeze(1)
        squares = slopes.flatten(1).square().sum(1)
        squares = squares.clamp(min=SMALLEST_SQUARE)
        distances = gap / squares.sqrt()
        is_nearer = distances < nearest
        nearest = torch.where(is_nearer, distances, nearest)
        # Down the slope of the gap, as far as it takes to close it.
        lengths = gap / squares
        nearer_lengths = lengths[is_nearer].view(shape)
        step[is_nearer] = -nearer_lengths * slopes[is_nearer]
    return step
