"""The commands and where they live. Other packages add theirs under the entry-point group
`tailor.commands`.
"""

from __future__ import annotations

from importlib.metadata import entry_points

import typer

from tailor.cli.arms import arms
from tailor.cli.ask import ask
from tailor.cli.backup import backup
from tailor.cli.check import check
from tailor.cli.export import export
from tailor.cli.group import CommandGroup
from tailor.cli.init import init
from tailor.cli.label import label
from tailor.cli.label_studio import label_studio
from tailor.cli.move import move
from tailor.cli.plan import plan
from tailor.cli.predict import predict
from tailor.cli.restore import restore
from tailor.cli.run import run
from tailor.cli.status import status
from tailor.cli.tell import tell
from tailor.cli.train import train
from tailor.cli.trust import trust
from tailor.cli.upgrade import upgrade
from tailor.cli.users import users

COMMANDS = (
    *(init, label, run, ask, tell, status, export, train, predict),
    *(backup, restore, check, upgrade, move),
    *(plan, arms, trust),
)
#: other packages add commands and groups of commands under this entry-point group
PLUGINS = "tailor.commands"

app = CommandGroup(
    name="tailor",
    help="Active learning that chooses its own algorithm.",
    pretty_exceptions_enable=False,
)
for command in COMMANDS:
    app.command()(command)
app.add_typer(users, name="users")
app.add_typer(label_studio, name="label-studio")
for entry_point in sorted(entry_points(group=PLUGINS)):
    plugin = entry_point.load()
    if isinstance(plugin, typer.Typer):
        app.add_typer(plugin, name=entry_point.name)
    else:
        app.command(entry_point.name)(plugin)


def _print_version(value: bool) -> None:
    if value:
        from tailor import __version__

        typer.echo(__version__)
        raise typer.Exit()


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Active learning that chooses its own algorithm."""
