"""The demo: TAILOR and its rivals label the same few digits, each in a run of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tailor.run import config
from tailor.run.project import Project
from tailor.strategies import NARROW
from tailor_experiments.comparison.parallel import report, run_all
from tailor_experiments.metrics import balanced_accuracy, imbalance_ratio

FAMILIES = NARROW["multi-class"]
POOL = "digits.parquet"


@dataclass(frozen=True)
class DemoContender:
    """A way to choose examples: a selector over families."""

    label: str
    selector: str
    families: tuple[str, ...]

    @property
    def folder(self) -> str:
        return self.label.lower().replace(" ", "-")


CONTENDERS = (
    DemoContender("TAILOR", "tailor", tuple(FAMILIES)),
    DemoContender("random", "random-meta", ("random",)),
    *(DemoContender(f"{name} alone", "random-meta", (name,)) for name in FAMILIES),
    DemoContender("random meta", "random-meta", tuple(FAMILIES)),
    DemoContender("ALBL", "albl", tuple(FAMILIES)),
)


@dataclass(frozen=True)
class DemoSetting:
    classes: int = 4
    batch: int = 20
    rounds: int = 10
    seeds: int = 4


@dataclass(frozen=True)
class DemoRow:
    """The state of one trial when a model has been trained."""

    contender: str
    seed: int
    round: int
    labels: int
    accuracy: float  # balanced accuracy over the pool
    rarest: int  # labels in the class with fewest
    imbalance: float  # smallest class over largest, of the labels


def class_names(classes: int) -> list[str]:
    return [*(str(k) for k in range(classes - 1)), f"{classes - 1} to 9"]


def write_pool(out: Path, classes: int) -> None:
    """scikit-learn's digits as an imbalanced pool: classes 0 to K-2 are kept, the rest are merged
    into one.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from sklearn.datasets import load_digits

    digits = load_digits()
    names = class_names(classes)
    out.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {
            "id": [f"digit-{i:04d}" for i in range(len(digits.target))],
            "embedding": pa.array(
                (digits.data / 16).astype(np.float32).tolist(), pa.list_(pa.float32())
            ),
            "label": [names[min(t, classes - 1)] for t in digits.target],
        }
    )
    pq.write_table(table, out / POOL)


def trial(contender: DemoContender, seed: int, setting: DemoSetting, out: Path) -> list[DemoRow]:
    """One run from a random first batch to the last round. The same seed gives every contender the
    same first batch and the same initial weights, so that differences are paired.
    """
    folder = out / "runs" / f"{contender.folder}-{seed}"
    config.write(
        folder,
        {
            "task": {"classes": class_names(setting.classes)},
            "pool": {"path": f"../../{POOL}", "key": "id", "label": "label"},
            "model": {"head": "hidden", "device": "cpu"},
            "selection": {
                "families": list(contender.families),
                "selector": contender.selector,
                "batch": setting.batch,
                "rounds": setting.rounds,
                "holdout": 0.0,
                "seed": seed,
            },
        },
    )
    project = Project(folder)
    session = project.session()
    known = session.pool.labels() or {}
    truth = project.settings.task.encode([known[one] for one in session.pool.ids])
    rows: list[DemoRow] = []

    def measure(number: int, probs: np.ndarray) -> None:
        label_table = session.run_state.label_table
        accuracy = balanced_accuracy(truth, probs)
        collected = (int(label_table.counts.min()), imbalance_ratio(label_table.counts))
        rows.append(
            DemoRow(contender.label, seed, number, len(label_table.labelled), accuracy, *collected)
        )

    for number in range(setting.rounds + 1):
        asked = session.ask()
        if number:
            assert session.probs is not None
            measure(number - 1, session.probs)
        session.tell({one: known[one] for one in asked.ids}, by="demo")
    session.final_fit()
    measure(setting.rounds, session.predict(np.arange(len(truth)))[0])
    session.store.close()
    return rows


def _report_trial(contender: DemoContender, seed: int, setting: DemoSetting, out: Path) -> None:
    """In a worker."""
    report(trial(contender, seed, setting, out))


def run(setting: DemoSetting, workers: int, out: Path) -> Iterator[list[DemoRow]]:
    """The rows of every trial, each as it ends. Earlier runs of the demo in `out` are replaced."""
    if (out / "runs").exists():
        shutil.rmtree(out / "runs")
    write_pool(out, setting.classes)
    jobs = [
        (contender, seed, setting, out) for seed in range(setting.seeds) for contender in CONTENDERS
    ]
    yield from run_all(_report_trial, jobs, workers)
