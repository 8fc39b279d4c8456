"""What all models that are torch networks share: training, predicting, copies, saving."""

from __future__ import annotations

import copy
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tailor.errors import InputError, UnknownName
from tailor.models.base import Model, Prediction, ProgressCallback, quiet
from tailor.models.files import read_model, write_model
from tailor.models.source import Source
from tailor.models.targets import Targets
from tailor.pools.base import Pool
from tailor.task import Task

if TYPE_CHECKING:
    import torch
    from torch import nn

    from tailor.models.trainer import Recipe

#: (network, positions (n,), targets (n, K), recipe, seed, progress) -> whether a graph was used
NetworkTrainer = Callable[
    ["nn.Module", np.ndarray, Any, "Recipe", int, ProgressCallback],
    bool,
]
#: the rate of dropout() where the model is trained without dropout
PASS_RATE = 0.2
#: features of more bytes than this are handed out as a memory map
LARGE = 2**29


def find_device(given: str) -> str:
    """ "auto" -> "cuda" where there is one, else "cpu"."""
    import torch

    if given == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if given.partition(":")[0] not in ("cpu", "cuda"):
        raise UnknownName("device", given, ["auto", "cpu", "cuda"])
    if given != "cpu" and not torch.cuda.is_available():
        raise InputError(
            f"device {given!r} was asked for, but torch finds no CUDA device here: use cpu"
        )
    return given


class Neural(Model):
    """A network that gives logits and features, over the rows of a Source.

    A class on top gives the name, the source, the recipe and _fresh().
    """

    can_finetune = True
    can_dropout = True
    can_finetune_in_parts = True
    can_dropout_in_parts = True
    name: str
    source: Source
    recipe: Recipe
    #: trains a network instead of _train(): workers that train one network together set it
    trainer: NetworkTrainer | None = None

    def __init__(self, task: Task, pool: Pool, *, class_weights: Any, device: str) -> None:
        super().__init__(task, pool)
        self.device = find_device(device)
        self.class_weights = class_weights
        self.net: nn.Module | None = None
        self.used_graph = False
        self._folded: tuple[nn.Module, nn.Module] | None = (
            None  # a trained network, and its copy that predicts
        )

    @abstractmethod
    def _fresh(self, generator: torch.Generator, shape: tuple[int, ...]) -> nn.Module:
        """A new network on the CPU for rows of `shape`, its weights drawn from `generator` or
        loaded.
        """

    def prepare(self, progress: ProgressCallback = quiet) -> dict[int, str]:
        return self.source.prepare(progress)

    def fit(
        self,
        positions: np.ndarray,
        labels: np.ndarray,
        *,
        seed: int,
        progress: ProgressCallback = quiet,
    ) -> None:
        import torch

        positions, targets = self._check(positions, self.task.check_labels(labels))
        assert self.source.shape is not None
        net = self._place(self._fresh(torch.Generator().manual_seed(seed), self.source.shape))
        train = self._train if self.trainer is None else self.trainer
        self.used_graph = train(net, positions, targets, self.recipe, seed, progress)
        self.net = net

    def predict(self, positions: np.ndarray, progress: ProgressCallback = quiet) -> Prediction:
        from tailor.models.heads import activate, uniform

        net = self._trained()
        positions = self._positions(positions)
        good = np.flatnonzero(self.source.readable[positions])
        probs = np.full((len(positions), self.task.size), uniform(self.task), np.float32)
        features = _zeros((len(positions), int(net.width)))  # type: ignore[arg-type]
        for part, logits, seen in self._outputs(net, positions[good]):
            probs[good[part]] = activate(self.task, logits).cpu().numpy()
            features[good[part]] = seen.cpu().numpy()
            progress(part.stop, len(good), "predicting")
        return Prediction(probs, features)

    def finetune(self, targets: Any, epochs: int, *, seed: int) -> np.ndarray:
        return self.tuned(targets, epochs, seed=seed)._probs(np.arange(len(self.source.rows)))

    def tuned(self, targets: Any, epochs: int, *, seed: int) -> Self:
        """targets: (N, K) in memory too."""
        net = copy.deepcopy(self._trained())
        wanted = targets
        if not isinstance(targets, Targets):
            wanted = (
                targets.detach().cpu().numpy()
                if hasattr(targets, "detach")
                else np.asarray(targets)
            )
        self._ensure()
        if wanted.shape != (len(self.source.rows), self.task.size):
            raise InputError(
                f"targets have shape {wanted.shape}, not ({len(self.source.rows)}, "
                f"{self.task.size})"
            )
        good = np.flatnonzero(self.source.readable)
        mine = wanted.only(good) if isinstance(wanted, Targets) else wanted[good]
        self._train(net, good, mine, replace(self.recipe, epochs=epochs, steps=None), seed, quiet)
        tuned = copy.copy(self)
        tuned.net = net
        return tuned

    def dropout(self, passes: int, *, seed: int) -> Iterator[np.ndarray]:
        self._trained()
        self._ensure()
        return self.dropout_at(np.arange(len(self.source.rows)), passes, seed=seed)

    def dropout_at(self, positions: np.ndarray, passes: int, *, seed: int) -> Iterator[np.ndarray]:
        import torch

        self._trained()
        positions = self._positions(positions)
        generator = torch.Generator(self.device).manual_seed(seed)
        for _ in range(passes):
            yield self._probs(positions, self.recipe.dropout or PASS_RATE, generator)

    def save(self, folder: Path) -> None:
        net = self._trained()
        settings = {"shape": self.source.shape, "input": self.source.fingerprint, **self.describe()}
        write_model(folder, self.task, settings, net.state_dict())

    def load(self, folder: Path) -> None:
        import torch

        settings, tensors = read_model(folder, self.task, self.name)
        if settings["input"] != self.source.fingerprint:
            raise InputError(
                f"the model in {str(folder)!r} was trained on {settings['input']!r}, this one "
                "reads "
                f"{self.source.fingerprint!r}: build it with the same options"
            )
        shape = settings.get("shape")
        if not isinstance(shape, list) or not all(isinstance(n, int) and n > 0 for n in shape):
            raise InputError(
                f"the saved model in {str(folder)!r} is damaged: its shape is {shape!r}; train "
                "it again"
            )
        net = self._fresh(torch.Generator().manual_seed(0), tuple(shape))
        try:
            net.load_state_dict(tensors)
        except RuntimeError as error:
            raise InputError(f"the weights in {str(folder)!r} don't fit: {error}") from error
        self.net = self._place(net).eval()

    # ------------------------------------------------------------------ inside

    def _train(
        self,
        net: nn.Module,
        positions: np.ndarray,
        targets: Any,
        recipe: Recipe,
        seed: int,
        progress: ProgressCallback,
    ) -> bool:
        """targets (n, K): an array, or Targets."""
        from tailor.models.trainer import train

        loss = self._loss(targets)
        return train(
            net,
            self.source,
            positions,
            targets,
            loss,
            recipe,
            seed=seed,
            device=self.device,
            progress=progress,
        )

    def _loss(self, targets: Any) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        import torch

        from tailor.models.heads import class_weights, make_loss

        weights = class_weights(self.task, self.class_weights, targets)
        return make_loss(
            self.task, None if weights is None else torch.from_numpy(weights).to(self.device)
        )

    def _outputs(
        self, net: nn.Module, positions: np.ndarray, **options: Any
    ) -> Iterator[tuple[slice, Any, Any]]:
        from tailor.models.folding import folded
        from tailor.models.trainer import outputs

        known = self._folded
        if known is None or known[0] is not net:
            self._folded = known = net, folded(net)
        return outputs(known[1], self.source, positions, device=self.device, **options)

    def _probs(self, positions: np.ndarray, rate: float = 0.0, generator: Any = None) -> np.ndarray:
        """(n, K) at positions (n,)."""
        from tailor.models.heads import activate, uniform

        good = np.flatnonzero(self.source.readable[positions])
        probs = np.full((len(positions), self.task.size), uniform(self.task), np.float32)
        for part, logits, _ in self._outputs(
            self._trained(), positions[good], dropout=rate, generator=generator
        ):
            probs[good[part]] = activate(self.task, logits).cpu().numpy()
        return probs

    def _place(self, net: nn.Module) -> nn.Module:
        import torch

        # torch's own types don't know that to() takes a memory format alone
        return net.to(self.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def _trained(self) -> nn.Module:
        if self.net is None:
            raise InputError(
                f"this {self.name} model is not trained yet: call fit() or load() first"
            )
        return self.net

    def _ensure(self) -> None:
        if len(self.source.rows) < len(self.pool):
            self.prepare()

    def _positions(self, positions: Any) -> np.ndarray:
        self._ensure()
        return check_range(positions, len(self.source.rows))

    def _check(self, positions: Any, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        positions = self._positions(positions)
        return keep_readable(positions, labels, self.source.readable)


def check_range(positions: Any, size: int) -> np.ndarray:
    """positions (n,) int64, each from 0 to size - 1."""
    array = np.asarray(positions)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"positions must be a list of whole numbers, got {array.dtype} of shape {array.shape}"
        )
    if array.min() < 0 or array.max() >= size:
        bad = array[(array < 0) | (array >= size)][0]
        raise InputError(f"position {bad} is not in the pool: positions run from 0 to {size - 1}")
    return array.astype(np.int64)


def keep_readable(
    positions: np.ndarray, labels: np.ndarray, readable: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Leave out what can't be read: (n,), (n, K) -> (m,), (m, K). At least one must be left."""
    if len(positions) != len(labels):
        raise InputError(f"{len(positions)} positions but {len(labels)} labels")
    good = readable[positions]
    if not good.any():
        raise InputError(
            f"none of the {len(positions)} labelled examples can be read: at least one is needed "
            "to train"
        )
    return positions[good], labels[good]


def _zeros(shape: tuple[int, int]) -> np.ndarray:
    """Zeros in memory, or a memory map of a file without a name where they are many."""
    if shape[0] * shape[1] * 4 <= LARGE:
        return np.zeros(shape, np.float32)
    return np.memmap(tempfile.TemporaryFile(prefix="tailor-"), np.float32, "w+", shape=shape)
