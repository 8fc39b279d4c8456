"""The commands and where they live. Other packages add theirs under the entry-point group
`tailor.commands`.
"""

from __future__ import annotations

from importlib.metadata import entry_points

import typer

from tailor.cli.arms import arms
from tailor.cli.ask import ask
from tailor.cli.export import export
from tailor.cli.group import Commands
from tailor.cli.init import init
from tailor.cli.label import label
from tailor.cli.label_studio import label_studio
from tailor.cli.move import move
from tailor.cli.plan import plan
from tailor.cli.predict import predict
from tailor.cli.run import run
from tailor.cli.status import status
from tailor.cli.tell import tell
from tailor.cli.train import train
from tailor.cli.users import users

app = Commands(
    name="tailor",
    help="Active learning that chooses its own algorithm.",
    pretty_exceptions_enable=False,
)
for command in (init, label, run, ask, tell, status, export, train, predict, move, plan, arms):
    app.command()(command)
app.add_typer(users, name="users")
app.add_typer(label_studio, name="label-studio")
for added in sorted(entry_points(group="tailor.commands")):
    loaded = added.load()
    if isinstance(loaded, typer.Typer):
        app.add_typer(loaded, name=added.name)
    else:
        app.command(added.name)(loaded)


def _version(value: bool) -> None:
    if value:
        from tailor import __version__

        typer.echo(__version__)
        raise typer.Exit()


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Active learning that chooses its own algorithm."""
