"""tailor bench: measurements."""

from __future__ import annotations

from typing import Annotated

import typer

bench = typer.Typer(name="bench", help="Measure speed and results.", no_args_is_help=True)


@bench.callback()
def root() -> None:
    """Measure speed and results."""


@bench.command()
def selection(
    size: Annotated[str, typer.Option(help="cifar10, kuzushiji, coco, celeba, imagenet, or all (without imagenet).")],
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a size and nothing else.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds measured; the median is given.")] = 3,
) -> None:
    """One round's choosing, predictions given: seconds a stage, draws a second, peak memory."""
    import json as encoder

    from rich.console import Console
    from rich.table import Table

    from tailor.bench.pools import SIZES, find_size
    from tailor.bench.selection import check_device, measure

    check_device(device)
    names = [n for n in SIZES if n != "imagenet"] if size == "all" else [size]
    sizes = [find_size(name) for name in names]
    table = Table("size", "arms", "seconds", "check", "plan", "open", "take", "draws/s", "peak MiB", "compile s")
    table.title = "One round of TAILOR"
    for one in sizes:
        row = measure(one, device, repeats)
        if json:
            typer.echo(encoder.dumps(row))
            continue
        stages = [f"{row[f'{stage}_seconds']:.3f}" for stage in ("check", "plan", "open", "take")]
        table.add_row(
            one.name, str(row["arms"]), f"{row['seconds']:.3f}", *stages, f"{row['draws_per_second']:.3g}",
            str(row["peak_mib"]), f"{row['compile_seconds']:.1f}",
        )  # fmt: skip
        table.caption = row["device"]
    if not json:
        Console().print(table)


@bench.command()
def training(
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a row and nothing else.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Short measurements: to see that it runs.")] = False,
) -> None:
    """Images a second, training and predicting: ResNet-18 at 32 and 224 pixels, and the probe."""
    import json as encoder

    from rich.console import Console
    from rich.table import Table

    from tailor.bench.selection import check_device
    from tailor.bench.training import measure_training

    check_device(device)
    rows = measure_training(device, quick)
    if json:
        for row in rows:
            typer.echo(encoder.dumps(row))
        return
    table = Table("model", "input", "batch", "loop", "training /s", "predicting /s", title="Examples a second")
    for row in rows:
        width = f"{row['pixels']} px" if row.get("pixels") else f"{row.get('features')} features"
        speeds = (f"{row['train_per_second']:,.0f}", f"{row['predict_per_second']:,.0f}")
        table.add_row(row["model"], width, str(row["batch"]), str(row.get("loop", "")), *speeds)
        table.caption = str(row["device"])
    Console().print(table)
