"""How well wrong labels are found: planted ones, ranked by what a model says that never saw them.

    python benchmarks/mislabels.py FEATURES... [--labels N] [--trials T] [--share S] [--out FILE]

FEATURES are folders as `benchmarks/embed.py` writes them. In each trial N examples get their label,
a share of them (5% unless told) another one, drawn evenly from the others; then every label is
doubted in several ways, and each way's average precision over the planted ones is a row of FILE:

cross-fit     what Review shows: one minus the probability of the label, by heads of other folds
asked         the same by the model when the label was asked for: trained on all batches before it,
              a tenth of the labels each, of which the first is left out
learned       the same by a head that has learned the label: what not to do
cleanlab ...  cleanlab's scores of the cross-fitted probabilities, where it is installed
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tailor.insight.label_doubt import label_doubt
from tailor.insight.ranking import average_precision
from tailor.models import cross_fitting
from tailor.models.convex import shrinkage
from tailor.models.cross_fitting import cross_fit_linear
from tailor.models.linear_cross_validation import principal_components
from tailor.task import MultiClass

#: batches that the labels of "asked" come in
BATCHES = 10
#: of the heads of "asked" and "learned"
LOGIT_VARIANCE = 3.0


def read_features(folder: Path) -> tuple[np.ndarray, np.ndarray, int]:
    """(standardised features (N, d) float32, classes (N,), K)."""
    with np.load(folder / "train.npz") as arrays:
        features = arrays["x"].astype(np.float32) * arrays["scale"]
        numbers = arrays["y"]
        classes = len(arrays["classes"])
    deviation = features.std(0)
    deviation[deviation == 0] = 1
    return (features - features.mean(0)) / deviation, numbers, classes


def plant(
    truth: np.ndarray, classes: int, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(labels (n,) of which some are wrong, (n,) bool: which)."""
    count = len(truth)
    wrong = rng.permutation(count)[: round(share * count)]
    labels = truth.copy()
    steps = rng.integers(1, classes, len(wrong))
    labels[wrong] = (truth[wrong] + steps) % classes
    is_wrong = np.zeros(count, bool)
    is_wrong[wrong] = True
    return labels, is_wrong


def head_probabilities(
    features: torch.Tensor, targets: np.ndarray, is_seen: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """(m, K) at rows (m,), by one head that saw is_seen (n,) bool."""
    task = MultiClass(targets.shape[1])
    components = principal_components(features, cross_fitting.LARGEST_WIDTH)
    with_bias = torch.cat([components, torch.ones(len(components), 1)], 1)
    (head,) = cross_fitting.solve_heads(
        task,
        with_bias,
        targets,
        is_seen[None],
        lambda terms: shrinkage(features.shape[1], terms, LOGIT_VARIANCE),
    )
    return (with_bias[torch.from_numpy(rows)] @ head).softmax(1).numpy()


def trial(
    features: np.ndarray,
    truth: np.ndarray,
    classes: int,
    share: float,
    seed: int,
) -> dict[str, Any]:
    """The average precision of each way, and how good the cross-fitted heads are."""
    rng = np.random.default_rng(seed)
    labels, is_wrong = plant(truth, classes, share, rng)
    task = MultiClass(classes)
    targets = np.eye(classes)[labels]
    rows = torch.from_numpy(features)
    started = time.perf_counter()
    probs = cross_fit_linear(task, rows, targets, seed=seed)
    seconds = time.perf_counter() - started
    doubt = label_doubt(task, targets, probs)
    scores = {"cross-fit": average_precision(is_wrong, doubt)}
    everything = np.arange(len(labels))
    learned = head_probabilities(rows, targets, np.ones(len(labels), bool), everything)
    scores["learned"] = average_precision(is_wrong, label_doubt(task, targets, learned))
    scores["asked"] = asked(rows, targets, is_wrong)
    scores |= cleanlab_scores(labels, probs, is_wrong)
    return {
        "average_precision": {name: round(value, 4) for name, value in scores.items()},
        "accuracy": round(float((probs.argmax(1) == truth).mean()), 4),
        "seconds": round(seconds, 2),
    }


def asked(features: torch.Tensor, targets: np.ndarray, is_wrong: np.ndarray) -> float:
    """By the model when each label was asked for; the examples are in random order already."""
    count = len(targets)
    batch_of = np.arange(count) * BATCHES // count
    doubt = np.zeros(count)
    for batch in range(1, BATCHES):
        rows = np.flatnonzero(batch_of == batch)
        probs = head_probabilities(features, targets, batch_of < batch, rows)
        doubt[rows] = label_doubt(MultiClass(targets.shape[1]), targets[rows], probs)
    later = batch_of > 0
    return average_precision(is_wrong[later], doubt[later])


def cleanlab_scores(
    labels: np.ndarray, probs: np.ndarray, is_wrong: np.ndarray
) -> dict[str, float]:
    try:
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        return {}
    exact = probs.astype(np.float64)
    exact /= exact.sum(1, keepdims=True)
    scores = {}
    for method in ("self_confidence", "normalized_margin", "confidence_weighted_entropy"):
        for is_adjusted in (False, True):
            if method == "confidence_weighted_entropy" and is_adjusted:
                continue
            quality = get_label_quality_scores(
                labels, exact, method=method, adjust_pred_probs=is_adjusted
            )
            name = f"cleanlab {method}" + (", adjusted" if is_adjusted else "")
            scores[name] = average_precision(is_wrong, -quality)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", type=Path, nargs="+")
    parser.add_argument("--labels", type=int, default=2000)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for folder in options.features:
        features, truth, classes = read_features(folder)
        for seed in range(options.trials):
            rng = np.random.default_rng((seed, 1))
            rows = rng.permutation(len(truth))[: options.labels]
            outcome = trial(features[rows], truth[rows], classes, options.share, seed)
            row = {
                "data": folder.name,
                "labels": len(rows),
                "classes": classes,
                "share": options.share,
                "seed": seed,
            } | outcome
            print(json.dumps(row), flush=True)
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
