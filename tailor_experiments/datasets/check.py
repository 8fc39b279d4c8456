"""Is this dataset the paper's? Sizes and ratios beside the paper's table, and a look at a sample of
the examples.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tailor.pools.base import Pool, Unreadable
from tailor_experiments.datasets.base import Dataset
from tailor_experiments.datasets.files import missing_files
from tailor_experiments.datasets.paper import PAPER, PaperSetting
from tailor_experiments.metrics import imbalance_ratio

#: what the paper's four decimals leave open
ROUNDING = 6e-5
#: examples that are read at a time
CHUNK = 64


@dataclass(frozen=True)
class Figure:
    """One figure of the dataset beside the paper's; ok is None where the paper has none."""

    name: str
    here: float
    paper: float | None
    ok: bool | None
    note: str = ""


@dataclass(frozen=True)
class Report:
    """A dataset beside the paper's.

    setting     the paper's row of it, where there is one
    sampled     how many examples were read
    unreadable  id -> why, of those
    missing     ids of files that are not there, of all examples
    aside       whole files that could not be opened, and why
    """

    setting: PaperSetting | None
    figures: list[Figure]
    sampled: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    aside: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        if self.unreadable or self.missing or self.aside:
            return False
        return all(figure.ok is not False for figure in self.figures)


def setting_for(base: str, classes: int) -> PaperSetting | None:
    """The paper's row for a loader's dataset: "voc", or with the number of classes, "cifar10-2"."""
    return PAPER.get(base) or PAPER.get(f"{base}-{classes}")


def check(dataset: Dataset, sample: int = 200) -> Report:
    """Compare with the paper; read `sample` examples, spread evenly over pool and test set."""
    setting = setting_for(dataset.name, dataset.task.size)
    sampled = 0
    unreadable: dict[str, str] = {}
    missing: list[str] = []
    set_aside: dict[str, str] = {}
    for pool in _pools(dataset):
        positions = _spread(len(pool), sample)
        sampled += len(positions)
        unreadable |= _unreadable(pool, positions)
        missing += missing_files(pool)
        set_aside |= pool.set_aside()
    return Report(
        setting,
        figures(dataset, setting),
        sampled,
        unreadable,
        missing,
        set_aside,
    )


def _pools(dataset: Dataset) -> list[Pool]:
    if dataset.test_pool is None:
        return [dataset.pool]
    return [dataset.pool, dataset.test_pool]


def figures(dataset: Dataset, setting: PaperSetting | None) -> list[Figure]:
    """K, N and the imbalance ratios. K and N must be the same; a ratio may differ by its rounding,
    and where the pool is a random part by two standard errors of the rarest class's count.
    """
    counts = dataset.labels.sum(0, dtype=np.int64)
    # The mean over classes of the share of examples that have it.
    rate = float(counts.sum() / dataset.labels.size)
    rows = [
        ("K, classes", float(dataset.task.size)),
        ("N, pool", float(len(dataset.pool))),
        ("class imbalance", imbalance_ratio(counts)),
    ]
    if dataset.task.kind == "multi-label":
        rows.append(("binary imbalance", rate))
    if setting is None:
        return [
            Figure(
                name,
                value,
                None,
                None,
            )
            for name, value in rows
        ]
    papers = (
        setting.classes,
        setting.pool,
        setting.class_imbalance,
        setting.binary_imbalance,
    )
    allowed = _allowed(setting, counts, rate)
    compared = []
    for (name, value), paper, slack in zip(rows, papers, allowed):
        figure = _compared(
            name,
            value,
            paper,
            slack,
            setting.drawn,
        )
        compared.append(figure)
    return compared


def _allowed(setting: PaperSetting, counts: np.ndarray, rate: float) -> tuple[float, ...]:
    """By how much K, N and the two ratios may differ from the paper's."""
    if not setting.drawn:
        return 0.0, 0.0, ROUNDING, ROUNDING
    # The relative error of a random count is one over its root; no class counts as less than one.
    rarest_count = max(1.0, float(counts.min()))
    spread = 1 / rarest_count**0.5
    return (
        0.0,
        0.0,
        ROUNDING + 2 * spread * setting.class_imbalance,
        ROUNDING + 0.02 * rate,
    )


def _compared(
    name: str,
    value: float,
    paper: float | None,
    slack: float,
    drawn: bool,
) -> Figure:
    """A value beside the paper's. drawn: the pool is a random part."""
    if paper is None:
        return Figure(
            name,
            value,
            None,
            None,
        )
    note = ""
    if drawn and slack:
        note = f"a random part: within {slack:.4f}"
    return Figure(
        name,
        value,
        float(paper),
        abs(value - paper) <= slack,
        note,
    )


def _spread(size: int, sample: int) -> list[int]:
    """So many positions of a pool, spread evenly over it."""
    count = min(sample, size)
    evenly = np.linspace(0, size - 1, count)
    return np.unique(evenly.astype(int)).tolist()


def _unreadable(pool: Pool, positions: list[int]) -> dict[str, str]:
    """id -> why, of the examples that can't be read."""
    reasons = {}
    # In chunks: a large sample of pictures does not fit into memory at once.
    for start in range(0, len(positions), CHUNK):
        chunk = positions[start : start + CHUNK]
        for position, example in zip(chunk, pool.read(chunk)):
            if isinstance(example, Unreadable):
                example_id = pool.ids[position]
                reasons[example_id] = example.reason
    return reasons
