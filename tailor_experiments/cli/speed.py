"""`tailor bench selection` and `tailor bench training`: how fast a round and a model are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tailor.capacity.synthetic_pool import PoolSize

#: columns of the table of rounds: all of a round, then its stages
STAGES = ("seconds", "check", "plan", "open", "take")


def selection(
    size: Annotated[
        str,
        typer.Option(
            help="reviews, cifar10, kuzushiji, coco, celeba, imagenet, or all (without imagenet)."
        ),
    ],
    families: Annotated[
        list[str] | None,
        typer.Option(help="A family to measure alone, or all: each alone. May be repeated."),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a size and nothing else.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds measured; the median is given.")] = 3,
) -> None:
    """One round's choosing, predictions given: seconds a stage, draws a second, peak memory."""
    import json as encoder

    from rich.console import Console
    from rich.table import Table

    from tailor.capacity.device import check_device_present
    from tailor.capacity.synthetic_pool import SIZES, find_size

    check_device_present(device)
    # ImageNet's round takes longer than all others together, and far more memory.
    names = [name for name in SIZES if name != "imagenet"] if size == "all" else [size]
    sizes = [find_size(name) for name in names]
    title = "One round of each family alone" if families else "One round of TAILOR"
    table = Table("size", "family", "arms", *STAGES, "draws/s", "peak MiB", "compile s")
    table.title = title
    for row in _selection_rows(sizes, families, device, repeats):
        if json:
            typer.echo(encoder.dumps(row))
            continue
        # Filled as sizes are measured, and printed in the end.
        stages = [f"{row['seconds']:.3f}"]
        stages += [f"{row[f'{stage}_seconds']:.3f}" for stage in STAGES[1:]]
        table.add_row(
            row["size"],
            row.get("family", "all"),
            str(row["arms"]),
            *stages,
            f"{row['draws_per_second']:.3g}",
            str(row["peak_mib"]),
            f"{row['compile_seconds']:.1f}",
        )
        table.caption = row["device"]
    if not json:
        Console().print(table)


def _selection_rows(
    sizes: list[PoolSize],
    families: list[str] | None,
    device: str,
    repeats: int,
) -> Iterator[dict[str, Any]]:
    """A row for each size, or for each size and family."""
    from tailor_experiments.speed.selection import families_of, measure, measure_alone

    for size in sizes:
        if not families:
            yield measure(size, device, repeats)
            continue
        names = families
        if "all" in families:
            names, left_out = families_of(size)
            listed = ", ".join(left_out)
            typer.echo(f"{size.name}: left out, for another task or a model: {listed}", err=True)
        yield from measure_alone(size, names, device, repeats)


def training(
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a row and nothing else.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Short measurements: to see that it runs.")
    ] = False,
) -> None:
    """Images a second, training and predicting: ResNet-18, EfficientNet-Lite0 and the probe."""
    import json as encoder

    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    from tailor.capacity.device import check_device_present
    from tailor_experiments.speed.training import measure_training

    check_device_present(device)
    rows = measure_training(device, quick)
    if json:
        for row in rows:
            typer.echo(encoder.dumps(row))
        return
    table = Table(
        "model",
        "input",
        "batch",
        "loop",
        "training /s",
        "predicting /s",
        title="Examples a second",
    )
    console = Console()
    with Live(table, console=console, transient=True):
        for row in rows:
            pixels = row.get("pixels")
            table.add_row(
                row["model"],
                f"{pixels} px" if pixels else f"{row.get('features')} features",
                str(row["batch"]),
                str(row.get("loop", "")),
                f"{row['train_per_second']:,.0f}",
                f"{row['predict_per_second']:,.0f}",
            )
            table.caption = str(row["device"])
    console.print(table)
