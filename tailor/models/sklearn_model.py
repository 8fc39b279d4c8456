"""Any scikit-learn classifier that gives probabilities."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from tailor.common.linear_head import LinearHead
from tailor.common.memory import check_room
from tailor.errors import InputError
from tailor.models.backbones import Backbone, FeatureSource, make_backbone
from tailor.models.base import Prediction, ProgressCallback, quiet
from tailor.models.files import damaged, read_model, write_model
from tailor.models.inputs import find_device
from tailor.models.sklearn_classifiers import FittedClassifiers, estimator_path, find_estimator
from tailor.models.sklearn_heads import find_linear_head
from tailor.models.source_model import DEFAULT_DROPOUT, SourceModel
from tailor.models.standardisation import Standardisation
from tailor.models.targets import Targets
from tailor.models.uninformed import uninformed_probability
from tailor.pools.base import Pool
from tailor.selection.pool_view import COLUMNS
from tailor.task import MultiClass, Task

#: the backbone that suits a pool's kind
PLAIN_BACKBONES = {"vector": "given", "image": "pixels", "text": "hashed-words"}
#: rows predicted at once
CHUNK = 16384


class SklearnModel(SourceModel):
    """A classifier with fit() and predict_proba() on vectors: given ones, or a backbone's features.

    Multi-label tasks get one classifier a class. A class without a label gets probability 0; a
    class that all labelled examples have (or none), a constant. The features that arms see are the
    vectors.

    scikit-learn has no format without pickle, so save() keeps the training vectors, the labels and
    the parameters, and load() trains again: the same result on the same version of scikit-learn. An
    estimator whose parameters are objects (a Pipeline) can't be saved; in a run over shards it
    predicts in the process that trained it.

    estimator  an object, or its place inside scikit-learn: "ensemble.RandomForestClassifier"
    params     parameters for an estimator given by its place
    backbone   by default vectors as given, or small pixels, or hashed words
    cache      a folder for the vectors; without one they last as long as this object
    device     where the backbone runs: "auto", "cpu", "cuda" or "cuda:NUMBER"

    Formula: the estimator's own.

    Cost: that of the estimator's fit() on the labelled vectors, and of predict_proba() on the pool.

    When to use: vectors or tables, and a classifier that you trust: forests, boosting, a calibrated
    pipeline.

    >>> from tailor.pools.arrays import Arrays
    >>> from tailor.task import MultiClass
    >>> pool = Arrays(np.random.default_rng(0).normal(size=(20, 4)))
    >>> model = SklearnModel(MultiClass(3), pool, "neighbors.KNeighborsClassifier")
    >>> model.fit(np.arange(9), np.eye(3)[np.arange(9) % 3], seed=0)
    >>> model.predict(np.arange(20)).probs.shape
    (20, 3)
    """

    name = "sklearn"
    has_first_features = True
    source: FeatureSource

    def __init__(
        self,
        task: Task,
        pool: Pool,
        estimator: Any = "linear_model.LogisticRegression",
        *,
        params: dict[str, Any] | None = None,
        backbone: str | Backbone | None = None,
        cache: Path | str | None = None,
        device: str = "auto",
    ) -> None:
        super().__init__(task, pool)
        # An object has its parameters already.
        if isinstance(estimator, str):
            estimator = find_estimator(estimator, params or {})
        if not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"{type(estimator).__name__} has no predict_proba: probabilities are needed"
            )
        self.estimator = estimator
        # Plain ones by default, which need no weights of a network.
        named = backbone or PLAIN_BACKBONES.get(pool.kind)
        self.backbone = make_backbone(named, pool, find_device(device))
        if cache is None:
            folder = None
        else:
            folder = Path(cache)
        self.source = FeatureSource(
            pool,
            self.backbone,
            folder,
            "cpu",
        )
        self._fitted: FittedClassifiers | None = None
        #: vectors, labels (n, K) and seed of the last training; None for a fine-tuned copy
        self._training: tuple[np.ndarray, np.ndarray, int] | None = None
        self.travels = not self._unwritable()

    def first_features(self, positions: np.ndarray) -> np.ndarray:
        standardisation = Standardisation(self.source)
        checked = self._check_positions(positions)
        return standardisation.rows(self.run_positions, checked)

    def fit(
        self,
        positions: np.ndarray,
        labels: np.ndarray,
        *,
        seed: int,
        progress: ProgressCallback = quiet,
    ) -> None:
        positions, labels = self._check_training_set(positions, labels)
        vectors = self.source.take_host(positions).astype(np.float32)
        self._learn(vectors, labels, seed)

    def predict(self, positions: np.ndarray, progress: ProgressCallback = quiet) -> Prediction:
        fitted = self._trained()
        positions = self._check_positions(positions)
        features = self._vectors(positions)
        probs = self._probabilities(fitted, positions, features)
        return Prediction(probs, features)

    def linear_head(self) -> LinearHead | None:
        fitted = self._trained()
        if self._training is None:
            return None
        vectors, _, _ = self._training
        return find_linear_head(fitted, vectors)

    def finetune(
        self,
        targets: Any,
        epochs: int,
        *,
        seed: int,
    ) -> np.ndarray:
        tuned = self.tuned(targets, epochs, seed=seed)
        everything = np.arange(len(self.pool))
        return tuned.predict(everything).probs

    def tuned(
        self,
        targets: Any,
        epochs: int,
        *,
        seed: int,
    ) -> Self:
        """A copy trained on the whole pool, each example with its likeliest label; there are no
        epochs here.

        Targets are read in parts, but scikit-learn wants all vectors at once. Raises InputError
        where they don't fit into memory.
        """
        self._trained()
        checked = self._check_targets(targets)
        readable = np.flatnonzero(self.source.readable)
        check_room(
            4 * len(readable) * self._width,
            f"training scikit-learn on {len(readable):,} vectors of {self._width:,} numbers",
            "take a network (the probe), which learns in small batches, or leave "
            "weak-supervision out",
        )
        tuned = copy.copy(self)
        tuned._fitted = FittedClassifiers.fit(
            self.task,
            self.estimator,
            self._vectors(readable),
            self._likeliest_labels(checked, readable),
            seed,
        )
        # What it was trained on is not kept, so it can't be saved, nor sent to other processes.
        tuned._training = None
        tuned.travels = False
        return tuned

    def dropout_at(
        self,
        positions: np.ndarray,
        passes: int,
        *,
        seed: int,
    ) -> Iterator[np.ndarray]:
        """Passes in which some of the numbers of each vector are set to 0."""
        fitted = self._trained()
        positions = self._check_positions(positions)
        vectors = self._vectors(positions)
        scale = np.float32(1 - DEFAULT_DROPOUT)
        rng = np.random.default_rng(seed)
        for _ in range(passes):
            uniform = rng.random(vectors.shape, np.float32)
            kept = uniform >= DEFAULT_DROPOUT
            dropped = vectors * kept / scale
            yield self._probabilities(fitted, positions, dropped)

    def save(self, folder: Path) -> None:
        import torch

        self._trained()
        if self._training is None:
            raise InputError(
                "a fine-tuned copy of a scikit-learn model can't be saved: save the model itself"
            )
        reason = self._unwritable()
        if reason:
            raise InputError(
                f"the parameters of {estimator_path(self.estimator)} can't be written as JSON: "
                f"{reason}"
            )
        vectors, labels, seed = self._training
        settings = {
            "seed": seed,
            "input": self.source.fingerprint,
            **self.describe(),
        }
        tensors = {
            "vectors": torch.from_numpy(vectors),
            "labels": torch.from_numpy(labels),
        }
        write_model(
            folder,
            self.task,
            settings,
            tensors,
        )

    def load(self, folder: Path) -> None:
        settings, tensors = read_model(folder, self.task, self.name)
        missing = {"estimator", "params", "seed"} - settings.keys()
        missing |= {"vectors", "labels"} - tensors.keys()
        if missing:
            names = ", ".join(sorted(missing))
            raise damaged(folder, f"{names} is missing")
        self._check_same_model(folder, settings)
        self._set_params(folder, settings["params"])
        vectors = tensors["vectors"].numpy()
        labels = tensors["labels"].numpy()
        try:
            self._learn(vectors, labels, int(settings["seed"]))
        except (AttributeError, TypeError, ValueError) as error:
            raise damaged(folder, f"it can't be trained again: {error}") from error

    def _set_params(self, folder: Path, params: Any) -> None:
        """Give the estimator the parameters of a saved one. Raises InputError unless they are
        parameters of its own, and of its parts none.
        """
        known = self.estimator.get_params(deep=False)
        if not isinstance(params, dict) or not params.keys() <= known.keys():
            raise damaged(folder, "its params are not those of the estimator")
        self.estimator.set_params(**params)

    def _check_same_model(self, folder: Path, settings: dict[str, Any]) -> None:
        """Raises InputError for a saved model of another estimator or of other vectors."""
        expected = estimator_path(self.estimator)
        if settings["estimator"] != expected:
            raise InputError(
                f"{str(folder)!r} holds a {settings['estimator']}, this model is {expected}"
            )
        fingerprint = self.source.fingerprint
        if settings["input"] != fingerprint:
            raise InputError(
                f"{str(folder)!r} was trained on {settings['input']!r}, not {fingerprint!r}"
            )

    def describe(self) -> dict[str, Any]:
        return {
            "model": self.name,
            "backbone": self.backbone.describe(),
            "estimator": estimator_path(self.estimator),
            "params": self.estimator.get_params(deep=False),
        }

    def _unwritable(self) -> str:
        """Why the parameters can't be written as JSON; empty where they can."""
        try:
            json.dumps(self.describe())
        except TypeError as error:
            return str(error)
        return ""

    def _trained(self) -> FittedClassifiers:
        if self._fitted is None:
            raise self._not_trained()
        return self._fitted

    @property
    def _width(self) -> int:
        if self.source.shape is None:
            return 0
        return self.source.shape[0]

    def _vectors(self, positions: np.ndarray) -> np.ndarray:
        """(n, d) float32, zeros where a position can't be read."""
        is_readable = self.source.readable[positions]
        readable = np.flatnonzero(is_readable)
        shape = (len(positions), self._width)
        vectors = np.zeros(shape, np.float32)
        for part in _chunks(readable):
            vectors[part] = self.source.take_host(positions[part])
        return vectors

    def _learn(
        self,
        vectors: np.ndarray,
        labels: np.ndarray,
        seed: int,
    ) -> None:
        """Train on vectors (n, d) with labels (n, K) of 0 and 1."""
        columns: Iterable[np.ndarray]
        if isinstance(self.task, MultiClass):
            columns = [labels.argmax(1)]
        else:
            columns = (column.astype(np.int64) for column in labels.T)
        self._fitted = FittedClassifiers.fit(
            self.task,
            self.estimator,
            vectors,
            columns,
            seed,
        )
        self._training = (vectors, labels, seed)

    def _likeliest_labels(
        self, targets: np.ndarray | Targets, rows: np.ndarray
    ) -> Iterator[np.ndarray]:
        """The likeliest labels of some rows, as FittedClassifiers.fit() takes them.

        Of the targets only CHUNK rows are read at a time; of multi-label ones again and again, so
        that COLUMNS classes of all rows are held and no more.
        """
        parts = _chunks(rows)
        if isinstance(self.task, MultiClass):
            likeliest = [targets[part].argmax(1) for part in parts]
            yield np.concatenate(likeliest)
            return
        for first in range(0, self.task.size, COLUMNS):
            block = slice(first, first + COLUMNS)
            predicted = []
            for part in parts:
                part_targets = targets[part]
                block_targets = part_targets[:, block]
                predicted.append(self.task.predicted(block_targets))
            of_all_rows = np.concatenate(predicted)
            for column in of_all_rows.T:
                yield column.astype(np.int64)

    def _probabilities(
        self,
        fitted: FittedClassifiers,
        positions: np.ndarray,
        vectors: np.ndarray,
    ) -> np.ndarray:
        """(n, K) float32 of vectors (n, d), uniform where a position can't be read."""
        is_readable = self.source.readable[positions]
        readable = np.flatnonzero(is_readable)
        shape = (len(vectors), self.task.size)
        probability = uninformed_probability(self.task)
        probs = np.full(shape, probability, np.float32)
        for part in _chunks(readable):
            probs[part] = fitted.predict(vectors[part])
        return probs


def _chunks(rows: np.ndarray) -> list[np.ndarray]:
    starts = range(0, len(rows), CHUNK)
    return [rows[start : start + CHUNK] for start in starts]
