"""tailor users: who may label with a name and a password."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
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
def add(
    name: Name,
    role: Annotated[
        str,
        typer.Option(
            help="owner, reviewer or annotator; by default owner for the first user, annotator for "
            "the others, and of one who is there the role that there is."
        ),
    ] = "",
    run: RunFolder = HERE,
) -> None:
    """Add a user, or give one a new password. It is asked for twice; without a terminal it is read
    from a line.
    """
    from tailor.annotation.roles import check_role

    if role:
        check_role(role)
    users_of_run = _users_of(run)
    password = _read_password()
    if not password:
        raise InputError("no password was given")
    is_new = users_of_run.add(name, password, role or None, by=_author())
    name = name.strip()
    role_now = users_of_run.role(name)
    listed = ", ".join(users_of_run.names)
    if is_new:
        typer.echo(f"{name} may sign in now, as {role_now}. Users: {listed}")
    else:
        typer.echo(
            f"{name} was a user already: the password is changed, and sessions with the "
            f"old one are over. The role is {role_now}. Users: {listed}"
        )


@users.command()
def remove(name: Name, run: RunFolder = HERE) -> None:
    """Take a user's access away; answers stay. Whoever is signed in under this name is signed
    out.
    """
    users_of_run = _users_of(run)
    users_of_run.remove(name, by=_author())
    listed = ", ".join(users_of_run.names) or "none"
    typer.echo(f"{name} may not sign in any more. Users: {listed}")


@users.command(name="role")
def set_role(
    name: Name,
    role: Annotated[str, typer.Argument(help="owner, reviewer or annotator.")],
    run: RunFolder = HERE,
) -> None:
    """Give a user another role, which counts at once."""
    _users_of(run).set_role(name, role, by=_author())
    typer.echo(f"{name} is {role} now.")


@users.command(name="list")
def list_users(run: RunFolder = HERE) -> None:
    """The users' names and roles."""
    users_of_run = _users_of(run)
    for name in users_of_run.names:
        typer.echo(f"{name}\t{users_of_run.role(name)}")


@users.command()
def log(
    run: RunFolder = HERE,
    lines: Annotated[int, typer.Option(min=1, help="How many lines at the most.")] = 100,
) -> None:
    """Who signed in or tried to, and what was done to users: the latest last."""
    from tailor.web.sign_in_log import SignInLog

    users_of_run = _users_of(run)
    entries = []
    for change in users_of_run.changes:
        if change.role_after:
            role = f" ({change.role_after})"
        else:
            role = ""
        text = f"{change.by or '?'}: {change.what} {change.name}{role}"
        entries.append((change.time, text))
    for sign_in in SignInLog(run).latest(lines):
        text = f"{sign_in.name or '(no user)'}: {sign_in.what}, from {sign_in.address}"
        entries.append((sign_in.time, text))
    for time, text in sorted(entries)[-lines:]:
        moment = datetime.fromtimestamp(time, UTC)
        typer.echo(f"{moment:%Y-%m-%d %H:%M:%S}Z\t{text}")


def _author() -> str:
    from tailor.web.serve import login_name

    return f"{login_name()} (command)"


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
