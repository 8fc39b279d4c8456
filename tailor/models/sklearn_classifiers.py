"""scikit-learn's classifiers as one: probabilities of all classes of a task, from vectors."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.task import MultiClass, Task


class FittedClassifiers:
    """One fitted classifier (multi-class), or one for each class (multi-label).

    Where the training labels are all the same, a constant stands instead of a classifier, since
    scikit-learn refuses to learn from one class.
    """

    def __init__(self, task: Task, classifiers: list[Any]) -> None:
        self.task = task
        #: estimators, or the one class (an int) that was seen
        self.classifiers = classifiers

    @classmethod
    def fit(
        cls,
        task: Task,
        estimator: Any,
        vectors: np.ndarray,
        labels: Iterable[np.ndarray],
        seed: int,
    ) -> FittedClassifiers:
        """Fit a copy of the estimator for each of the labels.

        vectors  (n, d) float32
        labels   multi-class: once (n,) int64, the class of each; multi-label: for every class (n,)
                 int64, whether each has it
        """
        return cls(
            task,
            [
                _fit_one(
                    estimator,
                    vectors,
                    column,
                    seed,
                )
                for column in labels
            ],
        )

    def predict(self, vectors: np.ndarray) -> np.ndarray:
        """Probabilities (n, K) of vectors (n, d)."""
        if isinstance(self.task, MultiClass):
            return _class_columns(self.classifiers[0], vectors, self.task.size)
        positives = [
            _class_columns(classifier, vectors, 2)[:, 1] for classifier in self.classifiers
        ]
        return np.stack(positives, 1)


def _fit_one(
    estimator: Any,
    vectors: np.ndarray,
    classes: np.ndarray,
    seed: int,
) -> Any:
    from sklearn.base import clone

    if (classes == classes[0]).all():
        return int(classes[0])
    copied = clone(estimator)
    seeds = {
        name: seed % 2**32
        for name in copied.get_params()
        if name.rpartition("__")[2] == "random_state"  # of a part of a pipeline too
    }
    return copied.set_params(**seeds).fit(vectors, classes)


def _class_columns(classifier: Any, vectors: np.ndarray, size: int) -> np.ndarray:
    """(n, size): each class's probability in its own column, 0 for those never seen; rows sum
    to 1.
    """
    probs = np.zeros((len(vectors), size))
    if isinstance(classifier, int):
        probs[:, classifier] = 1
        return probs
    seen = np.asarray(classifier.classes_, np.int64)
    predicted = classifier.predict_proba(vectors)
    probs[:, seen] = np.clip(predicted, 0, 1)
    totals = probs.sum(1, keepdims=True)
    return probs / np.maximum(totals, 1e-12)


def find_estimator(name: str, params: dict[str, Any]) -> Any:
    """An estimator by its place inside scikit-learn, "ensemble.RandomForestClassifier".

    Raises InputError where there is none, or it doesn't take the parameters.
    """
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(f"sklearn.{module}"), attribute)(**params)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"scikit-learn has no {name!r}: write it as 'ensemble.RandomForestClassifier'"
        ) from error
    except TypeError as error:
        raise InputError(f"{name}: {error}") from error


def estimator_path(estimator: Any) -> str:
    """Module and name of an estimator's class."""
    kind = type(estimator)
    return f"{kind.__module__}.{kind.__qualname__}"
