"""Other packages for active learning, run as their documentation shows.

    PYTHON benchmarks/peer_learners.py versions
    PYTHON benchmarks/peer_learners.py run FOLDER PEER --batch B --rounds R --seed S [--random]

benchmarks/peers_labels.py calls it, with an interpreter that has the packages. It needs NumPy,
scikit-learn and the packages, and nothing of TAILOR. What was used of each, and why:

scikit-activeml  `UncertaintySampling()` (least confident, its default) and
                 `SklearnClassifier(LogisticRegression())` on the features as they are, begun
                 without a label. So does its tutorial "Active Image Classification via
                 Self-supervised Learning", and its "Getting Started" has the same pair. The package
                 names no default strategy. BADGE with a small network, which its README shows too,
                 needs skorch and torch, and is not run.
small-text       `BreakingTies()` and `ConfidenceEnhancedLinearSVC()` by way of
                 `SklearnClassifierFactory` and `PoolBasedActiveLearner`: the classifier of its
                 example without a network, and the strategy of its multi-class examples. That
                 example has rows of unit length, so they are here. Predictions are those of the
                 classifier within: the package's own number the classes that have a label, and are
                 wrong while one has none.
ASReview         ELAS u4, its default: `Max` (the likeliest first), a linear SVM, `Balanced`
                 weights, trained again after every label. For binary tasks alone; class 0 is what
                 is relevant. Its feature extractors read texts, so its parts are given features,
                 with `skip_feature_extraction`; rows of unit length, which TF-IDF has and which its
                 models on embeddings ask for. As in its simulations, records are read in the order
                 of the file, here random, until there is one of each class.
                 It is made to rank, and tells nobody which records are relevant: its SVM, with
                 weights of ten to one, calls nearly all of them that. What it is good at stands in
                 the table's last column.
"""

from __future__ import annotations

import argparse
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

RESULT = "result.npz"


@dataclass(frozen=True)
class Trial:
    """What a peer is given.

    pool     (N, d) float32; test: (t, d) float32
    answers  (N,) int64: the class that an annotator names when asked
    order    (N,) int64: the positions in the trial's random order
    """

    pool: np.ndarray
    test: np.ndarray
    answers: np.ndarray
    order: np.ndarray
    classes: int
    batch: int
    rounds: int
    seed: int


class Peer(ABC):
    """A package: its query strategy with its classifier.

    step  examples that it asks for before it is trained again; None: the trial's batch
    """

    package: str
    step: int | None = None

    def __init__(self, trial: Trial) -> None:
        self.trial = trial

    @abstractmethod
    def fit(self, labelled: np.ndarray) -> None:
        """Train on positions (n,), which are of two classes at least."""

    @abstractmethod
    def ask(self, labelled: np.ndarray, size: int) -> np.ndarray:
        """(size,) positions to label next; it was trained on `labelled` (n,)."""

    @abstractmethod
    def predict(self) -> np.ndarray:
        """(t,) classes of the test set."""


class ScikitActiveML(Peer):
    package = "scikit-activeml"

    def __init__(self, trial: Trial) -> None:
        from skactiveml.classifier import SklearnClassifier
        from skactiveml.pool import UncertaintySampling
        from skactiveml.utils import MISSING_LABEL
        from sklearn.linear_model import LogisticRegression

        super().__init__(trial)
        self.classifier = SklearnClassifier(
            LogisticRegression(),
            classes=np.arange(trial.classes),
            random_state=trial.seed,
        )
        self.strategy = UncertaintySampling(random_state=trial.seed)
        self.told = np.full(len(trial.pool), MISSING_LABEL)

    def fit(self, labelled: np.ndarray) -> None:
        self.told[labelled] = self.trial.answers[labelled]
        self.classifier.fit(self.trial.pool, self.told)

    def ask(self, labelled: np.ndarray, size: int) -> np.ndarray:
        # The classifier is trained on these labels already; training it again changes nothing.
        return self.strategy.query(
            X=self.trial.pool,
            y=self.told,
            clf=self.classifier,
            fit_clf=False,
            batch_size=size,
        )

    def predict(self) -> np.ndarray:
        return self.classifier.predict(self.trial.test)


class SmallText(Peer):
    package = "small-text"

    def __init__(self, trial: Trial) -> None:
        from small_text import (
            ConfidenceEnhancedLinearSVC,
            SklearnClassifierFactory,
            SklearnDataset,
        )

        super().__init__(trial)
        # It draws from NumPy's global generator.
        np.random.seed(trial.seed)  # noqa: NPY002
        self.pool = SklearnDataset(
            unit_rows(trial.pool),
            trial.answers,
            target_labels=np.arange(trial.classes),
        )
        self.test = unit_rows(trial.test)
        self.factory = SklearnClassifierFactory(ConfidenceEnhancedLinearSVC(), trial.classes)
        self.learner: Any = None

    def fit(self, labelled: np.ndarray) -> None:
        from small_text import BreakingTies, PoolBasedActiveLearner

        # A new learner with all labels is trained as update() with the latest ones trains it.
        self.learner = PoolBasedActiveLearner(self.factory, BreakingTies(), self.pool)
        self.learner.initialize_data(labelled, self.trial.answers[labelled])

    def ask(self, labelled: np.ndarray, size: int) -> np.ndarray:
        return self.learner.query(num_samples=size)

    def predict(self) -> np.ndarray:
        return self.learner.classifier.model.predict(self.test)


class ASReview(Peer):
    package = "asreview"
    step = 1

    def __init__(self, trial: Trial) -> None:
        if trial.classes != 2:
            raise SystemExit(f"ASReview screens for one class; this task has {trial.classes}")
        super().__init__(trial)
        self.pool = unit_rows(trial.pool)
        self.test = unit_rows(trial.test)
        self.is_relevant = (trial.answers == 0).astype(np.int64)
        self.cycle = self.default_cycle()

    def default_cycle(self) -> Any:
        """An ActiveLearningCycle of ELAS u4's parts, without its feature extractor."""
        from asreview.learner import ActiveLearningCycle
        from asreview.models.models import get_ai_config

        # LinearSVC draws from NumPy's global generator.
        np.random.seed(self.trial.seed)  # noqa: NPY002
        parts = get_ai_config()["value"]
        return ActiveLearningCycle.from_meta(parts, skip_feature_extraction=True)

    def fit(self, labelled: np.ndarray) -> None:
        self.cycle.fit(self.pool[labelled], self.is_relevant[labelled])

    def ask(self, labelled: np.ndarray, size: int) -> np.ndarray:
        all_positions = np.arange(len(self.pool))
        free = np.setdiff1d(all_positions, labelled)
        ranking = self.cycle.rank(self.pool[free])
        return free[ranking[:size]]

    def predict(self) -> np.ndarray:
        relevant = self.cycle.classifier.predict(self.test)
        return np.where(relevant == 1, 0, 1)


PEERS: dict[str, type[Peer]] = {
    "scikit-activeml": ScikitActiveML,
    "small-text": SmallText,
    "ASReview": ASReview,
}


def unit_rows(features: np.ndarray) -> np.ndarray:
    """features (n, d), each row of length 1; a row of zeros stays."""
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    return features / lengths


def run_trial(
    peer: Peer,
    trial: Trial,
    *,
    at_random: bool = False,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """After each round: (positions labelled so far, in sequence; (t,) predicted classes).

    The first batch is random, and so are further ones until two classes have a label: no
    classifier can be trained before.

    at_random  whether all labels are random: what the peer's classifier makes of those
    """
    labelled = np.empty(0, np.int64)
    for number in range(trial.rounds):
        wanted = (number + 1) * trial.batch
        while len(labelled) < wanted:
            size = wanted - len(labelled)
            if peer.step is not None and not at_random:
                size = min(size, peer.step)
            if at_random or not _is_trainable(trial, labelled):
                is_free = np.isin(trial.order, labelled, invert=True)
                picks = trial.order[is_free][:size]
            else:
                picks = peer.ask(labelled, size)
            labelled = np.concatenate([labelled, picks])
            if _is_trainable(trial, labelled):
                peer.fit(labelled)
        if _is_trainable(trial, labelled):
            predicted = peer.predict()
        else:
            only_class = trial.answers[labelled[0]]
            predicted = np.full(len(trial.test), only_class)
        yield labelled, predicted


def _is_trainable(trial: Trial, labelled: np.ndarray) -> bool:
    return len(np.unique(trial.answers[labelled])) > 1


def versions() -> dict[str, str | None]:
    """Peer -> the version that is installed; None where it is not."""
    installed: dict[str, str | None] = {}
    for name, peer in PEERS.items():
        try:
            installed[name] = version(peer.package)
        except PackageNotFoundError:
            installed[name] = None
    return installed


def read_trial(folder: Path, options: argparse.Namespace) -> Trial:
    answers = np.load(folder / "answers.npy")
    return Trial(
        pool=np.load(folder / "pool.npy"),
        test=np.load(folder / "test.npy"),
        answers=answers,
        order=np.load(folder / "order.npy"),
        classes=int(answers.max()) + 1,
        batch=options.batch,
        rounds=options.rounds,
        seed=options.seed,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("versions")
    run = commands.add_parser("run")
    run.add_argument("folder", type=Path)
    run.add_argument("peer", choices=PEERS)
    run.add_argument("--batch", type=int, required=True)
    run.add_argument("--rounds", type=int, required=True)
    run.add_argument("--seed", type=int, required=True)
    run.add_argument("--random", action="store_true")
    options = parser.parse_args()
    if options.command == "versions":
        print(json.dumps(versions()))
        return
    # That LogisticRegression stops after 100 steps is how the peer is used.
    warnings.filterwarnings("ignore", module="sklearn")
    trial = read_trial(options.folder, options)
    peer = PEERS[options.peer](trial)
    rounds = list(run_trial(peer, trial, at_random=options.random))
    last_labelled, _ = rounds[-1]
    np.savez(
        options.folder / RESULT,
        labelled=last_labelled,
        predicted=np.stack([predicted for _, predicted in rounds]).astype(np.int64),
    )


if __name__ == "__main__":
    main()
