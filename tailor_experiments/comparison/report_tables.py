"""The tables of a report: of one experiment, and of several together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from tailor_experiments.comparison import stats
from tailor_experiments.comparison.judging import (
    BEST_SINGLE,
    common_contenders,
    compared_metrics,
    difference,
    fair_means,
    judged_by,
    rivals,
)
from tailor_experiments.comparison.results import AREA, METRICS, Results
from tailor_experiments.comparison.roles import focused, selector_name
from tailor_experiments.comparison.table_format import (
    INTERVALS,
    NO_NUMBER,
    Table,
    interval,
    label_count,
    number,
    with_error,
)

# ---------------------------------------------------------------------- one experiment


def final(results: Results) -> Table:
    """Every metric after the last round, and the area under the main curve."""
    rows = []
    for contender in results.contenders:
        cells = []
        for metric in results.metrics:
            values = results.final_values(contender, metric)
            cells.append(with_error(values, metric))
        areas = results.areas(contender, results.main_metric)
        cells.append(with_error(areas, "score"))
        trials = len(results.rows[contender])
        rows.append((contender, *cells, str(trials)))
    labels = [results.metric_label(metric) for metric in results.metrics]
    return Table(
        f"{results.name}: after {results.total_labels} labels",
        ("", *labels, "area under curve", "trials"),
        tuple(rows),
        f"mean ± standard error. {setup(results)}",
    )


def differences(results: Results, focus: str | None = None) -> Table | None:
    """One contender (the first, TAILOR where there is one) minus each other, paired by seed, with
    a verdict. None where no two have a seed in common.
    """
    ours = focused(results, focus)
    metrics = compared_metrics(results)
    rows = []
    for other in results.contenders:
        if other == ours:
            continue
        # What contenders are judged by comes first.
        judged = difference(results, ours, other, metrics[0])
        if judged is None:
            continue
        cells = []
        for metric in metrics:
            pair = difference(results, ours, other, metric)
            if pair is not None:
                cells.append(interval(pair, metric))
        rows.append((other, *cells, str(judged.n), judged.verdict))
    if not rows:
        return None
    labels = [results.metric_label(metric) for metric in metrics]
    return Table(
        f"{results.name}: {ours} minus",
        ("", *labels, "pairs", "verdict"),
        tuple(rows),
        f"{INTERVALS}; the verdict is the first column's.{near_uniform(results)}",
    )


def summary(results: Results, focus: str | None = None) -> Table:
    """One row a contender, the best first: what it is judged by, and how far it is from the one in
    focus.
    """
    ours = focused(results, focus)
    judge = judged_by(results)
    others = [metric for metric in compared_metrics(results) if metric not in (judge, AREA)]
    best_first = sorted(
        results.contenders, key=lambda contender: -results.final_values(contender, judge).mean()
    )
    rows = []
    for contender in best_first:
        judged_values = results.final_values(contender, judge)
        areas = results.areas(contender, results.main_metric)
        cells = [
            contender,
            str(len(results.rows[contender])),
            with_error(judged_values, judge),
            with_error(areas, "score"),
        ]
        to_ours = None
        if contender != ours:
            to_ours = difference(results, contender, ours, judge)
        if to_ours is None:
            cells += ["", ""]
        else:
            cells += [interval(to_ours, judge), str(to_ours.n)]
        for metric in others:
            values = results.final_values(contender, metric)
            cells.append(number(float(values.mean()), metric))
        rows.append(tuple(cells))
    columns = (
        "",
        "trials",
        results.metric_label(judge),
        "area under curve",
        f"minus {ours}",
        "pairs",
        *(results.metric_label(metric) for metric in others),
    )
    after = f"After {results.total_labels} labels"
    note = f"{after}: mean ± standard error; {INTERVALS}. {setup(results)}"
    return Table(results.name, columns, tuple(rows), note)


def to_target(results: Results, target: float | None = None) -> Table | None:
    """Labels needed to reach the target, by default what random reaches in the end.

    All trials count: one that never gets there needs more labels than it had, however many.
    """
    metric = results.main_metric
    reason = "as asked for"
    if target is None:
        base = results.contenders[-1]
        if "random" in results.rows:
            base = "random"
        final_scores = results.final_values(base, metric)
        target = float(final_scores.mean())
        reason = f"what {base} reaches in the end"
    total = results.total_labels
    rows = []
    for contender in results.contenders:
        needed = results.labels_to(contender, metric, target)
        median = label_count(float(np.median(needed)), total)
        fewest = label_count(needed.min(), total)
        most = label_count(needed.max(), total)
        span = fewest
        if most != fewest:
            span = f"{fewest} to {most}"
        reached = np.isfinite(needed).sum()
        rows.append((contender, median, span, f"{reached} of {len(needed)}"))
    label = results.metric_label(metric)
    return Table(
        f"{results.name}: labels to {label} {target:.4f}, {reason}",
        ("", "labels, median", "fewest to most", "trials that reach it"),
        tuple(rows),
        "over all trials; one that never reaches it needs more labels than it had",
    )


def seconds(results: Results) -> Table:
    """Seconds a round by stage, and memory. Rounds in which a trial was taken up again are left
    out.
    """
    stages = list(results.first_row["seconds"])
    rows = []
    for contender, trials in results.rows.items():
        all_rows = chain.from_iterable(trials.values())
        timed = [row for row in all_rows if not row["resumed"]]
        cells = []
        for stage in stages:
            stage_seconds = [row["seconds"][stage] for row in timed]
            mean = _mean(stage_seconds)
            cells.append(f"{mean:.3f}")
        peaks = [row["peak_mib"] for row in timed]
        highest = max(peaks, default=0)
        rows.append((contender, *cells, str(highest)))
    columns = ("", *stages, "peak MiB")
    return Table(f"{results.name}: seconds a round", columns, tuple(rows))


def _mean(values: Sequence[float]) -> float:
    if not values:
        return float("nan")
    return float(np.mean(values))


# ---------------------------------------------------------------------- several experiments


def yardsticks(
    experiments: Sequence[Results], focus: str | None = None, metric: str | None = None
) -> Table | None:
    """Against the best single family, random meta and random, on every experiment.

    metric  by default what each experiment is judged by; those without it are left out
    """
    rows = []
    has_numbers = False
    for results in experiments:
        ours = focused(results, focus)
        judge = metric or judged_by(results)
        if judge not in results.metrics:
            continue
        others = rivals(results, ours, judge)
        cells = [_against(results, ours, other, judge) for other in others.values()]
        if any(cell != NO_NUMBER for cell in cells):
            has_numbers = True
        row = (
            results.name,
            results.metric_label(judge),
            ours,
            others[BEST_SINGLE] or NO_NUMBER,
            *cells,
        )
        rows.append(row)
    if not has_numbers:
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
    title = "Against the best single family, random meta and random"
    if metric is not None:
        title += f", by {METRICS[metric]}"
    note = (
        f"{INTERVALS}; in brackets the number of pairs; the best single family is the one of "
        "its candidates with the highest mean here, over the seeds that all families have: it is "
        "known only afterwards"
    )
    return Table(title, columns, tuple(rows), note)


def _against(results: Results, ours: str, other: str | None, metric: str) -> str:
    if other is None:
        return NO_NUMBER
    pair = difference(results, ours, other, metric)
    if pair is None:
        return NO_NUMBER
    return f"{interval(pair, metric)} {pair.verdict} ({pair.n})"


def ranks(experiments: Sequence[Results]) -> Table | None:
    """The mean rank over experiments, of contenders that all of them have."""
    if len(experiments) < 2:
        return None
    common, left_out = common_contenders(experiments)
    scores = {}
    for results in experiments:
        scores[results.name] = fair_means(results, common)
    mean_ranks = stats.mean_ranks(scores)
    if not mean_ranks:
        return None
    rows = []
    for contender, rank in mean_ranks.items():
        cells = []
        for results in experiments:
            score = scores[results.name][contender]
            cells.append(number(score, judged_by(results)))
        rows.append((contender, f"{rank:.2f}", *cells))
    columns = []
    for results in experiments:
        metric = results.metric_label(judged_by(results))
        columns.append(f"{results.name}, {metric}")
    note = "by the mean after the last round over the seeds that all of these have, 1 is best"
    if left_out:
        names = "; ".join(left_out)
        note += f"; not in all experiments: {names}"
    title = f"Mean rank over {len(experiments)} experiments"
    return Table(title, ("", "rank", *columns), tuple(rows), note)


# ---------------------------------------------------------------------- notes


def setup(results: Results) -> str:
    """What was run, what is left out, and what being ahead of some contenders does not mean: so
    that a table can stand alone.
    """
    first = results.first_row
    rewards: dict[str, None] = {}  # a set that keeps the order
    for contender in results.contenders:
        rewards[results.sample(contender)["reward"]] = None
    model = "model not in the rows"
    if results.model:
        model = f"model {results.model}"
    batch = first["labels"]
    seeds = set(chain.from_iterable(results.rows.values()))
    trials = trial_counts(results, results.contenders)
    parts = [
        f"Data {first['data']}, {first['task']}",
        model,
        f"{batch} random labels, then {first['rounds']} rounds of {batch}",
        f"reward {', '.join(rewards)}",
        f"{len(results.rows)} contenders, {trials} trials each "
        f"(seeds {min(seeds)} to {max(seeds)}).",
    ]
    text = "; ".join(parts)
    if results.unfinished:
        text += f" {results.unfinished} trials are not through yet and left out."
    return text + near_uniform(results)


def trial_counts(results: Results, contenders: Sequence[str]) -> str:
    """How many trials there are of each of these: "4" or "4 to 16"."""
    counts = {len(results.rows[contender]) for contender in contenders}
    if len(counts) == 1:
        return str(counts.pop())
    return f"{min(counts)} to {max(counts)}"


def near_uniform(results: Results) -> str:
    """A caution where ALBL or DEAL take part: one reward is shared by all slots of a round, so they
    hardly learn.
    """
    names = []
    for contender in results.contenders:
        if selector_name(results, contender) in ("albl", "deal"):
            names.append(contender)
    if not names:
        return ""
    subject = " and ".join(names)
    verb = "chooses" if len(names) == 1 else "choose"
    return (
        f" {subject} {verb} nearly uniformly in every round, since all of a round's "
        "slots share one reward: to be ahead of that is to be ahead of random choice among the "
        "same arms."
    )
