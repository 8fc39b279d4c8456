"""The small network of the learned family, and its weights in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tailor.errors import InputError
from tailor.strategies.policy_inputs import INPUTS

if TYPE_CHECKING:
    import torch

#: the weights that come with the package; their file says by which command they were made
SHIPPED = Path(__file__).parent / "learned.safetensors"
#: a weight matrix (out, in) and offsets (out,) for each layer, input to output
LAYERS = ("first", "second", "last")


@dataclass(frozen=True)
class PolicyNetwork:
    """Two hidden layers of rectified units: inputs (n, 11) -> a number for each, larger is better.

    weights  by name, float32: "first.weight" (h, 11), "first.bias" (h,), and so on; the last layer
             has one output
    """

    weights: Mapping[str, np.ndarray]

    @classmethod
    def read(cls, path: Path) -> PolicyNetwork:
        """Raises InputError where the file is none of such weights."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            network = cls(load_file(path))
        except (OSError, SafetensorError) as error:
            raise InputError(
                f"weights {str(path)!r} can't be read ({error}): a file is needed that `tailor "
                "bench policy train` wrote"
            ) from error
        network.check(path)
        return network

    def check(self, path: Path) -> None:
        """Raise InputError where a layer is missing or does not fit the one before it."""
        width = len(INPUTS)
        for layer in LAYERS:
            weight = self.weights.get(f"{layer}.weight")
            bias = self.weights.get(f"{layer}.bias")
            fits = weight is not None and bias is not None
            if weight is not None and bias is not None:
                fits = weight.ndim == 2 and weight.shape[1] == width and len(bias) == len(weight)
                width = len(weight)
            if not fits:
                raise InputError(
                    f"weights {str(path)!r}: layer {layer!r} does not fit, of {len(INPUTS)} inputs "
                    "and one output; train them again with `tailor bench policy train`"
                )
        if width != 1:
            raise InputError(f"weights {str(path)!r} give {width} numbers an example, not one")

    def scores(self, inputs: torch.Tensor) -> torch.Tensor:
        """(n,) float64 of inputs (n, 11) float64."""
        import torch

        values = inputs
        for layer in LAYERS:
            weight = torch.as_tensor(self.weights[f"{layer}.weight"], device=inputs.device)
            bias = torch.as_tensor(self.weights[f"{layer}.bias"], device=inputs.device)
            values = torch.addmm(bias.double(), values, weight.double().T)
            if layer != LAYERS[-1]:
                values = values.clamp(min=0)
        return values.squeeze(1)


def write_weights(
    path: Path,
    weights: Mapping[str, np.ndarray],
    facts: Mapping[str, str],
) -> None:
    """facts: what the file says of itself, such as the command that made it."""
    from safetensors.numpy import save_file

    save_file(dict(weights), path, metadata=dict(facts))


def facts_of(path: Path) -> dict[str, str]:
    """What a file of weights says of itself."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        facts: dict[str, str] | None = file.metadata()
    return facts or {}
