"""Groups of commands, whose help shows flags as flags: without a type, for they take no value."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


def _without_flag_types(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        # Arguments have no is_flag; the class of options is the library's own.
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_flag_types(super().get_params(ctx))


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_flag_types(super().get_params(ctx))


class CommandGroup(typer.Typer):
    """A typer.Typer that shows its help where no command is named."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, no_args_is_help=True, **options)

    def command(self, name: str | None = None, **options: Any) -> Any:
        return super().command(name, cls=_Command, **options)
