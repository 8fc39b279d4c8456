"""What is measured of a round's model in the background, and kept until the next one is."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tailor.common.atomic_files import write_atomically
from tailor.insight.label_doubt import label_doubt
from tailor.run.array_codec import pack, unpack
from tailor.task import MultiClass, Task

log = logging.getLogger(__name__)

#: in a run's folder
FILE_NAME = "model-facts.npz"
#: labels times classes that are cross-fitted, at most: of more labels a random part is
MOST_CELLS = 10_000_000
#: labels that cross-fitting needs, at least
FEWEST_LABELS = 10


@dataclass(frozen=True)
class CrossFit:
    """Labels that were judged by a model which had not learned them.

    positions  (m,) int64
    labels     (m, K) bool: as they were then
    doubt      (m,) float32: the probability that the label is another one
    says       (m,) int32: the class that the model says (multi-class), or whose yes or no it doubts
               most
    certainty  (m,) float32: how probable that class is, as the model sees it
    """

    positions: np.ndarray
    labels: np.ndarray
    doubt: np.ndarray
    says: np.ndarray
    certainty: np.ndarray


@dataclass(frozen=True)
class ModelFacts:
    """Of the model of round `round`, which was trained when there were `answers` answers.

    holdout        (h,) int64: positions that were asked to measure the model, answered or not
    holdout_probs  (h, K) float16: what it says of them
    expected       (K,) float64: how many of what has no label are of each class, as the model sees
                   it; None where the pool is too large to add up
    cross_fit      None where the model has no features to fit anew, or there are too few labels
    """

    classes: tuple[str, ...]
    round: int
    answers: int
    holdout: np.ndarray
    holdout_probs: np.ndarray
    expected: np.ndarray | None
    cross_fit: CrossFit | None

    def save(self, folder: Path) -> None:
        """Write FILE_NAME, whole or not at all."""
        header = {
            "classes": list(self.classes),
            "round": self.round,
            "answers": self.answers,
        }
        arrays = {
            "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
            "holdout": self.holdout,
            "holdout_probs": self.holdout_probs,
        }
        if self.expected is not None:
            arrays["expected"] = self.expected
        if self.cross_fit is not None:
            arrays["judged"] = self.cross_fit.positions
            arrays["judged_labels"] = np.packbits(self.cross_fit.labels, axis=1)
            arrays["doubt"] = self.cross_fit.doubt
            arrays["says"] = self.cross_fit.says
            arrays["certainty"] = self.cross_fit.certainty
        write_atomically(folder / FILE_NAME, pack(arrays))

    @classmethod
    def load(cls, folder: Path) -> ModelFacts | None:
        """What save() wrote; None where there is nothing, or nothing that can be read: it is
        measured again with the next round.
        """
        path = folder / FILE_NAME
        if not path.exists():
            return None
        try:
            return cls._read(unpack(path.read_bytes()))
        except Exception as error:
            log.warning("%s can't be read, and is measured anew: %r", FILE_NAME, error)
            return None

    @classmethod
    def _read(cls, arrays: dict[str, np.ndarray]) -> ModelFacts:
        header: dict[str, Any] = json.loads(arrays["header"].tobytes())
        classes = tuple(header["classes"])
        cross_fit = None
        if "judged" in arrays:
            bits = np.unpackbits(arrays["judged_labels"], axis=1, count=len(classes))
            cross_fit = CrossFit(
                positions=arrays["judged"],
                labels=bits.astype(bool),
                doubt=arrays["doubt"],
                says=arrays["says"],
                certainty=arrays["certainty"],
            )
        return cls(
            classes=classes,
            round=int(header["round"]),
            answers=int(header["answers"]),
            holdout=arrays["holdout"],
            holdout_probs=arrays["holdout_probs"],
            expected=arrays.get("expected"),
            cross_fit=cross_fit,
        )


def cross_fit(
    task: Task,
    positions: np.ndarray,
    labels: np.ndarray,
    features: Any,
    seed: int,
) -> CrossFit | None:
    """Judge labels (m, K) at positions (m,); None where there are too few.

    features: positions (n,) -> standardised features (n, d) that no label has changed
    """
    from tailor.models.cross_fitting import cross_fit_linear

    most = max(FEWEST_LABELS, MOST_CELLS // task.size)
    if len(positions) > most:
        order = np.random.default_rng(seed).permutation(len(positions))
        part = np.sort(order[:most])
        positions = positions[part]
        labels = labels[part]
    if len(positions) < FEWEST_LABELS:
        return None
    import torch

    standardised = np.ascontiguousarray(features(positions), np.float32)
    probs = cross_fit_linear(
        task,
        torch.from_numpy(standardised),
        labels,
        seed=seed,
    )
    is_labelled = labels > 0.5
    says = says_instead(task, is_labelled, probs)
    rows = np.arange(len(says))
    return CrossFit(
        positions=positions,
        labels=is_labelled,
        doubt=label_doubt(task, labels, probs).astype(np.float32),
        says=says,
        certainty=probs[rows, says].astype(np.float32),
    )


def says_instead(task: Task, labels: np.ndarray, probs: np.ndarray) -> np.ndarray:
    """(n,) int32: what a model says of labels (n, K) bool with probs (n, K): its class
    (multi-class), or the class whose yes or no it doubts most.
    """
    if isinstance(task, MultiClass):
        classes = probs.argmax(1)
    else:
        against = np.where(labels, 1 - probs, probs)
        classes = against.argmax(1)
    return classes.astype(np.int32)
