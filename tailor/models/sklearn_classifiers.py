"""scikit-learn's classifiers as one: probabilities of all classes of a task, from vectors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.task import MultiClass, Task

#: classifiers that give probabilities and need no parameter. A run from elsewhere may name these
#: without being trusted.
CLASSIFIERS = frozenset(
    {
        "calibration.CalibratedClassifierCV",
        "discriminant_analysis.LinearDiscriminantAnalysis",
        "discriminant_analysis.QuadraticDiscriminantAnalysis",
        "dummy.DummyClassifier",
        "ensemble.AdaBoostClassifier",
        "ensemble.BaggingClassifier",
        "ensemble.ExtraTreesClassifier",
        "ensemble.GradientBoostingClassifier",
        "ensemble.HistGradientBoostingClassifier",
        "ensemble.RandomForestClassifier",
        "gaussian_process.GaussianProcessClassifier",
        "linear_model.LogisticRegression",
        "linear_model.LogisticRegressionCV",
        "naive_bayes.BernoulliNB",
        "naive_bayes.CategoricalNB",
        "naive_bayes.ComplementNB",
        "naive_bayes.GaussianNB",
        "naive_bayes.MultinomialNB",
        "neighbors.KNeighborsClassifier",
        "neighbors.NearestCentroid",
        "neighbors.RadiusNeighborsClassifier",
        "neural_network.MLPClassifier",
        "semi_supervised.LabelPropagation",
        "semi_supervised.LabelSpreading",
        "tree.DecisionTreeClassifier",
        "tree.ExtraTreeClassifier",
    }
)
#: a module, or several below each other, and a class: none of them private
_PUBLIC_NAME = re.compile(r"([a-z][a-z0-9_]*\.)+[A-Z][A-Za-z0-9]*")
#: modules of scikit-learn that have no classifiers to use
_NOT_FOR_USE = frozenset({"conftest", "datasets", "externals", "tests"})


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
    """A classifier by its place inside scikit-learn, "ensemble.RandomForestClassifier".

    Only a class of scikit-learn's is ever called, no function. Raises InputError where there is
    none of that name, or it doesn't take the parameters.
    """
    classifier = _classifier_class(name)
    try:
        return classifier(**params)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: {error}") from error


def _classifier_class(name: str) -> Any:
    """The class of this name. Raises InputError where scikit-learn has no classifier there."""
    from sklearn.base import ClassifierMixin

    module_name, _, class_name = name.rpartition(".")
    explained = InputError(
        f"scikit-learn has no classifier {name!r}: write it as 'ensemble.RandomForestClassifier'"
    )
    # Before anything is imported: some of its modules download, or belong to its own tests.
    if not _PUBLIC_NAME.fullmatch(name) or _NOT_FOR_USE.intersection(module_name.split(".")):
        raise explained
    try:
        module = import_module(f"sklearn.{module_name}")
        classifier = getattr(module, class_name)
    except (ImportError, AttributeError) as error:
        raise explained from error
    if not isinstance(classifier, type) or not issubclass(classifier, ClassifierMixin):
        raise explained
    return classifier


def estimator_path(estimator: Any) -> str:
    """Module and name of an estimator's class."""
    kind = type(estimator)
    return f"{kind.__module__}.{kind.__qualname__}"
