"""A model that is not trained: predictions drawn around the known labels, better every round."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.models.base import Model, Prediction, ProgressCallback, quiet
from tailor.pools.base import Pool
from tailor.registry import Registry
from tailor.task import MultiClass, Task

_FILE = "simulated.json"
#: how much noise a pass with "dropout" adds, in the units of `Simulated`'s own
_PASS_NOISE = 0.5


class Simulated(Model):
    """What a model would say that sees every label through Gaussian noise: for comparing selectors,
    and nothing else.

    Of class k it sees z = a (2y - 1) + e, with e a standard normal that stays with the example, and
    it knows how frequent the class is. The best it can say is the log odds 2 a z + log(rate / (1 -
    rate)), or in a multi-class task the softmax of 2 a z + log(rate): so it is calibrated whatever
    the quality a. That grows linearly with the number of labels, whichever they are: all contenders
    get the same predictions, however they choose.

    truth       (N, K) the known labels
    span        numbers of labels at which the quality is `start` and `end`
    start, end  0.5 ranks a positive above a negative 76% of the time, 1.5 98%
    hard        the hardest class has a quality of 1 - hard times the easiest one's
    shared      the part of the noise's variance that all classes of an example have in common: some
                are odd
    features    how many: a random projection of the log odds, plus noise
    seed        of the noise
    """

    can_dropout = True

    def __init__(
        self,
        task: Task,
        pool: Pool,
        truth: np.ndarray,
        *,
        span: tuple[int, int],
        start: float = 0.5,
        end: float = 1.5,
        hard: float = 0.5,
        shared: float = 0.2,
        features: int = 32,
        seed: int = 0,
    ) -> None:
        # The truth is in the order of the pool.
        super().__init__(task, pool)
        if start < 0 or end < 0:
            raise InputError(f"start is {start} and end is {end}: a quality is at least 0")
        _check_share("hard", hard)
        _check_share("shared", shared)
        if features < 1:
            raise InputError(f"features is {features}: at least 1 is needed")
        self.span = span
        self.start = start
        self.end = end
        self.hard = hard
        self.seed = seed
        self.quality = start
        size, classes = truth.shape
        doubled = 2 * truth.astype(np.float32)
        self._sign = doubled - 1
        # Half an example more of either kind: no class is impossible, and none certain.
        positives = truth.sum(0) + 0.5
        self._rates = positives / (size + 1)
        self._draw_classes(classes, features)
        self._draw_noise(
            size,
            classes,
            features,
            shared,
        )

    def _draw_classes(self, classes: int, features: int) -> None:
        """How hard each class is, and what features show of it."""
        # What the classes are like is no matter of the trial: the same in all of them.
        rng = np.random.default_rng(0)
        evenly_spaced = np.linspace(0, 1, classes)
        difficulty = rng.permutation(evenly_spaced)
        lost = self.hard * difficulty
        ease = 1 - lost
        self._ease = ease.astype(np.float32)
        projection = _normal(rng, classes, features)
        # So that a feature has the same variance, however many classes there are.
        self._projection = projection / _root(classes)

    def _draw_noise(
        self,
        size: int,
        classes: int,
        features: int,
        shared: float,
    ) -> None:
        """What stays with each example. The order of the draws decides what a seed gives."""
        rng = np.random.default_rng(self.seed)
        # Both parts add up to a variance of 1.
        common = _normal(rng, size, 1)
        common *= _root(shared)
        noise = _normal(rng, size, classes)
        noise *= _root(1 - shared)
        noise += common
        self._noise = noise
        self._feature_noise = _normal(rng, size, features)

    def fit(
        self,
        positions: np.ndarray,
        labels: np.ndarray,
        *,
        seed: int,
        progress: ProgressCallback = quiet,
    ) -> None:
        quality = np.interp(len(positions), self.span, [self.start, self.end])
        # Which examples have labels makes no difference, only how many.
        self.quality = float(quality)

    def predict(self, positions: np.ndarray, progress: ProgressCallback = quiet) -> Prediction:
        chosen: Any = positions
        size = len(self._sign)
        everything = np.arange(size)
        if np.array_equal(positions, everything):
            chosen = slice(None)  # all of them, without a copy
        log_odds = self._log_odds(self._sign[chosen], self._noise[chosen])
        projected = log_odds @ self._projection
        return Prediction(
            probs=self._probs(log_odds), features=projected + self._feature_noise[chosen]
        )

    def dropout(self, passes: int, *, seed: int) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(seed)
        for _ in range(passes):
            # A new noise in each pass, on top of the one that stays with the example.
            pass_noise = _normal(rng, *self._noise.shape)
            pass_noise *= np.float32(_PASS_NOISE)
            log_odds = self._log_odds(self._sign, self._noise + pass_noise)
            yield self._probs(log_odds)

    def _log_odds(self, sign: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """sign (n, K) of 1 and -1, noise (n, K) -> (n, K); in a multi-class task logits, of which
        the softmax is to be taken.
        """
        quality = np.float32(self.quality) * self._ease
        shown = quality * sign
        seen = shown + noise
        evidence = 2 * quality * seen
        return evidence + self._log_prior()

    def _log_prior(self) -> np.ndarray:
        """(K,) float32: what is known of each class before an example is seen."""
        odds = self._rates
        # Classes that exclude each other share one normalisation, which a softmax brings.
        if not isinstance(self.task, MultiClass):
            odds = odds / (1 - odds)
        return np.log(odds).astype(np.float32)

    def _probs(self, log_odds: np.ndarray) -> np.ndarray:
        if isinstance(self.task, MultiClass):
            return _softmax(log_odds)
        odds_against = np.exp(-log_odds)
        return 1 / (1 + odds_against)

    def save(self, folder: Path) -> None:
        learned = {
            "quality": self.quality,
            "rates": self._rates.tolist(),
        }
        text = json.dumps(learned)
        path = folder / _FILE
        path.write_text(text, encoding="utf-8")

    def load(self, folder: Path) -> None:
        path = folder / _FILE
        learned = json.loads(path.read_text(encoding="utf-8"))
        self.quality = learned["quality"]
        self._rates = np.array(learned["rates"])

    def describe(self) -> dict[str, Any]:
        return {
            "model": "simulated",
            "start": self.start,
            "end": self.end,
            "hard": self.hard,
            "seed": self.seed,
            "features": self._projection.shape[1],
        }


def _softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities (n, K) from logits (n, K)."""
    # Less the largest, which changes nothing in a softmax and keeps exp() finite.
    largest = logits.max(1, keepdims=True)
    exponentials = np.exp(logits - largest)
    totals = exponentials.sum(1, keepdims=True)
    shares: np.ndarray = exponentials / totals
    return shares


def _normal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """(rows, columns) float32 standard normal numbers."""
    shape = (rows, columns)
    return rng.standard_normal(shape, np.float32)


def _root(variance: float) -> np.float32:
    """The deviation that goes with a variance."""
    deviation = variance**0.5
    return np.float32(deviation)


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise InputError(f"{name} is {value}: it must lie in [0, 1]")


#: Models of experiments alone: they know the labels.
simulations: Registry[Model] = Registry(
    "simulated model",
    "tailor.simulations",
    {"simulated": "tailor_experiments.comparison.simulated:Simulated"},
)
