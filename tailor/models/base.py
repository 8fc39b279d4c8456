"""What is trained: one small protocol that the session needs, whatever the network."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.common.linear_head import LinearHead
from tailor.errors import InputError
from tailor.models.targets import Targets
from tailor.pools.base import Pool
from tailor.task import Task

if TYPE_CHECKING:
    from tailor.models.source import Source

#: (done, total, what) -> None: a step of a long job, for progress bars
ProgressCallback = Callable[[int, int, str], None]


class Notice(UserWarning):
    """Something a user should know about how a model starts; nothing is wrong."""


def quiet(done: int, total: int, what: str) -> None:
    """No progress bar."""


@dataclass(frozen=True)
class Prediction:
    """What a model says of n examples. Tensors are made arrays."""

    probs: np.ndarray  # (n, K) float32
    features: np.ndarray  # (n, d) float32

    def __post_init__(self) -> None:
        object.__setattr__(self, "probs", as_array(self.probs))
        object.__setattr__(self, "features", as_array(self.features))


def as_array(values: Any) -> np.ndarray:
    """What a model gave as a NumPy array, a memory map as one; a tensor may be on a GPU and hang on
    its graph.
    """
    # By its method: torch is not imported for this.
    if hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    return np.asanyarray(values)


class Model(ABC):
    """A classifier over a pool. Built for one task and one pool; positions are the pool's.

    The same seed and the same labels give the same model, bit for bit, on a CPU.
    """

    #: whether save() and load() bring it to another process; one that stays behind predicts where
    #: it is
    travels = True
    #: which of the optional methods below the class defines; a class that writes one says so here
    can_finetune = False  # finetune(): weak-supervision asks for it
    can_dropout = False  # dropout(): bald asks for it
    can_finetune_in_parts = False  # tuned(): as finetune(), over a pool that doesn't fit memory
    can_dropout_in_parts = False  # dropout_at(): as dropout(), over such a pool
    can_measure_boundaries = False  # boundary_distances(): deepfool with steps asks for it
    has_first_features = False  # first_features(): a first batch that covers the pool asks for it
    #: where the model keeps the rows that it computes once for each entry of the pool, if it does;
    #: an engine fills it from many workers
    source: Source | None = None

    def __init__(self, task: Task, pool: Pool) -> None:
        self.task = task
        self.pool = pool
        #: the pool's positions that are in the run, in its order; what is measured over the pool is
        #: measured over these
        self.run_positions: np.ndarray | None = None
        #: what a user should know, in words: a start from scratch, a backbone that is not installed
        self.notices: list[str] = []

    def say(self, text: str) -> None:
        """Keep a notice, once, and give it as a warning."""
        if text not in self.notices:
            self.notices.append(text)
            warnings.warn(text, Notice, stacklevel=3)

    def prepare(self, progress: ProgressCallback = quiet) -> dict[int, str]:
        """Compute what is needed once for the whole pool (features, decoded pixels), of new entries
        only.

        Called before the first fit(), and whenever the pool has grown. Returns the positions that
        could not be read, each with the reason.
        """
        return {}

    def first_features(self, positions: np.ndarray) -> np.ndarray:
        """Features (n, d) at positions (n,) before anything was learned, once prepare() has been
        called: what a first batch is spread over. 0 where an entry can't be read.
        """
        raise InputError(f"{type(self).__name__} has no features before it is trained")

    @abstractmethod
    def fit(
        self,
        positions: np.ndarray,
        labels: np.ndarray,
        *,
        seed: int,
        progress: ProgressCallback = quiet,
    ) -> None:
        """Train anew on positions (n,) with labels (n, K) of 0 and 1. A class without a label must
        not break it.

        Raises InputError for positions outside the pool, and where none of them can be read.
        """

    @abstractmethod
    def predict(self, positions: np.ndarray, progress: ProgressCallback = quiet) -> Prediction:
        """Probabilities and features at positions (n,). A position that can't be read gets a
        uniform prediction.

        Raises InputError for positions outside the pool, and before fit() or load().
        """

    def finetune(
        self,
        targets: np.ndarray,
        epochs: int,
        *,
        seed: int,
    ) -> np.ndarray:
        """Train a copy on the whole pool with soft targets (N, K) for a few epochs -> its
        probabilities (N, K).

        The model itself is left as it is.
        """
        raise InputError(f"{type(self).__name__} can't be fine-tuned: leave weak-supervision out")

    def dropout(self, passes: int, *, seed: int) -> Iterable[np.ndarray]:
        """Probabilities (N, K) over the whole pool of each of several passes with dropout on."""
        raise InputError(f"{type(self).__name__} has no dropout: leave bald out")

    def linear_head(self) -> LinearHead | None:
        """The last layer of the trained model: logits from the features that predict() gives. None
        where the model has none, or nobody knows it.
        """
        return None

    def boundary_distances(self, positions: np.ndarray, steps: int) -> np.ndarray:
        """(n,) how far examples at positions (n,) lie from the nearest boundary between two
        classes, in the network's input, by so many steps of DeepFool; infinity where one can't be
        read.
        """
        raise InputError(f"{type(self).__name__} has no gradients: take deepfool(steps=0)")

    def tuned(
        self,
        targets: Targets,
        epochs: int,
        *,
        seed: int,
    ) -> Model:
        """The copy that finetune() makes, from targets that are read in parts. With it an engine
        predicts shard by shard; a model without it is asked for all of the pool at once.
        """
        raise InputError(
            f"{type(self).__name__} doesn't hand out its fine-tuned copy: finetune() is there "
            "instead"
        )

    def dropout_at(
        self,
        positions: np.ndarray,
        passes: int,
        *,
        seed: int,
    ) -> Iterable[np.ndarray]:
        """As dropout(), at positions (n,) alone, with random numbers of their own. As optional as
        tuned().
        """
        raise InputError(
            f"{type(self).__name__} has no dropout at some positions alone: dropout() is there "
            "instead"
        )

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write weights as safetensors and settings as JSON. No pickle."""

    @abstractmethod
    def load(self, folder: Path) -> None:
        """Read what save() wrote.

        Raises InputError for a folder without a model, or with one of another kind or task.
        """

    def describe(self) -> dict[str, Any]:
        """Name and settings, as plain values."""
        return {"model": type(self).__name__}
