"""How a probe's correction, temperature and regularisation are chosen, on training pools alone.

    python benchmarks/prior_correction.py run DATA CACHE OUT.jsonl [SETTING...]
    python benchmarks/prior_correction.py table OUT.jsonl
    python benchmarks/prior_correction.py figure DATA CACHE OUT.png

DATA holds a folder for each dataset with its train.parquet; no test file is opened. CACHE keeps
EfficientNet-Lite0's features. Of each training set one half is the pool that labels are drawn from,
at random or by margin (with today's model, so that all variants see the same labels); the other
half judges. Long-tailed settings thin out the pool, never the judging half.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from tailor.models import Model, make_model
from tailor.models.backbones import make_backbone
from tailor.pools.arrays import Arrays
from tailor.pools.parquet import ParquetPool
from tailor.task import MultiClass, MultiLabel, Task
from tailor_experiments.metrics import balanced_accuracy, mean_average_precision

#: pictures that features are computed of, at most
MOST_PICTURES = {"caltech101": 6941, "cifar10": 6000, "stanford_cars": 3000}
#: setting -> (dataset, column of labels, how the pool is thinned out: largest over smallest class)
SETTINGS = {
    "caltech101": ("caltech101", "label", 1),
    "cifar10": ("cifar10", "label", 1),
    "cifar10, 50:1": ("cifar10", "label", 50),
    "cifar10, one class": ("cifar10", "label", 0),
    "cars' 196 classes": ("stanford_cars", "car_class", 1),
    "cars' ten labels": ("stanford_cars", "labels", 1),
    "scene": ("scene", "labels", 1),
}
LABELS = (20, 50, 100, 300, 1000)
SEEDS = (0, 1)
VARIANTS: dict[str, dict[str, Any]] = {
    "none": {"prior_correction": "none"},
    "tau 0.5": {"prior_correction": 0.5},
    "tau 1": {"prior_correction": 1.0},
    "auto": {"prior_correction": "auto"},
    "auto, variance auto": {"prior_correction": "auto", "logit_variance": "auto"},
}
#: of these a multi-label task knows
MULTI_LABEL_VARIANTS = ("none", "auto", "auto, variance auto")
#: columns of the table
SHOWN_VARIANTS = ("none", "tau 1", "auto", "auto, variance auto")
BINS = 15


@dataclass(frozen=True)
class Split:
    """Features of a training set and its labels, in two halves.

    judging  rows that judge; free: rows that may be labelled
    """

    task: Task
    features: np.ndarray  # (n, d)
    labels: np.ndarray  # (n, K)
    free: np.ndarray
    judging: np.ndarray


def read_features(data: Path, cache: Path, dataset: str) -> dict[str, np.ndarray]:
    """Arrays by name: "f" (n, d), and the columns of labels."""
    path = data / dataset / "train.parquet"
    if dataset == "scene":
        table = pq.read_table(path, columns=["features", "labels"])
        features = np.array(table["features"].to_pylist(), np.float32)
        return {"f": features, "labels": _indicators(table["labels"].to_pylist())}
    kept = cache / f"{dataset}.npz"
    if not kept.exists():
        _compute_features(path, kept, MOST_PICTURES[dataset])
    with np.load(kept) as arrays:
        return dict(arrays)


def _compute_features(path: Path, out: Path, most: int) -> None:
    names = pq.ParquetFile(path).schema_arrow.names
    pool = ParquetPool(path, column="img" if "img" in names else "image")
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(pool))[:most])
    backbone = make_backbone("efficientnet-lite0", pool, "cpu")
    parts = []
    for start in range(0, len(rows), 64):
        pictures = pool.read(rows[start : start + 64])
        parts.append(backbone.embed(pictures).astype(np.float16))
    columns = [name for name in ("label", "labels", "car_class") if name in names]
    table = pq.read_table(path, columns=columns)
    arrays = {}
    for name in columns:
        values = table[name].to_pylist()
        arrays[name] = (_indicators(values) if name == "labels" else np.array(values))[rows]
    out.parent.mkdir(parents=True, exist_ok=True)
    np.savez(out, f=np.concatenate(parts), **arrays)


def _indicators(lists: list[list[int]]) -> np.ndarray:
    size = 1 + max(max(classes) for classes in lists if classes)
    labels = np.zeros((len(lists), size))
    for row, classes in enumerate(lists):
        labels[row, classes] = 1
    return labels


def split_setting(setting: str, data: Path, cache: Path, seed: int) -> Split:
    dataset, column, ratio = SETTINGS[setting]
    arrays = read_features(data, cache, dataset)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(arrays["f"]))
    free, judging = np.array_split(order, 2)
    task: Task
    if column == "labels":
        labels = arrays[column]
        task = MultiLabel(labels.shape[1])
    else:
        classes = arrays[column]
        if ratio == 0:
            classes = np.minimum(classes, 1)
        task = MultiClass(int(classes.max()) + 1)
        labels = np.eye(task.size)[classes]
        if ratio > 1:
            free = _long_tail(free, classes, task.size, ratio, rng)
    return Split(task, arrays["f"].astype(np.float32), labels, free, judging)


def _long_tail(
    rows: np.ndarray,
    classes: np.ndarray,
    size: int,
    ratio: float,
    rng: np.random.Generator,
) -> np.ndarray:
    largest = np.bincount(classes[rows], minlength=size).min()
    kept = []
    for rank, klass in enumerate(rng.permutation(size)):
        count = max(5, int(largest * ratio ** (-rank / (size - 1))))
        kept.append(rows[classes[rows] == klass][:count])
    return rng.permutation(np.concatenate(kept))


def trained_probe(split: Split, labelled: np.ndarray, options: dict[str, Any]) -> Model:
    """A probe that knows the pool's half alone: what judges is not even standardised with."""
    pool = Arrays(split.features)
    model = make_model("probe", split.task, pool, device="cpu", **options)
    model.run_positions = np.sort(split.free)
    model.fit(labelled, split.labels[labelled], seed=0)
    return model


def label_sets(split: Split, way: str, seed: int) -> Iterator[np.ndarray]:
    """Growing sets of labelled rows, one for each number in LABELS that the pool has room for."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(split.free)
    labelled = order[: LABELS[0]]
    for count in LABELS:
        if count > 0.7 * len(order):
            return
        if way == "random":
            labelled = order[:count]
        elif count > len(labelled):
            labelled = _add_by_margin(split, order, labelled, count)
        yield labelled


def _add_by_margin(
    split: Split,
    order: np.ndarray,
    labelled: np.ndarray,
    count: int,
) -> np.ndarray:
    while len(labelled) < count:
        model = trained_probe(split, labelled, {})
        unlabelled = order[~np.isin(order, labelled)]
        probs = model.predict(unlabelled).probs
        if isinstance(split.task, MultiClass):
            ranked = np.sort(probs, 1)
            unsure = ranked[:, -2] - ranked[:, -1]
        else:
            unsure = -np.abs(probs - 0.5).min(1)
        batch = min(count - len(labelled), max(20, len(labelled) // 2))
        labelled = np.concatenate([labelled, unlabelled[np.argsort(-unsure)[:batch]]])
    return labelled


def judge(task: Task, labels: np.ndarray, probs: np.ndarray) -> dict[str, float]:
    """Of labels (n, K) and probabilities (n, K): accuracies, log losses, calibration errors."""
    probs = probs.astype(np.float64).clip(1e-7, 1 - 1e-7)
    if not isinstance(task, MultiClass):
        log_loss = -np.where(labels > 0, np.log(probs), np.log1p(-probs)).mean()
        flat = np.full(probs.size, 1 / probs.size)
        return {
            "score": mean_average_precision(labels, probs),
            "accuracy": float(((probs > 0.5) == labels).mean()),
            "log_loss": float(log_loss),
            "calibration": calibration_error(probs.ravel(), labels.ravel(), flat),
        }
    classes = labels.argmax(1)
    counts = labels.sum(0)
    balanced = 1 / (np.count_nonzero(counts) * counts[classes])
    plain = np.full(len(labels), 1 / len(labels))
    losses = -np.log(probs[np.arange(len(probs)), classes])
    is_right = (probs.argmax(1) == classes).astype(np.float64)
    confidence = probs.max(1)
    return {
        "score": balanced_accuracy(labels, probs),
        "accuracy": float(is_right.mean()),
        "log_loss": float(losses @ balanced),
        "plain_log_loss": float(losses @ plain),
        "calibration": calibration_error(confidence, is_right, balanced),
        "plain_calibration": calibration_error(confidence, is_right, plain),
    }


def calibration_error(confidence: np.ndarray, is_right: np.ndarray, weights: np.ndarray) -> float:
    """Expected calibration error over BINS bins of equal width."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights * (confidence - is_right), minlength=BINS)
    return float(np.abs(gaps).sum())


def run(data: Path, cache: Path, out: Path, settings: list[str]) -> None:
    for setting in settings:
        for seed in SEEDS:
            split = split_setting(setting, data, cache, seed)
            for way in ("random", "margin"):
                for labelled in label_sets(split, way, seed):
                    rows = list(measure(split, labelled))
                    with out.open("a") as file:
                        for row in rows:
                            where = {"setting": setting, "way": way, "seed": seed}
                            file.write(json.dumps({**where, **row}) + "\n")


def measure(split: Split, labelled: np.ndarray) -> Iterator[dict[str, Any]]:
    """One row for each variant trained on the same labels."""
    is_multi_class = isinstance(split.task, MultiClass)
    for variant in VARIANTS if is_multi_class else MULTI_LABEL_VARIANTS:
        model = trained_probe(split, labelled, VARIANTS[variant])
        probs = model.predict(split.judging).probs
        figures = judge(split.task, split.labels[split.judging], probs)
        rounded = {name: round(value, 5) for name, value in figures.items()}
        correction = model.describe()["correction"]
        yield {"labels": len(labelled), "variant": variant, **rounded, "chosen": correction}


def print_table(out: Path) -> None:
    """Means over seeds and numbers of labels; in each cell one number for each variant."""
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["setting"], row["way"]].append(row)
    figures = ("score", "accuracy", "log_loss", "plain_log_loss", "calibration")
    print("| setting | labels |", " | ".join(figures), "|")
    print("|---|---|" + "---|" * len(figures))
    for (setting, way), of_group in groups.items():
        cells = []
        for figure in figures:
            means = []
            for variant in SHOWN_VARIANTS:
                values = [
                    row[figure] for row in of_group if row["variant"] == variant and figure in row
                ]
                if values:
                    means.append(f"{np.mean(values):.3f}".removeprefix("0"))
            cells.append(" / ".join(means))
        print(f"| {setting} | {way} |", " | ".join(cells), "|")


def draw_figure(data: Path, cache: Path, out: Path) -> None:
    """Reliability on the judging half, before and after: 300 labels drawn by margin."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = ("caltech101", "cifar10, 50:1", "cars' ten labels")
    figure, axes = plt.subplots(1, len(shown), figsize=(10, 3.6), sharey=True)
    for axis, setting in zip(axes, shown):
        split = split_setting(setting, data, cache, 0)
        labelled = next(rows for rows in label_sets(split, "margin", 0) if len(rows) == 300)
        axis.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for name, variant in (("before", "none"), ("after", "auto")):
            centres, shares = _reliability(split, labelled, VARIANTS[variant])
            axis.plot(centres, shares, marker="o", markersize=3, label=name)
        axis.set_title(setting, fontsize=10)
        axis.set_xlabel("probability that the model states")
    axes[0].set_ylabel("share that is right")
    axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(out, dpi=110)


def _reliability(
    split: Split,
    labelled: np.ndarray,
    options: dict[str, Any],
) -> tuple[np.ndarray, np.ndarray]:
    """(mean probability, share right) of each bin that holds anything, classes counting the
    same.
    """
    model = trained_probe(split, labelled, options)
    probs = model.predict(split.judging).probs.astype(np.float64)
    labels = split.labels[split.judging]
    if isinstance(split.task, MultiClass):
        counts = labels.sum(0)
        weights = 1 / counts[labels.argmax(1)]
        stated = probs.max(1)
        is_right = (probs.argmax(1) == labels.argmax(1)).astype(float)
    else:
        stated = probs.ravel()
        is_right = labels.ravel()
        weights = np.ones(len(stated))
    bins = np.minimum((stated * BINS).astype(int), BINS - 1)
    totals = np.bincount(bins, weights, minlength=BINS)
    has_any = np.bincount(bins, minlength=BINS) >= 20
    centres = np.bincount(bins, weights * stated, minlength=BINS)[has_any] / totals[has_any]
    shares = np.bincount(bins, weights * is_right, minlength=BINS)[has_any] / totals[has_any]
    return centres, shares


def main() -> None:
    command, *places = sys.argv[1:]
    if command == "run":
        data, cache, out = map(Path, places[:3])
        run(data, cache, out, places[3:] or list(SETTINGS))
    elif command == "figure":
        data, cache, out = map(Path, places)
        draw_figure(data, cache, out)
    else:
        print_table(Path(places[0]))


if __name__ == "__main__":
    main()
