"""tailor status: where a run stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailor.cli.common import HERE, Run, printable

if TYPE_CHECKING:
    from tailor.run.project import Project
    from tailor.run.state import RunState


#: rows shown before the rest is only counted
CLASSES, ASIDE = 40, 20


def status(
    run: Run = HERE,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Labels per class, what the arms found, accuracy on the hold-out, and what is set aside."""
    from tailor.run.project import Project

    project = Project(run)
    if json:
        import json as encoder
        from dataclasses import asdict

        run_state = project.run_state()
        summary = run_state.summary()
        summary["estimates"] = [asdict(e) for e in summary["estimates"]]
        typer.echo(encoder.dumps(summary | {"arms": arms_found(run_state)}))
    else:
        show(project)


def arms_found(run_state: RunState) -> dict[str, dict[str, Any]]:
    """For each arm that was pulled, the most pulled first: {"picks": n, "labels": {class: n}}."""
    import numpy as np

    label_table = run_state.label_table
    positions = label_table.picks.positions
    arms = label_table.picks.arm[positions]
    found: dict[int, np.ndarray] = {}
    for arm in np.unique(arms).tolist():
        picked = positions[arms == arm]
        labels = label_table.labels_of(picked[label_table.has_label(picked)])
        found[arm] = labels.sum(0).astype(np.int64)
    picks = {arm: int((arms == arm).sum()) for arm in found}
    return {
        run_state.arm_name(arm): {
            "picks": picks[arm],
            "labels": dict(zip(run_state.task.classes, found[arm].tolist())),
        }
        for arm in sorted(found, key=lambda a: -picks[a])
    }


def show(project: Project, arms: int = 15) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    run_state = project.run_state()
    summary = run_state.summary()
    console = Console()
    console.print(
        f"{summary['answered']} labels of {summary['examples']} examples "
        f"({summary['holdout']} in the hold-out), {summary['waiting']} waiting, "
        f"{summary['skipped']} skipped, "
        f"{len(summary['aside'])} set aside; rounds: {len(run_state.rounds)}"
    )
    shares = summary["shares"]
    counts = Table(
        "class", "labels", "share of the pool, by the hold-out", title="Labels, rarest class first"
    )
    rarest = sorted(summary["counts"].items(), key=lambda item: item[1])
    for name, count in rarest[:CLASSES]:
        share = "{:.1%} ({:.1%} to {:.1%})".format(*shares[name]) if name in shares else ""
        counts.add_row(escape(printable(name)), str(count), share)
    if len(rarest) > CLASSES:
        counts.caption = f"and {len(rarest) - CLASSES} more classes"
    console.print(counts)
    if summary["estimates"]:
        console.print(f"Accuracy on the hold-out: {summary['estimates'][-1]}")
    found = arms_found(run_state)
    if found:
        table = Table("arm", "picks", "labels found", title="What the arms found")
        for name, row in list(found.items())[:arms]:
            labels = {c: n for c, n in row["labels"].items() if n}
            text = ", ".join(
                f"{c} {n}" for c, n in sorted(labels.items(), key=lambda item: -item[1])[:6]
            )
            table.add_row(escape(printable(name)), str(row["picks"]), escape(printable(text)))
        if len(found) > arms:
            table.caption = f"and {len(found) - arms} more arms"
        console.print(table)
    aside = list((summary["files"] | summary["aside"]).items())
    for one, reason in aside[:ASIDE]:
        console.print(printable(f"set aside: {one}: {reason}"), style="yellow", markup=False)
    if len(aside) > ASIDE:
        console.print(f"and {len(aside) - ASIDE} more set aside: tailor status --json lists all")
