"""TAILOR: active learning that chooses its own algorithm."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "MultiClass": "tailor.task",
    "MultiLabel": "tailor.task",
    "Task": "tailor.task",
    "ArrayView": "tailor.selection.array_view",
    "PoolView": "tailor.selection.pool_view",
    "Learner": "tailor.selection.learner",
    "Batch": "tailor.selection.round",
    "Round": "tailor.selection.round",
    "TailorError": "tailor.errors",
    "InputError": "tailor.errors",
    "UnknownName": "tailor.errors",
    "Exhausted": "tailor.errors",
}
__all__ = [*_WHERE, "__version__"]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import tailor` is quick."""
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'tailor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
