"""What one results folder has over another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from tailor.errors import InputError
from tailor_experiments.comparison import stats
from tailor_experiments.comparison.report_tables import setup
from tailor_experiments.comparison.results import Results
from tailor_experiments.comparison.table_format import INTERVALS, Table, interval

#: columns of a row in which two experiments must agree, or their numbers say nothing about each
#: other
MUST_AGREE = (
    "data",
    "task",
    "metric",
    "classes",
    "rarest_class",
)


def compare(a: Sequence[Results], b: Sequence[Results]) -> list[Table]:
    """B minus A for every contender that both have, paired by seed, where both have the same number
    of labels.

    Experiments are matched by name; where each has just one, these two. Raises InputError where
    two of them measured different things.
    """
    tables = []
    for results_a, results_b in _matched(a, b):
        table = _difference_table(results_a, results_b)
        if table is not None:
            tables.append(table)
    return tables


def _matched(a: Sequence[Results], b: Sequence[Results]) -> Iterator[tuple[Results, Results]]:
    """Experiments of one name; the only two there are, whatever their names."""
    # A variant often has a name of its own, and is still meant to be compared.
    is_only_pair = len(a) == len(b) == 1
    for results_a, results_b in product(a, b):
        if is_only_pair or results_a.name == results_b.name:
            yield results_a, results_b


def _difference_table(a: Results, b: Results) -> Table | None:
    """None where they have no trial of one contender and seed in common."""
    _check_comparable(a, b)
    labels = _labels_in_common(a, b)
    metrics = [metric for metric in a.metrics if metric in b.metrics]
    rows = []
    for contender in a.contenders:
        seeds = _seeds_in_common(a, b, contender)
        if seeds:
            cells = [
                _cell(
                    a,
                    b,
                    labels,
                    contender,
                    metric,
                    seeds,
                )
                for metric in metrics
            ]
            rows.append((contender, *cells, str(len(seeds))))
    if not rows:
        return None
    headings = [a.metric_label(metric) for metric in metrics]
    return Table(
        f"{_title(a, b)}, after {labels} labels",
        ("", *headings, "pairs"),
        tuple(rows),
        _note(a, b),
    )


def _seeds_in_common(a: Results, b: Results, contender: str) -> list[int]:
    """Seeds of a contender of A that B has too."""
    seeds_a = a.rows[contender].keys()
    seeds_b = b.rows.get(contender, {}).keys()
    return sorted(seeds_a & seeds_b)


def _cell(
    a: Results,
    b: Results,
    labels: int,
    contender: str,
    metric: str,
    seeds: Sequence[int],
) -> str:
    """B minus A of one contender's metric, paired by seed."""
    values_a = a.values_at(
        labels,
        contender,
        metric,
        seeds,
    )
    values_b = b.values_at(
        labels,
        contender,
        metric,
        seeds,
    )
    difference = stats.paired(values_b, values_a)
    return interval(difference, metric)


def _title(a: Results, b: Results) -> str:
    if a.name == b.name:
        return f"{b.name}, B minus A"
    return f"{b.name} minus {a.name}"


def _note(a: Results, b: Results) -> str:
    note = f"{INTERVALS}. A: {setup(a)} B: {setup(b)}"
    if a.total_labels == b.total_labels:
        return note
    return (
        f"the most that both measured: A goes on to {a.total_labels} labels, B to "
        f"{b.total_labels}; {note}"
    )


def _check_comparable(a: Results, b: Results) -> None:
    for column in MUST_AGREE:
        value_a = a.first_row.get(column)
        value_b = b.first_row.get(column)
        # Older rows lack a column, which can't be checked then.
        if value_a is None or value_b is None:
            continue
        if value_a != value_b:
            raise InputError(
                f"{a.name} (A) and {b.name} (B) can't be subtracted: "
                f"{column.replace('_', ' ')} is {value_a!r} in A and {value_b!r} in B"
            )


def _labels_in_common(a: Results, b: Results) -> int:
    """The most labels at which all trials of both were measured."""
    # The most, since differences in the end are what counts.
    common = a.measured_at & b.measured_at
    if common:
        return max(common)
    range_a = f"{min(a.measured_at)} to {max(a.measured_at)}"
    range_b = f"{min(b.measured_at)} to {max(b.measured_at)}"
    raise InputError(
        f"{a.name} and {b.name} have no number of labels in common: A has {range_a}, "
        f"B {range_b}: run one of them with the batch of the other"
    )
