"""What one results folder has over another."""

from __future__ import annotations

from collections.abc import Sequence

from tailor.errors import InputError
from tailor_experiments.comparison import stats
from tailor_experiments.comparison.results import Results
from tailor_experiments.comparison.tables import INTERVALS, Table, interval, setup

#: columns of a row in which two experiments must agree, or their numbers say nothing about each
#: other
SAME = ("data", "task", "metric", "classes", "rarest_class")


def compare(a: Sequence[Results], b: Sequence[Results]) -> list[Table]:
    """B minus A for every contender that both have, paired by seed, where both have the same number
    of labels.

    Experiments are matched by name; where each has just one, these two.
    """
    if len(a) == len(b) == 1:
        pairs = [(a[0], b[0])]
    else:
        pairs = [(one, two) for one in a for two in b if one.name == two.name]
    return [table for one, two in pairs if (table := _table(one, two)) is not None]


def _table(one: Results, two: Results) -> Table | None:
    _check_same(one, two)
    labels = _labels_in_common(one, two)
    metrics = [m for m in one.metrics if m in two.metrics]
    rows = []
    for c in (c for c in one.contenders if c in two.rows):
        seeds = sorted(set(one.rows[c]) & set(two.rows[c]))
        if seeds:
            found = [
                stats.paired(two.at(labels, c, m, seeds), one.at(labels, c, m, seeds))
                for m in metrics
            ]
            rows.append((c, *(interval(d, m) for d, m in zip(found, metrics)), str(len(seeds))))
    if not rows:
        return None
    title = f"{two.name}, B minus A" if one.name == two.name else f"{two.name} minus {one.name}"
    ends = f"the most that both measured: A goes on to {one.total} labels, B to {two.total}; "
    note = f"{ends if one.total != two.total else ''}{INTERVALS}. A: {setup(one)} B: {setup(two)}"
    columns = ("", *map(one.label, metrics), "pairs")
    return Table(f"{title}, after {labels} labels", columns, tuple(rows), note)


def _check_same(one: Results, two: Results) -> None:
    """A column that older rows lack can't be checked."""
    for column in SAME:
        ours = one.first.get(column)
        theirs = two.first.get(column)
        if ours != theirs and None not in (ours, theirs):
            raise InputError(
                f"{one.name} (A) and {two.name} (B) can't be subtracted: "
                f"{column.replace('_', ' ')} is {ours!r} in A and {theirs!r} in B"
            )


def _labels_in_common(one: Results, two: Results) -> int:
    """The most labels at which all trials of both were measured."""
    ours = one.measured_at
    theirs = two.measured_at
    if not ours & theirs:
        raise InputError(
            f"{one.name} and {two.name} have no number of labels in common: A has {min(ours)} to "
            f"{max(ours)}, "
            f"B {min(theirs)} to {max(theirs)}: run one of them with the batch of the other"
        )
    return max(ours & theirs)
