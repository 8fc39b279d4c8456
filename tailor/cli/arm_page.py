"""What `tailor arms NAME` prints: all that there is to say of one family or selector."""

from __future__ import annotations

from inspect import Parameter
from typing import TYPE_CHECKING, Any

from tailor.cli.arms import needs_in_words, registry_of
from tailor.common.class_docstring import ClassDocstring, parse_docstring

if TYPE_CHECKING:
    from rich.console import RenderableType


def arm_page(text: str) -> list[RenderableType]:
    """The paragraphs and tables of a page.

    text  a name, or one with options: "seals(margin)"

    Raises UnknownName where no family or selector has it.
    """
    from rich.markup import escape
    from rich.text import Text

    before_options, _, _ = text.partition("(")
    name = before_options.strip()
    registry = registry_of(name)
    registered = registry.find(name)
    # Options that are given must be right, and a wrapper shows what it wraps.
    described: Any = registered
    if "(" in text:
        _, given = registry.parse(text)
        described = registry.make(name, **given)
    options = registry.options(name)
    docstring = parse_docstring(registered.__doc__ or "", set(options))
    page: list[RenderableType] = [f"[bold]{escape(text)}[/]: {escape(docstring.summary)}"]
    if hasattr(registered, "needs") and hasattr(registered, "tasks"):
        page.append(family_facts(described))
    page += [Text(paragraph) for paragraph in docstring.prose]
    for part, words in docstring.parts.items():
        page.append(f"[bold]{part}[/]: {escape(words)}")
    table = _options_table(options, docstring)
    page.append(table)
    setting = _setting(registry.kind, text)
    page.append(f"In tailor.toml: [cyan]{escape(setting)}[/]")
    if docstring.example:
        page.append("[bold]Example[/]")
        page.append(Text(docstring.example))
    return page


def family_facts(family: Any) -> str:
    """Idea, tasks, arms and needs of a family, in a line."""
    idea = "idea: not said"
    if family.idea is not None:
        idea = f"Idea: {family.idea.value}"
    tasks = " and ".join(sorted(family.tasks))
    if family.per_class:
        count = "one arm for each class"
    else:
        count = "one arm"
    return f"{idea} · for {tasks} tasks · {count} · needs: {needs_in_words(family)}"


def _options_table(options: dict[str, Parameter], docstring: ClassDocstring) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    if not options:
        return "It has no options."
    table = Table("option", "default", "meaning")
    for option, parameter in options.items():
        default = "needed"
        if parameter.default is not Parameter.empty:
            default = str(parameter.default)
        # An option that is not listed is told of in the text.
        meaning = docstring.options.get(option, "see above")
        table.add_row(option, Text(default or '""'), Text(meaning))
    return table


def _setting(kind: str, text: str) -> str:
    """How it is written in a run's settings."""
    if kind == "selector":
        return f'selector = "{text}"'
    return f'strategies = ["{text}"]'
