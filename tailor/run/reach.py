"""One thing outside its folder that a run would touch, in words that a user can judge."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import EntryPoint

from tailor.registry import Registry

#: this package; what its own entry points name is no plugin
DISTRIBUTION = "tailor-active-learning"


class Action(StrEnum):
    """What a run would do with something."""

    CONNECTS = "connect to"
    RUNS = "run"
    WRITES = "write to"
    ADMITS = "let in"
    READS = "read"


@dataclass(frozen=True, order=True)
class Reach:
    """An action, and what it is done to: an address without its password, a file, a plugin."""

    action: Action
    target: str

    @property
    def needs_trust(self) -> bool:
        """Whether a user is asked about it. What is read on this machine stays on it."""
        return self.action is not Action.READS

    def __str__(self) -> str:
        # On one line and without what a terminal obeys: the text may be a stranger's.
        if self.target.isprintable():
            target = self.target
        else:
            target = repr(self.target)
        return f"{self.action} {target}"


def plugin_reaches(registry: Registry, name: str) -> list[Reach]:
    """The plugin of another package that a name stands for; none for the package's own names."""
    if name in registry.builtin:
        return []
    entry = registry.plugins().get(name)
    package = _package_of(entry)
    if package is None or package == DISTRIBUTION:
        return []
    return [Reach(Action.RUNS, f"the {registry.kind} {name!r} of the installed package {package}")]


def _package_of(entry: EntryPoint | None) -> str | None:
    if entry is None:
        return None
    if entry.dist is None:  # an entry point that was made by hand
        return entry.value
    return entry.dist.name
