"""The demo: TAILOR and its rivals label the same few digits, each in a run of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tailor.run import config
from tailor.run.project import Project
from tailor.strategies import NARROW
from tailor_experiments.comparison.experiment import Contender
from tailor_experiments.comparison.parallel import report, run_all
from tailor_experiments.datasets.digits import load_digits
from tailor_experiments.metrics import balanced_accuracy, imbalance_ratio

FAMILIES = NARROW["multi-class"]
POOL = "digits.parquet"


#: A new run's default, and what it is compared with: these begin at random, as the paper's do.
CONTENDERS = (
    Contender(
        "TAILOR",
        "auto",
        ("auto",),
        start="auto",
        cover=True,
        model={"prior_correction": "auto"},
    ),
    Contender("TAILOR, the paper's", "tailor", tuple(FAMILIES)),
    Contender("random", "random-meta", ("random",)),
    *(Contender(f"{name} alone", "random-meta", (name,)) for name in FAMILIES),
    Contender("random meta", "random-meta", tuple(FAMILIES)),
    Contender("ALBL", "albl", tuple(FAMILIES)),
)


@dataclass(frozen=True)
class DemoSetting:
    """How large the demo is: K, labels a round, rounds after the first batch, trials."""

    classes: int = 10
    batch: int = 10
    rounds: int = 12
    seeds: int = 4


@dataclass(frozen=True)
class DemoRow:
    """The state of one trial when a model has been trained.

    accuracy   balanced accuracy over the pool
    rarest     labels in the class with fewest
    imbalance  smallest class over largest, of the labels
    """

    contender: str
    seed: int
    round: int
    labels: int
    accuracy: float
    rarest: int
    imbalance: float


def class_names(classes: int) -> list[str]:
    """
    >>> class_names(3)
    ['0', '1', '2 to 9']
    """
    last = classes - 1
    names = [str(digit) for digit in range(last)]
    if last == 9:
        names.append("9")
    else:
        names.append(f"{last} to 9")
    return names


def write_pool(out: Path, classes: int) -> None:
    """scikit-learn's digits as an imbalanced pool: classes 0 to K-2 are kept, the rest are merged
    into one.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    pixels, digits = load_digits()
    names = class_names(classes)
    merged = np.minimum(digits, classes - 1)
    # Pixels run from 0 to 16.
    scaled = pixels / 16
    vectors = scaled.astype(np.float32)
    vector_type = pa.list_(pa.float32())
    columns = {
        "id": [f"digit-{place:04d}" for place in range(len(vectors))],
        "embedding": pa.array(vectors.tolist(), vector_type),
        "label": [names[class_index] for class_index in merged],
    }
    table = pa.table(columns)
    out.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, out / POOL)


def trial(contender: Contender, seed: int, setting: DemoSetting, out: Path) -> list[DemoRow]:
    """One run from the first batch to the last round -> a row for each training.

    The same seed gives every contender whose first batch is random the same one, so that
    differences are paired.
    """
    folder = out / "runs" / f"{contender.folder}-{seed}"
    settings = _settings(contender, seed, setting)
    config.write(folder, settings)
    project = Project(folder)
    session = project.session()
    known_labels = session.pool.labels() or {}
    answers = [known_labels[example_id] for example_id in session.pool.ids]
    truth = project.settings.task.encode(answers)
    rows: list[DemoRow] = []

    def measure(number: int, probs: np.ndarray) -> None:
        """Of the model trained after a round; probs (N, K)."""
        label_table = session.run_state.label_table
        row = DemoRow(
            contender.label,
            seed,
            number,
            labels=len(label_table.labelled),
            accuracy=balanced_accuracy(truth, probs),
            rarest=int(label_table.counts.min()),
            imbalance=imbalance_ratio(label_table.counts),
        )
        rows.append(row)

    for number in range(setting.rounds + 1):
        asked = session.ask()
        if number > 0:
            # To ask was to train on the rounds before.
            assert session.probs is not None
            measure(number - 1, session.probs)
        labels = {example_id: known_labels[example_id] for example_id in asked.ids}
        session.tell(labels, by="demo")
    session.final_fit()
    whole_pool = np.arange(len(truth))
    final_probs, _ = session.predict(whole_pool)
    measure(setting.rounds, final_probs)
    session.store.close()
    return rows


def _settings(contender: Contender, seed: int, setting: DemoSetting) -> dict[str, dict[str, Any]]:
    """The tailor.toml of a trial."""
    return {
        "task": {"classes": class_names(setting.classes)},
        "pool": {
            "path": f"../../{POOL}",
            "key": "id",
            "label": "label",
        },
        "model": {
            "prior_correction": "none",
            "device": "cpu",
            **contender.model,
        },
        "selection": {
            "strategies": list(contender.families),
            "selector": contender.selector,
            "start": contender.start,
            "cover": contender.cover,
            "batch": setting.batch,
            "rounds": setting.rounds,
            "holdout": 0.0,
            "seed": seed,
        },
    }


def _report_trial(contender: Contender, seed: int, setting: DemoSetting, out: Path) -> None:
    """In a worker."""
    rows = trial(
        contender,
        seed,
        setting,
        out,
    )
    report(rows)


def run(setting: DemoSetting, workers: int, out: Path) -> Iterator[list[DemoRow]]:
    """The rows of every trial, each as it ends. Earlier runs of the demo in `out` are replaced."""
    earlier_runs = out / "runs"
    if earlier_runs.exists():
        shutil.rmtree(earlier_runs)
    write_pool(out, setting.classes)
    jobs = []
    for seed in range(setting.seeds):
        for contender in CONTENDERS:
            job = (
                contender,
                seed,
                setting,
                out,
            )
            jobs.append(job)
    yield from run_all(_report_trial, jobs, workers)


def verdict(rows: Sequence[DemoRow], setting: DemoSetting) -> str:
    """What the figure shows, in sentences: the means over rounds, and labels to one accuracy."""
    areas = {}
    for contender in CONTENDERS:
        accuracies = []
        for row in rows:
            if row.contender == contender.label:
                accuracies.append(row.accuracy)
        areas[contender.label] = float(np.mean(accuracies))
    ours = CONTENDERS[0].label
    others = areas.copy()
    del others[ours]
    best_other = max(others, key=others.__getitem__)
    last = setting.rounds
    goal = _mean_accuracy(rows, "random", last)
    all_labels = (last + 1) * setting.batch
    needed = "does not reach"
    for number in range(last + 1):
        accuracy = _mean_accuracy(rows, ours, number)
        if accuracy >= goal:
            # Round 0 is the first batch, which has labels too.
            needed_labels = (number + 1) * setting.batch
            needed = f"reaches with {needed_labels}"
            break
    random_area = ""
    if best_other != "random":
        random_area = f", random {areas['random']:.3f}"
    return (
        f"Mean balanced accuracy over the rounds: {ours} {areas[ours]:.3f}, {best_other} (the best "
        f"of the others) {areas[best_other]:.3f}{random_area}. What random labelling reaches with "
        f"{all_labels} labels, {ours} {needed}. Seeds: {setting.seeds}, on small pictures of "
        "digits; your data will differ."
    )


def _mean_accuracy(rows: Sequence[DemoRow], contender: str, number: int) -> float:
    accuracies = []
    for row in rows:
        if row.contender == contender and row.round == number:
            accuracies.append(row.accuracy)
    return float(np.mean(accuracies))
