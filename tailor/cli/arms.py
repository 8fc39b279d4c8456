"""tailor arms: what can be chosen from."""

from __future__ import annotations


def arms() -> None:
    """List every arm family and selector, with their options; installed plugins too."""
    import inspect

    from rich.console import Console
    from rich.table import Table

    from tailor import bandit, strategies

    def options(parameters: dict[str, inspect.Parameter]) -> str:
        return ", ".join(f"{p.name}={p.default!r}" for p in parameters.values())

    families = Table("family", "tasks", "arms", "options", "idea", title="Arm families")
    for name in strategies.registry:
        family = strategies.registry.find(name)
        idea = (inspect.getdoc(family) or "").split(".")[0].split("\n\n")[0].replace("\n", " ")
        families.add_row(
            name,
            ", ".join(sorted(family.tasks)),
            "one a class" if family.per_class else "1",
            options(strategies.registry.options(name)),
            idea,
        )
    selectors = Table("selector", "options", "idea", title="Selectors")
    for name in bandit.registry:
        idea = (inspect.getdoc(bandit.registry.find(name)) or "").split("\n\n")[0].replace("\n", " ")
        selectors.add_row(name, options(bandit.registry.options(name)), idea)
    console = Console()
    console.print(families, selectors)
