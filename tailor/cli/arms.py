"""tailor arms: what can be chosen from, and what one of it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailor.cli.plan import complete_family

if TYPE_CHECKING:
    from inspect import Parameter

    from rich.table import Table

    from tailor.registry import Registry
    from tailor.strategies import Idea, Strategy

#: where a plugin's family stands that does not say what it goes by
NO_IDEA = "others"


def arms(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A family or selector: its formula, options, cost and an example.",
            autocompletion=complete_family,
        ),
    ] = None,
) -> None:
    """List every arm family by idea, and every selector; installed plugins too. With NAME, say all
    there is to say of it.
    """
    from rich.console import Console

    console = Console()
    if name is not None:
        from tailor.cli.arm_page import arm_page

        console.print(*arm_page(name), sep="\n\n")
        return
    for idea, names in families_by_idea().items():
        console.print(_family_table(idea, names))
    console.print(_selector_table())
    console.print("tailor arms NAME says more of one.", style="dim")


def families_by_idea() -> dict[Idea | None, list[str]]:
    """The names of the families of each idea; None for those that have none, in the end."""
    from tailor.strategies import Idea, registry

    families: dict[Idea | None, list[str]] = {idea: [] for idea in (*Idea, None)}
    for name in registry:
        family = registry.find(name)
        families[family.idea].append(name)
    return {idea: names for idea, names in families.items() if names}


def needs_in_words(family: Strategy | type[Strategy]) -> str:
    """What a family reads of the model, in a fixed order."""
    from tailor.selection.pool_view import Need

    needed = []
    for need in Need:
        if need in family.needs:
            needed.append(need.value)
    return ", ".join(needed) or "nothing of the model"


def _family_table(idea: Idea | None, names: list[str]) -> Table:
    from rich.table import Column, Table

    from tailor.strategies import registry

    heading = NO_IDEA
    caption = "They do not say what they go by."
    if idea is not None:
        heading = idea.value
        caption = idea.meaning
    table = Table(
        Column("family", no_wrap=True),
        "task",
        "arms",
        "what it does, and options",
        "needs",
        title=f"Arm families: {heading}",
        caption=f"{caption} K: one arm for each class.",
    )
    for name in names:
        family = registry.find(name)
        tasks = ", ".join(family.tasks)
        if len(family.tasks) > 1:
            tasks = "both"
        count = "1"
        if family.per_class:
            count = "K"
        table.add_row(
            name,
            tasks,
            count,
            describe(family, registry.options(name)),
            needs_in_words(family),
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
    if option.default is option.empty:
        default = ""
    else:
        default = repr(option.default)
    return f"{option.name}={default}"


def registry_of(name: str) -> Registry[Any]:
    """The registry that holds a family or selector. Raises UnknownName."""
    from tailor import bandits, strategies
    from tailor.errors import UnknownName

    for registry in (strategies.registry, bandits.registry):
        if name in registry.names():
            return registry
    known_names = [*strategies.registry, *bandits.registry]
    raise UnknownName("arm family or selector", name, known_names)
