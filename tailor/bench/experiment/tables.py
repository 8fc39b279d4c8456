"""The tables of a report, as texts: for the terminal and for the page alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailor.bench.experiment import stats
from tailor.bench.experiment.results import Results
from tailor.bench.experiment.stats import Difference

WHOLE = ("rarest", "positives")


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
    low, high = number(found.low, metric, True), number(found.high, metric, True)
    return f"{number(found.mean, metric, True)} [{low}, {high}]{star}"


def final(results: Results) -> Table:
    """Every metric after the last round, and the area under the main curve."""
    metrics = results.metrics()
    rows = []
    for c in results.contenders:
        cells = [with_error(results.last(c, m), m) for m in metrics]
        rows.append((c, *cells, with_error(results.areas(c, results.main), "score"), str(len(results.rows[c]))))
    labels = int(max(results.labels(c)[-1] for c in results.contenders))
    columns = ("", *map(results.label, metrics), "area under curve", "trials")
    left = f"; {results.unfinished} trials are not through yet and left out" if results.unfinished else ""
    return Table(f"{results.name}: after {labels} labels", columns, tuple(rows), f"mean ± standard error{left}")


def differences(results: Results) -> Table | None:
    """The first contender (TAILOR where there is one) minus each other, paired by seed."""
    ours, *others = results.contenders
    metrics = [m for m in (results.main, "rarest", "imbalance", "positives") if m in results.metrics()]
    rows = []
    for other in others:
        seeds = results.seeds(ours, other)
        if seeds:
            found = [stats.paired(results.last(ours, m, seeds), results.last(other, m, seeds)) for m in metrics]
            rows.append((other, *(interval(d, m) for d, m in zip(found, metrics)), str(len(seeds))))
    if not rows:
        return None
    note = "mean [95% interval by Student's t]; * where 0 lies outside, not corrected for the number of comparisons"
    return Table(f"{results.name}: {ours} minus", ("", *map(results.label, metrics), "pairs"), tuple(rows), note)


def to_target(results: Results, target: float | None = None) -> Table | None:
    """Labels needed to reach the target, by default what random reaches in the end."""
    if target is None:
        base = "random" if "random" in results.rows else results.contenders[-1]
        target, why = float(results.last(base, results.main).mean()), f"what {base} reaches in the end"
    else:
        why = "as asked for"
    rows = []
    for c in results.contenders:
        found = results.labels_to(c, results.main, target)
        reached = int((~np.isnan(found)).sum())
        mean = stats.mean_error(found)
        error = "" if np.isnan(mean.error) else f" ± {mean.error:.0f}"
        rows.append((c, f"{mean.mean:.0f}{error}" if reached else "–", f"{reached} of {len(found)}"))
    columns = ("", "labels", "trials that reach it")
    title = f"{results.name}: labels to {results.label(results.main)} {target:.4f}, {why}"
    return Table(title, columns, tuple(rows), "mean ± standard error over the trials that reach it")


def ranks(results: Sequence[Results]) -> Table | None:
    """The mean rank over experiments, of contenders that all of them have."""
    if len(results) < 2:
        return None
    scores = {r.name: {c: float(r.last(c, r.main).mean()) for c in r.contenders} for r in results}
    found = stats.mean_ranks(scores)
    if not found:
        return None
    rows = tuple((c, f"{rank:.2f}", *(f"{scores[r.name][c]:.4f}" for r in results)) for c, rank in found.items())
    return Table(f"Mean rank over {len(results)} experiments", ("", "rank", *(r.name for r in results)), rows)


def seconds(results: Results) -> Table:
    """Seconds a round by stage, and memory. Rounds in which a trial was taken up again are left out."""
    stages = list(results.first["seconds"])
    rows = []
    for c, trials in results.rows.items():
        every = [row for found in trials.values() for row in found if not row["resumed"]]
        means = [np.mean([row["seconds"][s] for row in every]) if every else float("nan") for s in stages]
        peak = max((row["peak_mib"] for row in every), default=0)
        rows.append((c, *(f"{m:.3f}" for m in means), str(peak)))
    return Table(f"{results.name}: seconds a round", ("", *stages, "peak MiB"), tuple(rows))


def compare(a: Sequence[Results], b: Sequence[Results]) -> list[Table]:
    """B minus A for every contender that both have, paired by seed.

    Experiments are matched by name; where each has just one, these two.
    """
    if len(a) == len(b) == 1:
        pairs = [(a[0], b[0])]
    else:
        pairs = [(one, two) for one in a for two in b if one.name == two.name]
    tables = []
    for one, two in pairs:
        metrics = [m for m in one.metrics() if m in two.metrics()]
        rows = []
        for c in (c for c in one.contenders if c in two.rows):
            seeds = sorted(set(one.rows[c]) & set(two.rows[c]))
            if seeds:
                found = [stats.paired(two.last(c, m, seeds), one.last(c, m, seeds)) for m in metrics]
                rows.append((c, *(interval(d, m) for d, m in zip(found, metrics)), str(len(seeds))))
        if rows:
            title = f"{two.name}, B minus A" if one.name == two.name else f"{two.name} minus {one.name}"
            note = "after the last round; mean [95% interval by Student's t], * where 0 lies outside"
            tables.append(Table(title, ("", *map(one.label, metrics), "pairs"), tuple(rows), note))
    return tables
