"""The demo: TAILOR and its rivals label the same few digits, each in a run of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.run import config
from tailor.run.project import Project
from tailor.strategies import NARROW
from tailor_experiments.comparison.experiment import Contender
from tailor_experiments.comparison.parallel import report, run_all
from tailor_experiments.datasets.digits import load_digits
from tailor_experiments.metrics import balanced_accuracy, imbalance_ratio

if TYPE_CHECKING:
    import pyarrow as pa

#: those of the paper's main experiments
FAMILIES = NARROW["multi-class"]
#: in the folder of the demo, which all of its runs share
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
    import pyarrow.parquet as pq

    out.mkdir(parents=True, exist_ok=True)
    pq.write_table(_digits_table(classes), out / POOL)


def _digits_table(classes: int) -> pa.Table:
    """Columns id, embedding and label, a row a digit."""
    import pyarrow as pa

    pixels, digits = load_digits()
    # Pixels run from 0 to 16.
    scaled = pixels / 16
    vectors = scaled.astype(np.float32)
    vector_type = pa.list_(pa.float32())
    names = class_names(classes)
    merged = np.minimum(digits, classes - 1)
    columns = {
        "id": [f"digit-{place:04d}" for place in range(len(vectors))],
        "embedding": pa.array(vectors.tolist(), vector_type),
        "label": [names[class_index] for class_index in merged],
    }
    return pa.table(columns)


def trial(
    contender: Contender,
    seed: int,
    setting: DemoSetting,
    out: Path,
) -> list[DemoRow]:
    """One run from the first batch to the last round -> a row for each training.

    The same seed gives every contender whose first batch is random the same one, so that
    differences are paired.
    """
    folder = out / "runs" / f"{contender.folder}-{seed}"
    config.write(folder, _settings(contender, seed, setting))
    project = Project(folder)
    demo_trial = _DemoTrial(project, contender.label, seed)
    return demo_trial.run(setting.rounds)


class _DemoTrial:
    """A run whose answers are known, and the rows of its trainings."""

    def __init__(self, project: Project, contender: str, seed: int) -> None:
        self.contender = contender
        self.seed = seed
        self.session = project.session()
        pool = self.session.pool
        self.known_labels = pool.labels() or {}
        answers = [self.known_labels[example_id] for example_id in pool.ids]
        self.truth = project.settings.task.encode(answers)
        self.rows: list[DemoRow] = []

    def run(self, rounds: int) -> list[DemoRow]:
        """All rounds after the first batch, one after the other -> the rows."""
        session = self.session
        for number in range(rounds + 1):
            asked = session.ask()
            if number > 0:
                # To ask was to train on the rounds before.
                assert session.probs is not None
                self._measure(number - 1, session.probs)
            labels = {example_id: self.known_labels[example_id] for example_id in asked.ids}
            session.tell(labels, by="demo")
        # The last round's labels are not asked after: they are trained on here.
        session.final_fit()
        whole_pool = np.arange(len(self.truth))
        probs, _ = session.predict(whole_pool)
        self._measure(rounds, probs)
        session.store.close()
        return self.rows

    def _measure(self, number: int, probs: np.ndarray) -> None:
        """Of the model trained after a round; probs (N, K)."""
        label_table = self.session.run_state.label_table
        row = DemoRow(
            self.contender,
            self.seed,
            number,
            labels=len(label_table.labelled),
            accuracy=balanced_accuracy(self.truth, probs),
            rarest=int(label_table.counts.min()),
            imbalance=imbalance_ratio(label_table.counts),
        )
        self.rows.append(row)


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
            # As the paper has it; a contender may have another.
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
            # Accuracy is measured on the whole pool, whose labels are known.
            "holdout": 0.0,
            "seed": seed,
        },
    }


def _report_trial(
    contender: Contender,
    seed: int,
    setting: DemoSetting,
    out: Path,
) -> None:
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
    # A run that is there would be gone on with, and have its rows already.
    earlier_runs = out / "runs"
    if earlier_runs.exists():
        shutil.rmtree(earlier_runs)
    write_pool(out, setting.classes)
    yield from run_all(_report_trial, list(_jobs(setting, out)), workers)


def _jobs(setting: DemoSetting, out: Path) -> Iterator[tuple[Contender, int, DemoSetting, Path]]:
    """What _report_trial() is called with, all contenders of a seed before the next seed."""
    for seed in range(setting.seeds):
        for contender in CONTENDERS:
            yield contender, seed, setting, out


def verdict(rows: Sequence[DemoRow], setting: DemoSetting) -> str:
    """What the figure shows, in sentences: the means over rounds, and labels to one accuracy."""
    areas = _areas(rows)
    ours = CONTENDERS[0].label
    # The first contender is the one that the demo is about.
    others = [label for label in areas if label != ours]
    best_other = max(others, key=areas.__getitem__)
    random_area = ""
    if best_other != "random":
        random_area = f", random {areas['random']:.3f}"
    all_labels = (setting.rounds + 1) * setting.batch
    needed = _labels_needed(rows, setting, ours)
    return (
        f"Mean balanced accuracy over the rounds: {ours} {areas[ours]:.3f}, {best_other} (the best "
        f"of the others) {areas[best_other]:.3f}{random_area}. What random labelling reaches with "
        f"{all_labels} labels, {ours} {needed}. Seeds: {setting.seeds}, on small pictures of "
        "digits; your data will differ."
    )


def _areas(rows: Sequence[DemoRow]) -> dict[str, float]:
    """contender -> its mean accuracy over all rounds and seeds"""
    areas = {}
    for contender in CONTENDERS:
        label = contender.label
        accuracies = [row.accuracy for row in rows if row.contender == label]
        areas[label] = float(np.mean(accuracies))
    return areas


def _labels_needed(rows: Sequence[DemoRow], setting: DemoSetting, contender: str) -> str:
    """With how many labels a contender is as good as random in the end, as part of a sentence."""
    goal = _mean_accuracy(rows, "random", setting.rounds)
    for number in range(setting.rounds + 1):
        if _mean_accuracy(rows, contender, number) >= goal:
            # Round 0 is the first batch, which has labels too.
            labels = (number + 1) * setting.batch
            return f"reaches with {labels}"
    return "does not reach"


def _mean_accuracy(rows: Sequence[DemoRow], contender: str, number: int) -> float:
    accuracies = []
    for row in rows:
        if row.contender == contender and row.round == number:
            accuracies.append(row.accuracy)
    return float(np.mean(accuracies))
