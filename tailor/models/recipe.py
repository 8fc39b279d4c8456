"""How a network is trained."""

from __future__ import annotations

from dataclasses import dataclass

from tailor.errors import InputError

#: how far a linear head's logits may spread, by kind of task: best over five datasets' pools, on
#: held-out parts
LOGIT_VARIANCE = {"multi-class": 30.0, "multi-label": 10.0}


@dataclass(frozen=True)
class Recipe:
    """Options of training with Adam.

    epochs, steps  passes over the examples; with `steps` that many batches instead, however many
                   examples there are
    batch          examples a step; the last batch of an epoch is filled up from the epoch's
                   beginning
    lr             learning rate
    weight_decay   of Adam
    decay          the learning rate falls to 0 along half a cosine
    dropout        rate, on the features
    flip           half of the pictures are mirrored, anew each time
    graph          on a GPU, capture the step as a CUDA graph

    Raises InputError for a value outside its range.
    """

    epochs: int = 10
    steps: int | None = None
    batch: int = 50
    lr: float = 1e-4
    weight_decay: float = 5e-5
    decay: bool = False
    dropout: float = 0.0
    flip: bool = False
    graph: bool = True

    def __post_init__(self) -> None:
        counts = {
            "epochs": self.epochs,
            "steps": self.steps,
            "batch": self.batch,
        }
        for name, count in counts.items():
            if count is not None and count < 1:
                raise InputError(f"{name} is {count}: at least 1 is needed")
        if not self.lr > 0:
            raise InputError(f"lr is {self.lr}: it must be above 0")
        if self.weight_decay < 0:
            raise InputError(f"weight_decay is {self.weight_decay}: it must not be negative")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}: it must lie in [0, 1)")
