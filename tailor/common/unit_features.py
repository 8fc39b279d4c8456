"""Features whose directions alone are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

#: Features that are closer to the centre, as a share of its length, lie on it: what is left of
#: them is rounding.
ON_CENTRE = 1e-12


def unit_features(features: torch.Tensor, centre: torch.Tensor) -> torch.Tensor:
    """(n, d) float64: features (n, d) measured from a centre (d,), divided by their length; 0 where
    they lie on the centre.

    Measured from the mean, an offset that all share (a column of years) tells nothing, and neither
    does the scale.
    """
    import torch

    rows = features.double() - centre
    lengths = rows.norm(dim=1, keepdim=True)
    least = ON_CENTRE * centre.norm()
    is_off_centre = lengths > least
    # Where the length is 0 its reciprocal is infinite, and is not used.
    reciprocals = 1 / lengths
    scale = torch.where(is_off_centre, reciprocals, 0)
    return rows.mul_(scale)
