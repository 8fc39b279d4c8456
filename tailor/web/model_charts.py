"""The model's figures as pictures: all that a template needs to draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np

from tailor.insight.holdout_report import HoldoutReport, ReliabilityBin

#: side of the reliability figure's box, and the margin for what is written on the axes
SIDE = 200.0
MARGIN = 28.0
#: classes that a whole matrix is drawn for; of more, the most frequent confusions are listed
LARGEST_MATRIX = 12
MOST_CONFUSIONS = 15


@dataclass(frozen=True)
class ReliabilityPoint:
    """A group of predictions: a dot at what was said and what came true, with its interval."""

    x: float
    y: float
    top: float
    bottom: float
    is_enough: bool
    text: str


def reliability_points(bins: Sequence[ReliabilityBin]) -> list[ReliabilityPoint]:
    points = []
    for each in bins:
        right = each.right
        text = (
            f"said with about {each.probability:.0%}: {right.count} of {right.n} were right, "
            f"{right.share:.0%} ({right.lower:.0%} to {right.upper:.0%})"
        )
        point = ReliabilityPoint(
            x=_across(each.probability),
            y=_up(right.share),
            top=_up(right.upper),
            bottom=_up(right.lower),
            is_enough=right.is_enough,
            text=text,
        )
        points.append(point)
    return points


def _across(share: float) -> float:
    width = SIDE - MARGIN - 8
    return round(MARGIN + width * share, 1)


def _up(share: float) -> float:
    height = SIDE - MARGIN - 8
    return round(8 + height * (1 - share), 1)


@dataclass(frozen=True)
class MatrixCell:
    """Examples with one label of which the model says one class."""

    count: int
    strength: int  # percent of the row, for its colour
    is_right: bool
    url: str
    text: str


@dataclass(frozen=True)
class MatrixRow:
    name: str
    total: int
    cells: tuple[MatrixCell, ...]


def confusion_rows(names: Sequence[str], report: HoldoutReport) -> list[MatrixRow]:
    """The whole matrix; empty where there are too many classes for one, or none (multi-label)."""
    if report.confusion is None or len(names) > LARGEST_MATRIX:
        return []
    rows = []
    for label, counts in zip(names, report.confusion):
        total = int(counts.sum())
        cells = []
        for says, count in zip(names, counts.tolist()):
            cells.append(_cell(label, says, count, total))
        rows.append(MatrixRow(label, total, tuple(cells)))
    return rows


def confusions(names: Sequence[str], report: HoldoutReport) -> list[MatrixCell]:
    """The most frequent confusions, where there are too many classes for a matrix."""
    if report.confusion is None or len(names) <= LARGEST_MATRIX:
        return []
    wrong = report.confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_CONFUSIONS]
    cells = []
    for label, says in zip(*np.unravel_index(order, wrong.shape)):
        count = int(wrong[label, says])
        if count:
            total = int(report.confusion[label].sum())
            cells.append(_cell(names[label], names[says], count, total))
    return cells


def _cell(label: str, says: str, count: int, total: int) -> MatrixCell:
    query = {"klass": label, "model_says": says, "holdout": "true"}
    strength = 0
    if total:
        strength = round(100 * count / total)
    return MatrixCell(
        count=count,
        strength=strength,
        is_right=label == says,
        url="/review?" + urlencode(query),
        text=f"{count} of {total} labelled {label}: the model says {says}",
    )
