"""tailor status: where a run stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailor.cli.run_option import HERE, RunFolder
from tailor.cli.terminal import printable
from tailor.cli.trust_option import Trust, open_project

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tailor.insight.advice import Advice
    from tailor.run.project import Project
    from tailor.run.state import RunState


#: rows shown before the rest is only counted
MOST_CLASSES = 40
MOST_ARMS = 15
MOST_SET_ASIDE = 20
#: classes that are named of what an arm found
CLASSES_NAMED = 6


def status(
    run: RunFolder = HERE,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
    trust: Trust = False,
) -> None:
    """Labels per class, what the arms found, accuracy, what is set aside, and whether
    to go on.
    """
    project = open_project(run, trust)
    if json:
        import json as json_format
        from dataclasses import asdict

        run_state = project.run_state()
        summary = run_state.summary()
        summary["estimates"] = [asdict(estimate) for estimate in summary["estimates"]]
        advice = _advice(project, run_state)
        goals = asdict(run_state.goals)
        further = {
            "arms": arms_found(run_state),
            "advice": advice.as_json(),
            "goals": goals,
        }
        typer.echo(json_format.dumps(summary | further))
    else:
        show(project)


def _advice(project: Project, run_state: RunState) -> Advice:
    from tailor.insight.advice import advise
    from tailor.run.run_progress import reason_to_stop

    why_stop = reason_to_stop(run_state, project.rules())
    return advise(run_state, why_stop)


def arms_found(run_state: RunState) -> dict[str, dict[str, Any]]:
    """For each arm that was pulled, the most pulled first: {"picks": n, "labels": {class: n}}."""
    import numpy as np

    label_table = run_state.label_table
    positions = label_table.picks.positions
    arms = label_table.picks.arm[positions]
    rows: list[tuple[str, dict[str, Any]]] = []
    for arm in np.unique(arms).tolist():
        picked = positions[arms == arm]
        labelled = picked[label_table.has_label(picked)]
        labels = label_table.labels_of(labelled)
        label_counts = labels.sum(0).astype(np.int64)
        row = {
            "picks": len(picked),
            "labels": dict(zip(run_state.task.classes, label_counts.tolist())),
        }
        rows.append((run_state.arm_name(arm), row))
    # Stable: arms with as many picks stay in the order of their numbers.
    rows.sort(key=lambda name_and_row: -name_and_row[1]["picks"])
    return dict(rows)


def show(project: Project) -> None:
    """Print where a run stands."""
    from rich.console import Console

    run_state = project.run_state()
    summary = run_state.summary()
    console = Console()
    console.print(
        f"{summary['answered']} labels of {summary['examples']} examples "
        f"({summary['holdout']} in the hold-out), {summary['waiting']} waiting, "
        f"{summary['skipped']} skipped, {len(summary['aside'])} set aside; "
        f"rounds: {len(run_state.rounds)}"
    )
    console.print(_class_table(summary))
    if summary["estimates"]:
        estimate = summary["estimates"][-1]
        if estimate.balanced_accuracy is not None:
            balanced = f"{estimate.balanced_accuracy:.3f}"
            console.print(f"Balanced accuracy on the hold-out, all classes alike: {balanced}")
        console.print(f"Accuracy on the hold-out: {estimate}")
    arms = arms_found(run_state)
    if arms:
        console.print(_arm_table(arms))
    _print_set_aside(console, summary["files"] | summary["aside"])
    advice = _advice(project, run_state)
    console.print(printable(advice.sentence), style="bold", markup=False)


def _class_table(summary: dict[str, Any]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(
        "class",
        "labels",
        "share of the pool, by the hold-out",
        title="Labels, rarest class first",
    )
    rarest_first = sorted(summary["counts"].items(), key=lambda item: item[1])
    for name, count in rarest_first[:MOST_CLASSES]:
        share = ""
        if name in summary["shares"]:
            share = "{:.1%} ({:.1%} to {:.1%})".format(*summary["shares"][name])
        table.add_row(escape(printable(name)), str(count), share)
    if len(rarest_first) > MOST_CLASSES:
        table.caption = f"and {len(rarest_first) - MOST_CLASSES} more classes"
    return table


def _arm_table(arms: dict[str, dict[str, Any]]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table("arm", "picks", "labels found", title="What the arms found")
    for name, row in list(arms.items())[:MOST_ARMS]:
        labels = _most_frequent(row["labels"])
        table.add_row(escape(printable(name)), str(row["picks"]), escape(printable(labels)))
    if len(arms) > MOST_ARMS:
        table.caption = f"and {len(arms) - MOST_ARMS} more arms"
    return table


def _most_frequent(counts: dict[str, int]) -> str:
    """ "cat 9, dog 3" """
    positive = []
    for name, count in counts.items():
        if count:
            positive.append((name, count))
    positive.sort(key=lambda item: -item[1])
    parts = []
    for name, count in positive[:CLASSES_NAMED]:
        parts.append(f"{name} {count}")
    return ", ".join(parts)


def _print_set_aside(console: Console, reasons: dict[str, str]) -> None:
    for name, reason in list(reasons.items())[:MOST_SET_ASIDE]:
        console.print(printable(f"set aside: {name}: {reason}"), style="yellow", markup=False)
    unlisted = len(reasons) - MOST_SET_ASIDE
    if unlisted > 0:
        console.print(f"and {unlisted} more set aside: tailor status --json lists all")
