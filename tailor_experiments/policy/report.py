"""The learned family's results as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailor_experiments.comparison.stats import Difference, paired
from tailor_experiments.comparison.table_format import Table, interval, with_error
from tailor_experiments.policy.judging import LEARNED, Judgement

METRIC = "score"


def result_tables(judgements: Sequence[Judgement]) -> list[Table]:
    """For each kind of task: every pool's scores, and the learned family less the best rule."""
    tables = []
    for kind in sorted({judgement.kind for judgement in judgements}):
        of_kind = [judgement for judgement in judgements if judgement.kind == kind]
        tables.append(_table(kind, of_kind))
    return tables


def _table(kind: str, judgements: Sequence[Judgement]) -> Table:
    families = list(judgements[0].scores)
    rows = []
    for judgement in judgements:
        cells = [with_error(judgement.scores[family], METRIC) for family in families]
        rule = best_rule(judgement)
        gap = interval(difference(judgement, rule), METRIC)
        rows.append((judgement.pool, *cells, f"{gap} ({rule})"))
    trials = len(judgements[0].scores[LEARNED])
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


def best_rule(judgement: Judgement) -> str:
    """The plain rule of the largest mean score."""
    rules = [family for family in judgement.scores if family != LEARNED]
    return max(rules, key=lambda rule: float(judgement.scores[rule].mean()))


def difference(judgement: Judgement, rule: str) -> Difference:
    """The learned family's scores less a rule's."""
    return paired(judgement.scores[LEARNED], judgement.scores[rule])


def verdict(judgements: Sequence[Judgement]) -> str:
    """On how many pools the learned family is ahead of random, and of the best rule, on average."""
    ahead_of_random = 0
    ahead_of_best = 0
    for judgement in judgements:
        learned = judgement.scores[LEARNED].mean()
        ahead_of_random += int(learned > judgement.scores["random"].mean())
        ahead_of_best += int(learned > judgement.scores[best_rule(judgement)].mean())
    gaps = [difference(judgement, best_rule(judgement)).mean for judgement in judgements]
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
        lines.append("| " + " | ".join(table.columns) + " |")
        lines.append("|" + "---|" * len(table.columns))
        for row in table.rows:
            lines.append("| " + " | ".join(row) + " |")
        lines += ["", table.note]
    return "\n".join(lines) + "\n"
