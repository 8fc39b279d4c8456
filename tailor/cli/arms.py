"""tailor arms: what can be chosen from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspect import Parameter

    from rich.table import Table


def arms() -> None:
    """List every arm family and selector, with their options; installed plugins too."""
    from rich.console import Console

    Console().print(_family_table(), _selector_table())


def _family_table() -> Table:
    from rich.table import Column, Table

    from tailor.strategies import registry

    table = Table(
        Column("family", no_wrap=True),
        "task",
        "arms",
        "idea, and options",
        title="Arm families",
        caption="K: one for each class",
    )
    for name in registry:
        family = registry.find(name)
        table.add_row(
            name,
            "both" if len(family.tasks) > 1 else ", ".join(family.tasks),
            "K" if family.per_class else "1",
            describe(family, registry.options(name)),
        )
    return table


def _selector_table() -> Table:
    from rich.table import Column, Table

    from tailor.bandits import registry

    table = Table(Column("selector", no_wrap=True), "idea, and options", title="Selectors")
    for name in registry:
        table.add_row(name, describe(registry.find(name), registry.options(name)))
    return table


def describe(plugin: object, options: dict[str, Parameter]) -> str:
    """The first sentence of a class's docstring and its options, as rich markup."""
    import inspect
    import re

    from rich.markup import escape

    docstring = inspect.getdoc(plugin) or ""
    paragraph = docstring.split("\n\n")[0].replace("\n", " ")
    # The full stop of "et al." ends no sentence.
    sentence = re.split(r"(?<!et al)\.(?:\s|$)", paragraph)[0]
    if not options:
        return escape(sentence)
    listed = ", ".join(_with_default(option) for option in options.values())
    return f"{escape(sentence)}\n[cyan]{escape(listed)}[/]"


def _with_default(option: Parameter) -> str:
    default = "" if option.default is option.empty else repr(option.default)
    return f"{option.name}={default}"
