"""tailor users: who may label with a name and a password."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tailor.cli.group import CommandGroup
from tailor.cli.run_option import HERE, RunFolder
from tailor.common.distribution import pip_install
from tailor.errors import InputError

if TYPE_CHECKING:
    from tailor.web.users import Users

users = CommandGroup(name="users", help="Who may sign in to the labelling page.")
Name = Annotated[str, typer.Argument(help="The user's name.")]


@users.command()
def add(name: Name, run: RunFolder = HERE) -> None:
    """Add a user, or give one a new password. It is asked for twice; without a terminal it is read
    from a line.
    """
    from tailor.run.reaches import user_reaches
    from tailor.run.trust import remember

    users_of_run = _users_of(run)
    password = _read_password()
    if not password:
        raise InputError("no password was given")
    is_first = not users_of_run.names
    is_new = users_of_run.add(name, password)
    if is_first:
        # All of them were made here; of those that were there before, nobody knows who made them.
        remember(run, user_reaches(run))
    listed = ", ".join(users_of_run.names)
    if is_new:
        typer.echo(f"{name.strip()} may sign in now. Users: {listed}")
    else:
        typer.echo(
            f"{name.strip()} was a user already: the password is changed, and sessions with the "
            f"old one are over. Users: {listed}"
        )


@users.command()
def remove(name: Name, run: RunFolder = HERE) -> None:
    """Take a user's access away; answers stay. Whoever is signed in under this name is signed
    out.
    """
    users_of_run = _users_of(run)
    users_of_run.remove(name)
    listed = ", ".join(users_of_run.names) or "none"
    typer.echo(f"{name} may not sign in any more. Users: {listed}")


@users.command(name="list")
def list_users(run: RunFolder = HERE) -> None:
    """The users' names."""
    for name in _users_of(run).names:
        typer.echo(name)


def _read_password() -> str:
    if sys.stdin.isatty():
        password: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
        return password
    return sys.stdin.readline().rstrip("\r\n")


def _users_of(run: RunFolder) -> Users:
    from tailor.run import config

    config.read(run)  # it must be a run
    try:
        from tailor.web.users import Users
    except ModuleNotFoundError as error:
        raise InputError(
            f"{error.name} is not installed: users need {pip_install('web')}"
        ) from error
    return Users(run)
