"""Any scikit-learn classifier that gives probabilities."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np

from tailor.common.memory import check_room
from tailor.errors import InputError
from tailor.models.backbones import Backbone, FeatureSource, make_backbone
from tailor.models.base import Model, Prediction, ProgressCallback, quiet
from tailor.models.files import read_model, write_model
from tailor.models.neural import PASS_RATE, check_range, keep_readable
from tailor.models.targets import Targets
from tailor.pools.base import Pool
from tailor.selection.pool_view import COLUMNS
from tailor.task import MultiClass, Task

#: the backbone that suits a pool's kind
PLAIN = {"vector": "given", "image": "pixels", "text": "hashed-words"}
#: rows predicted at once
CHUNK = 16384


class SklearnModel(Model):
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
    """

    name = "sklearn"
    can_finetune = True
    can_dropout = True
    can_finetune_in_parts = True
    can_dropout_in_parts = True
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
        from tailor.models.neural import find_device

        super().__init__(task, pool)
        self.estimator = (
            find_estimator(estimator, params or {}) if isinstance(estimator, str) else estimator
        )
        if not hasattr(self.estimator, "predict_proba"):
            raise InputError(
                f"{type(self.estimator).__name__} has no predict_proba: probabilities are needed"
            )
        self.backbone = make_backbone(backbone or PLAIN.get(pool.kind), pool, find_device(device))
        self.source = FeatureSource(
            pool, self.backbone, None if cache is None else Path(cache), "cpu"
        )
        self._fitted: list[Any] | None = None
        self._training: tuple[np.ndarray, np.ndarray, int] | None = None
        self.travels = not self._unwritable()

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
        self._ensure()
        positions = check_range(positions, len(self.source.rows))
        positions, labels = keep_readable(
            positions, self.task.check_labels(labels), self.source.readable
        )
        self._learn(self.source.take_host(positions).astype(np.float32), labels, seed)

    def predict(self, positions: np.ndarray, progress: ProgressCallback = quiet) -> Prediction:
        self._trained()
        self._ensure()
        positions = check_range(positions, len(self.source.rows))
        good = np.flatnonzero(self.source.readable[positions])
        features = self._vectors(positions)
        return Prediction(self._probs(self._trained(), features, good), features)

    def finetune(self, targets: Any, epochs: int, *, seed: int) -> np.ndarray:
        return self.tuned(targets, epochs, seed=seed).predict(np.arange(len(self.pool))).probs

    def tuned(self, targets: Any, epochs: int, *, seed: int) -> Self:
        """A copy trained on the whole pool, each example with its likeliest label; there are no
        epochs here.

        Targets are read in parts, but scikit-learn wants all vectors at once. targets: (N, K) in
        memory too.
        """
        self._trained()
        self._ensure()
        wanted = targets
        if not isinstance(targets, Targets):
            wanted = (
                targets.detach().cpu().numpy()
                if hasattr(targets, "detach")
                else np.asarray(targets)
            )
        if wanted.shape != (len(self.pool), self.task.size):
            raise InputError(
                f"targets have shape {wanted.shape}, not ({len(self.pool)}, {self.task.size})"
            )
        good = np.flatnonzero(self.source.readable)
        check_room(
            4 * len(good) * self._width,
            f"training scikit-learn on {len(good):,} vectors of {self._width:,} numbers",
            "take a network (the probe), which learns in small batches, or leave "
            "weak-supervision out",
        )
        tuned = copy.copy(self)
        tuned._fitted = self._train(self._vectors(good), self._likeliest(wanted, good), seed)
        tuned._training = None
        tuned.travels = False
        return tuned

    def dropout(self, passes: int, *, seed: int) -> Iterator[np.ndarray]:
        self._trained()
        return self.dropout_at(np.arange(len(self.pool)), passes, seed=seed)

    def dropout_at(self, positions: np.ndarray, passes: int, *, seed: int) -> Iterator[np.ndarray]:
        """Passes in which some of the numbers of each vector are set to 0."""
        fitted = self._trained()
        self._ensure()
        positions = check_range(positions, len(self.source.rows))
        vectors = self._vectors(positions)
        good = np.flatnonzero(self.source.readable[positions])
        rng = np.random.default_rng(seed)
        for _ in range(passes):
            kept = rng.random(vectors.shape, np.float32) >= PASS_RATE
            yield self._probs(fitted, vectors * kept / np.float32(1 - PASS_RATE), good)

    def save(self, folder: Path) -> None:
        import torch

        self._trained()
        if self._training is None:
            raise InputError(
                "a fine-tuned copy of a scikit-learn model can't be saved: save the model itself"
            )
        if reason := self._unwritable():
            raise InputError(
                f"the parameters of {place(self.estimator)} can't be written as JSON: {reason}"
            )
        vectors, labels, seed = self._training
        settings = {"seed": seed, "input": self.source.fingerprint, **self.describe()}
        tensors = {"vectors": torch.from_numpy(vectors), "labels": torch.from_numpy(labels)}
        write_model(folder, self.task, settings, tensors)

    def load(self, folder: Path) -> None:
        settings, tensors = read_model(folder, self.task, self.name)
        missing = {"estimator", "params", "seed"} - settings.keys() | {
            "vectors",
            "labels",
        } - tensors.keys()
        if missing:
            raise InputError(
                f"the saved model in {str(folder)!r} is damaged: {', '.join(sorted(missing))} is "
                "missing"
            )
        if settings["estimator"] != place(self.estimator):
            raise InputError(
                f"{str(folder)!r} holds a {settings['estimator']}, this model is "
                f"{place(self.estimator)}"
            )
        if settings["input"] != self.source.fingerprint:
            raise InputError(
                f"{str(folder)!r} was trained on {settings['input']!r}, not "
                f"{self.source.fingerprint!r}"
            )
        self.estimator.set_params(**settings["params"])
        self._learn(tensors["vectors"].numpy(), tensors["labels"].numpy(), int(settings["seed"]))

    def describe(self) -> dict[str, Any]:
        return {
            "model": self.name,
            "backbone": self.backbone.describe(),
            "estimator": place(self.estimator),
            "params": self.estimator.get_params(deep=False),
        }

    # ------------------------------------------------------------------ inside

    def _unwritable(self) -> str:
        """Why the parameters can't be written as JSON; empty where they can."""
        try:
            json.dumps(self.describe())
        except TypeError as error:
            return str(error)
        return ""

    def _ensure(self) -> None:
        if len(self.source.rows) < len(self.pool):
            self.prepare()

    def _trained(self) -> list[Any]:
        if self._fitted is None:
            raise InputError("this sklearn model is not trained yet: call fit() or load() first")
        return self._fitted

    @property
    def _width(self) -> int:
        return (self.source.shape or (0,))[0]

    def _vectors(self, positions: np.ndarray) -> np.ndarray:
        """(n, d) float32, zeros where a position can't be read."""
        good = np.flatnonzero(self.source.readable[positions])
        vectors = np.zeros((len(positions), self._width), np.float32)
        for start in range(0, len(good), CHUNK):
            part = good[start : start + CHUNK]
            vectors[part] = self.source.take_host(positions[part])
        return vectors

    def _learn(self, vectors: np.ndarray, labels: np.ndarray, seed: int) -> None:
        """labels (n, K)"""
        multiclass = isinstance(self.task, MultiClass)
        answers = (
            [labels.argmax(1)] if multiclass else (column.astype(np.int64) for column in labels.T)
        )
        self._fitted = self._train(vectors, answers, seed)
        self._training = (vectors, labels, seed)

    def _likeliest(self, targets: Any, rows: np.ndarray) -> Iterator[np.ndarray]:
        """The likeliest labels of some rows as _train takes them. Of the targets only CHUNK rows
        are read at a time; of multi-label ones again and again, so that COLUMNS classes of all rows
        are held and no more.
        """
        parts = [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]
        if isinstance(self.task, MultiClass):
            yield np.concatenate([targets[part].argmax(1) for part in parts])
            return
        for first in range(0, self.task.size, COLUMNS):
            block = slice(first, first + COLUMNS)
            for column in np.concatenate(
                [self.task.predicted(targets[part][:, block]) for part in parts]
            ).T:
                yield column.astype(np.int64)

    def _train(self, vectors: np.ndarray, answers: Iterable[np.ndarray], seed: int) -> list[Any]:
        """One fitted classifier (multi-class) or one a class; a number where there is nothing to
        tell apart.

        answers: (n,) int64 the class of each, or for every class whether each has it
        """
        return [self._one(vectors, one, seed) for one in answers]

    def _one(self, vectors: np.ndarray, classes: np.ndarray, seed: int) -> Any:
        from sklearn.base import clone

        if (classes == classes[0]).all():
            return int(classes[0])
        estimator = clone(self.estimator)
        seeded = {
            name: seed % 2**32
            for name in estimator.get_params()
            if name.rpartition("__")[2] == "random_state"
        }
        return estimator.set_params(**seeded).fit(vectors, classes)

    def _probs(self, fitted: list[Any], features: np.ndarray, good: np.ndarray) -> np.ndarray:
        """features (n, d) -> (n, K) float32, uniform outside `good`."""
        from tailor.models.heads import uniform

        probs = np.full((len(features), self.task.size), uniform(self.task), np.float32)
        for start in range(0, len(good), CHUNK):
            part = good[start : start + CHUNK]
            if isinstance(self.task, MultiClass):
                probs[part] = _columns(fitted[0], features[part], self.task.size)
            else:
                probs[part] = np.stack(
                    [_columns(one, features[part], 2)[:, 1] for one in fitted], 1
                )
        return probs


def _columns(fitted: Any, vectors: np.ndarray, size: int) -> np.ndarray:
    """(n, size): each class's probability in its own column, 0 for those never seen; rows sum
    to 1.
    """
    found = np.zeros((len(vectors), size))
    if isinstance(fitted, int):
        found[:, fitted] = 1
        return found
    found[:, np.asarray(fitted.classes_, np.int64)] = np.clip(fitted.predict_proba(vectors), 0, 1)
    return found / np.maximum(found.sum(1, keepdims=True), 1e-12)


def find_estimator(name: str, params: dict[str, Any]) -> Any:
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(f"sklearn.{module}"), attribute)(**params)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"scikit-learn has no {name!r}: write it as 'ensemble.RandomForestClassifier'"
        ) from error
    except TypeError as error:
        raise InputError(f"{name}: {error}") from error


def place(estimator: Any) -> str:
    return f"{type(estimator).__module__}.{type(estimator).__qualname__}"
