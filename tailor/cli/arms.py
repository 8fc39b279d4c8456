"""tailor arms: what can be chosen from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspect import Parameter


def arms() -> None:
    """List every arm family and selector, with their options; installed plugins too."""
    from rich.console import Console
    from rich.table import Column, Table

    from tailor import bandits, strategies

    families = Table(
        Column("family", no_wrap=True), "task", "arms", "idea, and options", title="Arm families"
    )
    for name in strategies.registry:
        family = strategies.registry.find(name)
        task = "both" if len(family.tasks) > 1 else ", ".join(family.tasks)
        number = "K" if family.per_class else "1"
        families.add_row(name, task, number, described(family, strategies.registry.options(name)))
    families.caption = "K: one for each class"
    selectors = Table(Column("selector", no_wrap=True), "idea, and options", title="Selectors")
    for name in bandits.registry:
        selectors.add_row(
            name, described(bandits.registry.find(name), bandits.registry.options(name))
        )
    Console().print(families, selectors)


def described(what: object, options: dict[str, Parameter]) -> str:
    """The first sentence of its docstring, where the full stop of "et al." ends none, and its
    options.
    """
    import inspect
    import re

    from rich.markup import escape

    first = (inspect.getdoc(what) or "").split("\n\n")[0].replace("\n", " ")
    idea = re.split(r"(?<!et al)\.(?:\s|$)", first)[0]
    defaults = ((p.name, "" if p.default is p.empty else repr(p.default)) for p in options.values())
    listed = ", ".join(f"{name}={default}" for name, default in defaults)
    return escape(idea) + (f"\n[cyan]{escape(listed)}[/]" if listed else "")
