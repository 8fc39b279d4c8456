"""What a view asks of the round's model, where it has one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


class ModelAnswers(ABC):
    """What the model says beyond its predictions. N is the number of examples, K of classes."""

    @abstractmethod
    def finetuned(self, epochs: int) -> torch.Tensor:
        """(N, K) probabilities of a copy of the model that was fine-tuned for some epochs.

        It learned the labels of what is labelled, and of the rest what the model itself had said.
        """

    @abstractmethod
    def dropout_passes(self) -> Iterator[torch.Tensor]:
        """The probabilities (N, K) of each of several passes with dropout on."""

    @abstractmethod
    def boundary_distances(self, positions: np.ndarray, steps: int) -> np.ndarray:
        """(n,) float64: how far examples at positions (n,) lie from the nearest boundary between
        two classes, in the network's input, by so many steps of DeepFool.
        """
