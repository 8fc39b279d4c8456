"""The commands of this package, for `python -m tailor_experiments`."""

from __future__ import annotations

from tailor.cli.group import CommandGroup
from tailor_experiments.cli.bench import bench
from tailor_experiments.cli.data import data
from tailor_experiments.cli.demo import demo
from tailor_experiments.cli.regret import regret

app = CommandGroup(
    name="tailor_experiments",
    help="Compare active-learning algorithms, and measure how fast they are.",
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(regret)
app.add_typer(bench, name="bench")
app.add_typer(data, name="data")
