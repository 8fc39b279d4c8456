"""The tables of a report, as texts: for the terminal and for the page alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailor_experiments.comparison import stats
from tailor_experiments.comparison.results import METRICS, Results
from tailor_experiments.comparison.stats import Difference

WHOLE = ("rarest", "positives")
INTERVALS = (
    "mean [95% interval by Student's t], * where 0 lies outside, not corrected for the "
    "number of comparisons"
)


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def number(value: float, metric: str, sign: bool = False) -> str:
    if np.isnan(value):
        return "–"
    return f"{value:{'+' if sign else ''}.{1 if metric in WHOLE else 4}f}"


def with_error(values: np.ndarray, metric: str) -> str:
    found = stats.mean_error(values)
    return f"{number(found.mean, metric)} ± {number(found.error, metric)}"


def interval(found: Difference, metric: str) -> str:
    star = " *" if found.clear else ""
    low = number(found.low, metric, True)
    high = number(found.high, metric, True)
    return f"{number(found.mean, metric, True)} [{low}, {high}]{star}"


def final(results: Results) -> Table:
    """Every metric after the last round, and the area under the main curve."""
    metrics = results.metrics
    rows = []
    for c in results.contenders:
        cells = [with_error(results.last(c, m), m) for m in metrics]
        rows.append(
            (
                c,
                *cells,
                with_error(results.areas(c, results.main), "score"),
                str(len(results.rows[c])),
            )
        )
    columns = ("", *map(results.label, metrics), "area under curve", "trials")
    title = f"{results.name}: after {results.total} labels"
    note = f"mean ± standard error. {setup(results)}"
    return Table(title, columns, tuple(rows), note)


def setup(results: Results) -> str:
    """What was run, what is left out, and what being ahead of some contenders does not mean."""
    left = (
        f" {results.unfinished} trials are not through yet and left out."
        if results.unfinished
        else ""
    )
    return f"{results.setup}.{left}{near_uniform(results)}"


def near_uniform(results: Results) -> str:
    """A caution where ALBL or DEAL take part: one reward is shared by all slots of a round, so they
    hardly learn.
    """
    names = [c for c in results.rows if selector_name(results, c) in ("albl", "deal")]
    if not names:
        return ""
    return (
        f" {' and '.join(names)} choose{'s' if len(names) == 1 else ''} nearly uniformly in "
        "every round, since all of "
        "a round's slots share one reward: to be ahead of that is to be ahead of random choice "
        "among the same arms."
    )


def selector_name(results: Results, contender: str) -> str:
    name: str = results.sample(contender)["selector"]
    return name.partition("(")[0].strip()


def differences(results: Results, focus: str | None = None) -> Table | None:
    """One contender (the first, TAILOR where there is one) minus each other, paired by seed, with a
    verdict.
    """
    ours = focused(results, focus)
    metrics = compared(results)
    rows = []
    for other in (c for c in results.contenders if c != ours):
        found = [d for m in metrics if (d := results.difference(ours, other, m)) is not None]
        if found:
            cells = (interval(d, m) for d, m in zip(found, metrics))
            rows.append((other, *cells, str(found[0].n), found[0].verdict))
    if not rows:
        return None
    columns = ("", *map(results.label, metrics), "pairs", "verdict")
    note = f"{INTERVALS}; the verdict is the first column's.{near_uniform(results)}"
    return Table(f"{results.name}: {ours} minus", columns, tuple(rows), note)


def summary(results: Results, focus: str | None = None) -> Table:
    """One row a contender, the best first: what it is judged by, and how far it is from the one in
    focus.
    """
    ours = focused(results, focus)
    aim = results.aim
    shown = [m for m in compared(results) if m not in (aim, "area")]
    order = sorted(results.contenders, key=lambda c: -results.last(c, aim).mean())
    rows = []
    for c in order:
        apart = None if c == ours else results.difference(c, ours, aim)
        cells = [
            with_error(results.last(c, aim), aim),
            with_error(results.areas(c, results.main), "score"),
        ]
        cells += ["", ""] if apart is None else [interval(apart, aim), str(apart.n)]
        cells += [number(float(results.last(c, m).mean()), m) for m in shown]
        rows.append((c, str(len(results.rows[c])), *cells))
    judged = (results.label(aim), "area under curve", f"minus {ours}", "pairs")
    columns = ("", "trials", *judged, *map(results.label, shown))
    note = f"After {results.total} labels: mean ± standard error; {INTERVALS}. {setup(results)}"
    return Table(results.name, columns, tuple(rows), note)


def markdown(table: Table) -> str:
    """For pages of a repository."""
    lines = [table.columns, ("---",) * len(table.columns), *table.rows]
    text = "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
    return f"### {table.title}\n\n{text}\n" + (f"\n{table.note}\n" if table.note else "")


def focused(results: Results, focus: str | None) -> str:
    """The contender asked for; else TAILOR, or the first that is one."""
    if focus is not None and focus in results.rows:
        return focus
    return next(
        (c for c in ("TAILOR", *results.tailors()) if c in results.rows), results.contenders[0]
    )


def compared(results: Results) -> list[str]:
    """What differences are given of; what contenders are judged by comes first."""
    shown = [
        m
        for m in (results.main, "area", "rarest", "imbalance", "positives")
        if m in (*results.metrics, "area")
    ]
    return list(dict.fromkeys([results.aim, *shown]))


def yardsticks(
    results: Sequence[Results], focus: str | None = None, metric: str | None = None
) -> Table | None:
    """Against the best single family, random meta and random, on every experiment.

    metric  by default what each experiment is judged by; those without it are left out
    """
    rows = []
    for one in results:
        ours = focused(one, focus)
        cells = []
        judge = metric or one.aim
        if judge not in one.metrics:
            continue
        others = rivals(one, ours, judge)
        for other in others:
            found = None if other is None else one.difference(ours, other, judge)
            cells.append(
                "–" if found is None else f"{interval(found, judge)} {found.verdict} ({found.n})"
            )
        rows.append((one.name, one.label(judge), ours, others[0] or "–", *cells))
    if all(cell == "–" for row in rows for cell in row[4:]):
        return None
    columns = (
        "",
        "judged by",
        "contender",
        "best single family",
        "minus that",
        "minus random meta",
        "minus random",
    )
    note = (
        f"{INTERVALS}; in brackets the number of pairs; the best single family is the one of "
        "its candidates with "
    )
    note += (
        "the highest mean here, over the seeds that all families have: it is known only afterwards"
    )
    title = "Against the best single family, random meta and random"
    return Table(
        title if metric is None else f"{title}, by {METRICS[metric]}", columns, tuple(rows), note
    )


RIVALS = ("best single family", "random meta", "random")


def rivals(
    results: Results, ours: str, metric: str | None = None
) -> tuple[str | None, str | None, str | None]:
    """The best single family of its candidates, random meta (over the same ones if it is there),
    random: RIVALS.
    """
    means = results.fair_means(results.own_singles(ours), metric)
    best = max(means, key=means.__getitem__, default=None)
    many = [
        c
        for c in results.rows
        if results.sample(c)["selector"] == "random-meta" and c not in results.singles()
    ]
    metas = [c for c in many if results.sample(c)["families"] != ["random"] and c != ours]
    metas.sort(key=lambda c: results.sample(c)["families"] != results.sample(ours)["families"])
    plain = next(
        (c for c in results.rows if results.sample(c)["families"] == ["random"] and c != ours), None
    )
    return best, next(iter(metas), None), plain


def to_target(results: Results, target: float | None = None) -> Table | None:
    """Labels needed to reach the target, by default what random reaches in the end. All trials
    count: one that never gets there needs more labels than it had, however many.
    """
    if target is None:
        base = "random" if "random" in results.rows else results.contenders[-1]
        target = float(results.last(base, results.main).mean())
        why = f"what {base} reaches in the end"
    else:
        why = "as asked for"
    rows = []
    for c in results.contenders:
        found = results.labels_to(c, results.main, target)
        middle, fewest, most = (
            f"{count:.0f}" if np.isfinite(count) else f"> {results.total}"
            for count in (np.median(found), found.min(), found.max())
        )
        span = fewest if fewest == most else f"{fewest} to {most}"
        rows.append((c, middle, span, f"{np.isfinite(found).sum()} of {len(found)}"))
    columns = ("", "labels, median", "fewest to most", "trials that reach it")
    title = f"{results.name}: labels to {results.label(results.main)} {target:.4f}, {why}"
    note = "over all trials; one that never reaches it needs more labels than it had"
    return Table(title, columns, tuple(rows), note)


def ranks(results: Sequence[Results]) -> Table | None:
    """The mean rank over experiments, of contenders that all of them have."""
    if len(results) < 2:
        return None
    common = [c for c in results[0].contenders if all(c in r.rows for r in results)]
    scores = {r.name: r.fair_means(common) for r in results}
    found = stats.mean_ranks(scores)
    if not found:
        return None
    rows = tuple(
        (c, f"{rank:.2f}", *(number(scores[r.name][c], r.aim) for r in results))
        for c, rank in found.items()
    )
    left = sorted({c for r in results for c in r.contenders} - set(found))
    note = "by the mean after the last round over the seeds that all of these have, 1 is best"
    note += f"; not in all experiments: {'; '.join(left)}" if left else ""
    columns = ("", "rank", *(f"{r.name}, {r.label(r.aim)}" for r in results))
    return Table(f"Mean rank over {len(results)} experiments", columns, rows, note)


def seconds(results: Results) -> Table:
    """Seconds a round by stage, and memory. Rounds in which a trial was taken up again are left
    out.
    """
    stages = list(results.first["seconds"])
    rows = []
    for c, trials in results.rows.items():
        every = [row for found in trials.values() for row in found if not row["resumed"]]
        means = [
            np.mean([row["seconds"][s] for row in every]) if every else float("nan") for s in stages
        ]
        peak = max((row["peak_mib"] for row in every), default=0)
        rows.append((c, *(f"{m:.3f}" for m in means), str(peak)))
    return Table(f"{results.name}: seconds a round", ("", *stages, "peak MiB"), tuple(rows))
