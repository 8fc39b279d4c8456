"""`tailor regret`: the theory, shown by simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from tailor_experiments.regret.claims import Verdict
    from tailor_experiments.regret.simulation import RegretRow


def regret(
    out: Annotated[Path, typer.Option(help="Folder for the figures and the rows as CSV.")] = Path(
        "regret"
    ),
    instances: Annotated[int, typer.Option(min=2, help="Random instances for each setting.")] = 40,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same numbers.")] = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes to spread the instances over.")
    ] = 2,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few tiny settings: to see that it runs.")
    ] = False,
) -> None:
    """Simulate the paper's bandit and check the regret of TAILOR against T, M, K and B."""
    from rich.console import Console

    from tailor_experiments.regret.claims import check_claims
    from tailor_experiments.regret.figures import draw, write_rows
    from tailor_experiments.regret.simulation import AXES, BASE, QUICK, QUICK_BASE, simulate, sweeps

    points = list(sweeps(QUICK, QUICK_BASE) if quick else sweeps(AXES, BASE))
    rows = simulate(
        points,
        instances=instances,
        seed=seed,
        workers=workers,
    )
    out.mkdir(parents=True, exist_ok=True)
    # Before anything is printed: the rows took long.
    write_rows(rows, out / "regret.csv")
    draw(rows, out)

    console = Console()
    for sweep in dict.fromkeys(name for name, _ in points):
        sweep_rows = [row for row in rows if row.sweep == sweep]
        console.print(_regret_table(sweep, sweep_rows))
    console.print(_claims_table(check_claims(rows)))
    console.print(f"Figures and {len(rows)} rows are in {out}")


def _regret_table(sweep: str, rows: list[RegretRow]) -> Table:
    """A row a point of the sweep, a column a selector."""
    from rich.table import Table

    from tailor_experiments.regret.claims import name_point

    selectors = dict.fromkeys(row.selector for row in rows)
    table = Table(
        "task",
        "v",
        "point",
        *selectors,
        title=f"Bayesian regret by {sweep}: mean ± standard error (share of random's)",
    )
    for setting in dict.fromkeys(row.setting for row in rows):
        cells = [_cell(row) for row in rows if row.setting == setting]
        table.add_row(
            setting.kind,
            setting.weights,
            name_point(sweep, setting),
            *cells,
        )
    return table


def _cell(row: RegretRow) -> str:
    return f"{row.mean:.3g} ± {row.error:.1g} ({row.relative:.0%})"


def _claims_table(verdicts: list[Verdict]) -> Table:
    from rich.table import Table

    table = Table(
        "claim",
        "where",
        "measured",
        "verdict",
        title="Claims about TAILOR with forget=1, the theory's version",
    )
    for verdict in verdicts:
        table.add_row(
            verdict.claim,
            verdict.where,
            verdict.measured,
            "holds" if verdict.holds else "does not hold",
        )
    return table
