"""Correcting a classifier for the skew of the labels that it was trained on."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.common.checks import check_number, shown
from tailor.errors import InputError

if TYPE_CHECKING:
    from torch import nn

#: what the option may say in words
WORDS = ("auto", "none")
LIMITS = "'auto', 'none' or a number in [0, 1] is needed"


@dataclass(frozen=True)
class Correction:
    """What is done to a trained network's logits z (n, K): they become (z - tau * log(labelled
    share of each class)) / temperature.

    A network trained on skewed labels learns the skew as a prior. With tau = 1 the probabilities
    are those under classes that are equally frequent (Menon et al. 2021, logit adjustment).

    tau             strength in [0, 1]; 0 leaves the prior as it was learned
    temperature     above 1: less certain, below 1: more certain
    logit_variance  that a linear head was trained with; None where none was chosen

    >>> Correction(tau=1.0).shift(np.array([7, 1, 0])).round(3)
    array([ 0.693, -0.693,  0.   ])
    """

    tau: float = 0.0
    temperature: float = 1.0
    logit_variance: float | None = None

    def shift(self, counts: np.ndarray) -> np.ndarray:
        """counts (K,) of labels -> what is subtracted from the logits (K,) float64."""
        return self.tau * centred_log_shares(counts)

    def fold_into(self, layer: nn.Linear, counts: np.ndarray) -> None:
        """Change the weights and the bias of an output layer in place, so that it gives the
        corrected logits by itself.

        counts  (K,) of the labels that it was trained on
        """
        import torch

        # Nothing to do, and the weights stay the same to the last bit.
        if self.tau == 0 and self.temperature == 1:
            return
        shift = torch.from_numpy(self.shift(counts))
        shift = shift.to(layer.bias)
        with torch.no_grad():
            layer.bias.sub_(shift)
            layer.bias.div_(self.temperature)
            layer.weight.div_(self.temperature)

    def as_settings(self) -> dict[str, float | None]:
        """Plain values for a file: from_settings() takes them."""
        return asdict(self)

    @classmethod
    def from_settings(cls, settings: Any) -> Correction:
        """What as_settings() gave; None, of a model saved before, is no correction.

        Raises InputError for anything else.
        """
        if settings is None:
            return cls()
        try:
            correction = cls(**settings)
            numbers = [correction.tau, correction.temperature]
            if correction.logit_variance is not None:
                numbers.append(correction.logit_variance)
            is_sound = all(math.isfinite(number) for number in numbers)
        except TypeError:
            is_sound = False
        if not is_sound:
            raise InputError(f"its correction is {shown(settings)}")
        return correction


def centred_log_shares(counts: np.ndarray) -> np.ndarray:
    """counts (K,) of labels -> log of each class's share (K,) float64, every count raised by 1; 0
    for a class without a label, about whose frequency nothing is known.

    The mean over the classes that have a label is subtracted. Where all have one, no probability
    depends on it; where some have none, the others are not raised above them for that alone.
    """
    has_label = counts > 0
    if not has_label.any():
        return np.zeros(len(counts))
    # Raised by 1, so that the first few labels of a class do not shift it by much.
    raised = counts.astype(np.float64) + 1
    log_counts = np.log(raised)
    mean = log_counts[has_label].mean()
    return np.where(has_label, log_counts - mean, 0.0)


def check_prior_correction(value: Any) -> str | float:
    """The option of a model: one of WORDS, or a number; None is "none".

    Raises InputError for anything else.
    """
    if value is None:
        return "none"
    if isinstance(value, str):
        if value not in WORDS:
            raise InputError(f"prior_correction is {shown(value)}: {LIMITS}")
        return value
    tau = check_number(value, "prior_correction", LIMITS)
    if not 0 <= tau <= 1:
        raise InputError(f"prior_correction is {tau}: {LIMITS}")
    return tau
