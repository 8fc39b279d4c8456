"""What one results folder has over another."""

from __future__ import annotations

from collections.abc import Sequence

from tailor.errors import InputError
from tailor_experiments.comparison import stats
from tailor_experiments.comparison.report_tables import setup
from tailor_experiments.comparison.results import Results
from tailor_experiments.comparison.table_format import INTERVALS, Table, interval

#: columns of a row in which two experiments must agree, or their numbers say nothing about each
#: other
MUST_AGREE = ("data", "task", "metric", "classes", "rarest_class")


def compare(a: Sequence[Results], b: Sequence[Results]) -> list[Table]:
    """B minus A for every contender that both have, paired by seed, where both have the same number
    of labels.

    Experiments are matched by name; where each has just one, these two. Raises InputError where
    two of them measured different things.
    """
    if len(a) == len(b) == 1:
        pairs = [(a[0], b[0])]
    else:
        pairs = [
            (results_a, results_b)
            for results_a in a
            for results_b in b
            if results_a.name == results_b.name
        ]
    tables = [_difference_table(results_a, results_b) for results_a, results_b in pairs]
    return [table for table in tables if table is not None]


def _difference_table(a: Results, b: Results) -> Table | None:
    _check_comparable(a, b)
    labels = _labels_in_common(a, b)
    metrics = [metric for metric in a.metrics if metric in b.metrics]
    rows = []
    for contender in a.contenders:
        seeds = sorted(set(a.rows[contender]) & set(b.rows.get(contender, {})))
        if not seeds:
            continue
        cells = []
        for metric in metrics:
            values_a = a.values_at(labels, contender, metric, seeds)
            values_b = b.values_at(labels, contender, metric, seeds)
            cells.append(interval(stats.paired(values_b, values_a), metric))
        rows.append((contender, *cells, str(len(seeds))))
    if not rows:
        return None
    title = f"{b.name}, B minus A" if a.name == b.name else f"{b.name} minus {a.name}"
    note = f"{INTERVALS}. A: {setup(a)} B: {setup(b)}"
    if a.total_labels != b.total_labels:
        note = (
            f"the most that both measured: A goes on to {a.total_labels} labels, B to "
            f"{b.total_labels}; {note}"
        )
    columns = ("", *(a.metric_label(metric) for metric in metrics), "pairs")
    return Table(
        f"{title}, after {labels} labels",
        columns,
        tuple(rows),
        note,
    )


def _check_comparable(a: Results, b: Results) -> None:
    for column in MUST_AGREE:
        value_a = a.first_row.get(column)
        value_b = b.first_row.get(column)
        # Older rows lack a column, which can't be checked then.
        if value_a != value_b and None not in (value_a, value_b):
            raise InputError(
                f"{a.name} (A) and {b.name} (B) can't be subtracted: "
                f"{column.replace('_', ' ')} is {value_a!r} in A and {value_b!r} in B"
            )


def _labels_in_common(a: Results, b: Results) -> int:
    """The most labels at which all trials of both were measured."""
    common = a.measured_at & b.measured_at
    if not common:
        raise InputError(
            f"{a.name} and {b.name} have no number of labels in common: A has "
            f"{min(a.measured_at)} to {max(a.measured_at)}, B {min(b.measured_at)} to "
            f"{max(b.measured_at)}: run one of them with the batch of the other"
        )
    return max(common)
