"""`tailor bench scale`: how a round grows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def scale(
    axis: Annotated[list[str] | None, typer.Option(help="N, K, M or workers; may be given more than once.")] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda: then the predictions are held on the GPU.")] = "cpu",
    most: Annotated[int, typer.Option(min=1, help="The largest N that is measured.")] = 1_281_167,
    out: Annotated[Path | None, typer.Option(help="Folder for scale.jsonl, a row a stage, and scale.png.")] = None,
    disk: Annotated[Path | None, typer.Option(help="Folder for the shards, up to 6.6 GB.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a stage and nothing else.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Tiny pools: to see that it runs.")] = False,
) -> None:
    """Seconds and peak memory of every stage of a round over shards, against N, K, M and workers."""
    import json as encoder

    from tailor.bench.device import check_device
    from tailor.bench.scale import AXES, draw, exponents, measure, skipped

    check_device(device)
    axes = axis or list(AXES)
    for name, why in skipped(axes).items():
        typer.echo(f"{name} is left out: {why}", err=True)
    rows = []
    for row in measure(axes, device=device, quick=quick, most=most, folder=disk):
        rows.append(row)
        if json:
            typer.echo(encoder.dumps(row))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "scale.jsonl").write_text("".join(encoder.dumps(row) + "\n" for row in rows), encoding="utf-8")
        draw(rows, out / "scale.png")
    if json or not rows:
        return
    from rich.console import Console
    from rich.table import Table

    slopes = exponents(rows)
    console = Console(width=160)
    for name in dict.fromkeys(row["axis"] for row in rows):
        table = Table("stage", title=f"One round against {name}: seconds, peak MiB, the limit's share of the time")
        mine = [row for row in rows if row["axis"] == name]
        values = list(dict.fromkeys(row["value"] for row in mine))
        for value in values:
            table.add_column(f"{name} = {value:,}", justify="right")
        table.add_column("exponent", justify="right")
        for stage in dict.fromkeys(row["stage"] for row in mine):
            found = {row["value"]: row for row in mine if row["stage"] == stage}
            cells = [
                f"{found[v]['seconds']:.2f} s  {found[v]['peak_mib']} {found[v]['of_limit']:.0%}" if v in found else ""
                for v in values
            ]
            slope = slopes.get((name, stage))
            table.add_row(stage, *cells, "" if slope is None else f"{slope:.2f}")
        table.caption = mine[0]["device"]
        console.print(table)
    if out is not None:
        console.print(f"Rows and figure are in {out}")
