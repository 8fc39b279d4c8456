"""The learned family's results as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailor_experiments.comparison.stats import Difference, paired
from tailor_experiments.comparison.table_format import Table, interval, with_error
from tailor_experiments.policy.judging import LEARNED, PoolJudgement

METRIC = "score"


def result_tables(judgements: Sequence[PoolJudgement]) -> list[Table]:
    """For each kind of task: every pool's scores, and the learned family less the best rule."""
    by_kind: dict[str, list[PoolJudgement]] = {}
    for judgement in judgements:
        of_kind = by_kind.setdefault(judgement.kind, [])
        of_kind.append(judgement)
    tables = []
    for kind in sorted(by_kind):
        table = _table(kind, by_kind[kind])
        tables.append(table)
    return tables


def _table(kind: str, judgements: Sequence[PoolJudgement]) -> Table:
    """One row for each pool; all were judged with the same families."""
    first = judgements[0]
    families = list(first.scores)
    rows = [_row(judgement, families) for judgement in judgements]
    trials = len(first.scores[LEARNED])
    return Table(
        title=f"{kind}: the learned family on pools that its weights never saw",
        columns=("pool", *families, "learned less the best rule"),
        rows=tuple(rows),
        note=(
            f"mean test score over all rounds, {trials} trials ± standard error; the difference is "
            "paired by trial, with its 95% interval, * where 0 lies outside; the best rule is "
            "chosen by the same trials, which favours it"
        ),
    )


def _row(judgement: PoolJudgement, families: Sequence[str]) -> tuple[str, ...]:
    """The pool, the score of each family, and the learned one's less the best rule's."""
    cells = [judgement.pool]
    for family in families:
        scores = judgement.scores[family]
        cells.append(with_error(scores, METRIC))
    rule = best_rule(judgement)
    gap = interval(difference(judgement, rule), METRIC)
    cells.append(f"{gap} ({rule})")
    return tuple(cells)


def best_rule(judgement: PoolJudgement) -> str:
    """The plain rule of the largest mean score."""
    means = {}
    for family, scores in judgement.scores.items():
        if family != LEARNED:
            means[family] = float(scores.mean())
    return max(means, key=means.__getitem__)


def difference(judgement: PoolJudgement, rule: str) -> Difference:
    """The learned family's scores less a rule's."""
    return paired(judgement.scores[LEARNED], judgement.scores[rule])


def verdict(judgements: Sequence[PoolJudgement]) -> str:
    """On how many pools the learned family is ahead of random, and of the best rule, on average."""
    ahead_of_random = 0
    ahead_of_best = 0
    gaps = []
    for judgement in judgements:
        rule = best_rule(judgement)
        scores = judgement.scores
        learned = scores[LEARNED].mean()
        ahead_of_random += int(learned > scores["random"].mean())
        ahead_of_best += int(learned > scores[rule].mean())
        gap = difference(judgement, rule)
        gaps.append(gap.mean)
    return (
        f"On pools that it never saw, learned is ahead of random on {ahead_of_random} of "
        f"{len(judgements)}, and of the best of its plain rules on {ahead_of_best}, by "
        f"{np.mean(gaps):+.4f} on average."
    )


def as_markdown(tables: Sequence[Table], facts: Sequence[str]) -> str:
    """The report as a page."""
    lines = ["# The learned family on pools that it never saw", ""]
    lines += facts
    for table in tables:
        lines += ["", f"## {table.title}", ""]
        lines += _table_lines(table)
        lines += ["", table.note]
    return "\n".join(lines) + "\n"


def _table_lines(table: Table) -> list[str]:
    lines = [_line(table.columns)]
    lines.append("|" + "---|" * len(table.columns))
    for row in table.rows:
        lines.append(_line(row))
    return lines


def _line(cells: Sequence[str]) -> str:
    joined = " | ".join(cells)
    return f"| {joined} |"
