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
        self._sign = 2 * truth.astype(np.float32) - 1
        # Half an example more of either kind: no class is impossible, and none certain.
        self._rates = (truth.sum(0) + 0.5) / (size + 1)
        self._draw_classes(classes, features)
        self._draw_noise(size, classes, features, shared)

    def _draw_classes(self, classes: int, features: int) -> None:
        """How hard each class is, and what features show of it."""
        # What the classes are like is no matter of the trial: the same in all of them.
        rng = np.random.default_rng(0)
        evenly_spaced = np.linspace(0, 1, classes)
        difficulty = rng.permutation(evenly_spaced)
        ease = 1 - self.hard * difficulty
        self._ease = ease.astype(np.float32)
        projection = rng.standard_normal((classes, features), np.float32)
        self._projection = projection / np.float32(classes**0.5)

    def _draw_noise(
        self,
        size: int,
        classes: int,
        features: int,
        shared: float,
    ) -> None:
        """What stays with each example. The order of the draws decides what a seed gives."""
        rng = np.random.default_rng(self.seed)
        common = rng.standard_normal((size, 1), np.float32)
        common *= np.float32(shared**0.5)
        noise = rng.standard_normal((size, classes), np.float32)
        noise *= np.float32((1 - shared) ** 0.5)
        noise += common
        self._noise = noise
        self._feature_noise = rng.standard_normal((size, features), np.float32)

    def fit(
        self,
        positions: np.ndarray,
        labels: np.ndarray,
        *,
        seed: int,
        progress: ProgressCallback = quiet,
    ) -> None:
        quality = np.interp(len(positions), self.span, [self.start, self.end])
        self.quality = float(quality)

    def predict(self, positions: np.ndarray, progress: ProgressCallback = quiet) -> Prediction:
        chosen: Any = positions
        if np.array_equal(positions, np.arange(len(self._sign))):
            chosen = slice(None)  # all of them, without a copy
        log_odds = self._log_odds(self._sign[chosen], self._noise[chosen])
        features = log_odds @ self._projection + self._feature_noise[chosen]
        probs = self._probs(log_odds)
        return Prediction(probs, features)

    def dropout(self, passes: int, *, seed: int) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(seed)
        for _ in range(passes):
            pass_noise = rng.standard_normal(self._noise.shape, np.float32)
            pass_noise *= np.float32(_PASS_NOISE)
            log_odds = self._log_odds(self._sign, self._noise + pass_noise)
            yield self._probs(log_odds)

    def _log_odds(self, sign: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """sign (n, K) of 1 and -1, noise (n, K) -> (n, K); in a multi-class task logits, of which
        the softmax is to be taken.
        """
        quality = np.float32(self.quality) * self._ease
        if isinstance(self.task, MultiClass):
            prior = np.log(self._rates)
        else:
            prior = np.log(self._rates / (1 - self._rates))
        seen = quality * sign + noise
        return 2 * quality * seen + prior.astype(np.float32)

    def _probs(self, log_odds: np.ndarray) -> np.ndarray:
        if not isinstance(self.task, MultiClass):
            return 1 / (1 + np.exp(-log_odds))
        # Less the largest, which changes nothing in a softmax and keeps exp() finite.
        largest = log_odds.max(1, keepdims=True)
        exponentials = np.exp(log_odds - largest)
        return exponentials / exponentials.sum(1, keepdims=True)

    def save(self, folder: Path) -> None:
        learned = {"quality": self.quality, "rates": self._rates.tolist()}
        path = folder / _FILE
        path.write_text(json.dumps(learned), encoding="utf-8")

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


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise InputError(f"{name} is {value}: it must lie in [0, 1]")


#: Models of experiments alone: they know the labels.
simulations: Registry[Model] = Registry(
    "simulated model",
    "tailor.simulations",
    {"simulated": "tailor_experiments.comparison.simulated:Simulated"},
)
