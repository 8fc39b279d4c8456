"""`tailor bench scale`: how a round grows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tailor.capacity.forecast import CostEstimate
    from tailor_experiments.speed.scale import Point, Row


def scale(
    axis: Annotated[
        list[str] | None, typer.Option(help="N, K, M or workers; may be given more than once.")
    ] = None,
    device: Annotated[
        str, typer.Option(help="cpu, or cuda: then the predictions are held on the GPU.")
    ] = "cpu",
    least: Annotated[int, typer.Option(min=1, help="The smallest N that is measured.")] = 1,
    most: Annotated[int, typer.Option(min=1, help="The largest N that is measured.")] = 1_281_167,
    against_plan: Annotated[
        bool, typer.Option("--against-plan", help="Plan each round first, then run it.")
    ] = False,
    report: Annotated[
        list[Path] | None, typer.Option(help="Print these rows; nothing is measured.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for scale.jsonl, scale.md and scale.png.")
    ] = None,
    disk: Annotated[Path | None, typer.Option(help="Folder for the shards, up to 8 GB.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a stage and nothing else.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny pools: to see that it runs.")
    ] = False,
) -> None:
    """Seconds, memory and disk of every stage of a round over shards, against N, K, M and workers,
    in Markdown.
    """
    import json as encoder

    from tailor.capacity.device import check_device_present
    from tailor.errors import InputError
    from tailor_experiments.speed.scale import AXES, measure, skipped
    from tailor_experiments.speed.scale_figure import draw
    from tailor_experiments.speed.scale_report import read_rows
    from tailor_experiments.speed.scale_report import report as report_text

    if report and (axis or against_plan or quick):
        raise InputError(
            "--report prints what was measured before: leave --axis, --against-plan and --quick out"
        )
    # Before hours of measuring, which a folder that can't be made would waste.
    for folder in (out, disk):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = read_rows(report) if report else []
    if not report:
        check_device_present(device)
        axes = axis or list(AXES)
        for name, reason in skipped(axes, device).items():
            typer.echo(f"{name} is left out: {reason}", err=True)
        # Without somebody to tell, no round is planned.
        tell_plan = None
        if against_plan:
            tell_plan = _tell_nothing if json else _print_plan
        for row in measure(
            axes,
            device=device,
            quick=quick,
            least=least,
            most=most,
            folder=disk,
            tell_plan=tell_plan,
        ):
            rows.append(row)
            if json:
                typer.echo(encoder.dumps(row))
            if out is not None:  # what was measured stays, should the rest be interrupted
                _write_rows(out / "scale.jsonl", rows)
    if not rows:
        return
    if out is not None:
        _write_rows(out / "scale.jsonl", rows)
        (out / "scale.md").write_text(report_text(rows) + "\n", encoding="utf-8")
        draw(rows, out / "scale.png")
    if not json:
        typer.echo(report_text(rows))


def _write_rows(path: Path, rows: list[Row]) -> None:
    import json

    lines = [json.dumps(row) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")


def _print_plan(point: Point, planned: list[CostEstimate]) -> None:
    from tailor.cli.plan import print_plan

    print_plan(point.size, planned)


def _tell_nothing(point: Point, planned: list[CostEstimate]) -> None:
    """The plan is in the rows."""
