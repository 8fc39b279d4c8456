"""tailor status: where a run stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailor.cli.common import HERE, Run

if TYPE_CHECKING:
    from tailor.journal import Journal
    from tailor.project import Project


def status(
    run: Run = HERE,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Labels per class, what the arms found, accuracy on the reserve, and what is set aside."""
    from tailor.project import Project

    project = Project(run)
    if json:
        import json as encoder
        from dataclasses import asdict

        journal = project.journal()
        summary = journal.summary()
        summary["estimates"] = [asdict(e) for e in summary["estimates"]]
        typer.echo(encoder.dumps(summary | {"arms": arms_found(journal)}))
    else:
        show(project)


def arms_found(journal: Journal) -> dict[str, dict[str, Any]]:
    """For each arm that was pulled, the most pulled first: {"picks": n, "labels": {class: n}}."""
    found: dict[str, dict[str, Any]] = {}
    both = (journal.books, journal.kept)
    labelled = {p: row for books in both for p, row in zip(books.labelled.tolist(), books.labels)}
    for position in journal.stories:
        story = journal.story(position)
        assert story is not None
        row = found.setdefault(story.arm, {"picks": 0, "labels": dict.fromkeys(journal.task.classes, 0)})
        row["picks"] += 1
        for k, name in enumerate(journal.task.classes):
            if position in labelled and labelled[position][k]:
                row["labels"][name] += 1
    return dict(sorted(found.items(), key=lambda item: -item[1]["picks"]))


def show(project: Project, arms: int = 15) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    journal = project.journal()
    summary, console = journal.summary(), Console()
    console.print(
        f"{summary['answered']} labels of {summary['examples']} examples "
        f"({summary['reserve']} in the reserve), {summary['waiting']} waiting, {summary['skipped']} skipped, "
        f"{len(summary['aside'])} set aside; rounds: {len(journal.rounds)}"
    )
    counts = Table("class", "labels", title="Labels, rarest class first")
    for name, count in sorted(summary["counts"].items(), key=lambda item: item[1])[:40]:
        counts.add_row(escape(name), str(count))
    console.print(counts)
    if summary["estimates"]:
        last = summary["estimates"][-1]
        console.print(
            f"Accuracy on the reserve: {last.accuracy:.3f}, 95% interval {last.lower:.3f} to {last.upper:.3f}, "
            f"{last.examples} examples"
        )
    found = arms_found(journal)
    if found:
        table = Table("arm", "picks", "labels found", title="What the arms found")
        for name, row in list(found.items())[:arms]:
            labels = {c: n for c, n in row["labels"].items() if n}
            text = ", ".join(f"{c} {n}" for c, n in sorted(labels.items(), key=lambda item: -item[1])[:6])
            table.add_row(escape(name), str(row["picks"]), escape(text))
        if len(found) > arms:
            table.caption = f"and {len(found) - arms} more arms"
        console.print(table)
    for one, reason in list((summary["files"] | summary["aside"]).items())[:20]:
        console.print(f"set aside: {one}: {reason}", style="yellow", markup=False)
