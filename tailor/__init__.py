"""TAILOR: active learning that chooses its own algorithm.

Public names are imported when they are first used, so that `import tailor` is quick.

Selecting on plain arrays     `Learner` with `MultiClass` or `MultiLabel`
A run that survives a crash   `open_run`, which gives a `Run`; underneath, `Project` and `Session`
Pools and models              `open_pool`, `make_model`
Your own algorithms           `Strategy`, `ScoreStrategy`, `Selector`, `Reward`, `Pool`, `Model`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.common.lazy_import import lazy_import

if TYPE_CHECKING:
    from tailor.annotation.coordinator import Coordinator as Coordinator
    from tailor.bandits import Contest as Contest
    from tailor.bandits import Outcomes as Outcomes
    from tailor.bandits import Selector as Selector
    from tailor.bandits.rewards import LabelSummary as LabelSummary
    from tailor.bandits.rewards import Reward as Reward
    from tailor.errors import Exhausted as Exhausted
    from tailor.errors import InputError as InputError
    from tailor.errors import NotTrusted as NotTrusted
    from tailor.errors import TailorError as TailorError
    from tailor.errors import UnknownName as UnknownName
    from tailor.models import make_model as make_model
    from tailor.models.base import Model as Model
    from tailor.pools import open_pool as open_pool
    from tailor.pools.base import Pool as Pool
    from tailor.run.open_run import Run as Run
    from tailor.run.open_run import open_run as open_run
    from tailor.run.project import Project as Project
    from tailor.run.session import Session as Session
    from tailor.run.settings import Settings as Settings
    from tailor.selection.array_view import ArrayView as ArrayView
    from tailor.selection.learner import Learner as Learner
    from tailor.selection.pool_view import PoolView as PoolView
    from tailor.selection.round import Batch as Batch
    from tailor.selection.round import Pick as Pick
    from tailor.selection.round import Round as Round
    from tailor.strategies import ScoreStrategy as ScoreStrategy
    from tailor.strategies import Strategy as Strategy
    from tailor.task import MultiClass as MultiClass
    from tailor.task import MultiLabel as MultiLabel
    from tailor.task import Task as Task

__version__ = "0.1.0"

#: public name -> the module that defines it; the imports above say the same to an editor
_MODULES = {
    "ArrayView": "tailor.selection.array_view",
    "Batch": "tailor.selection.round",
    "Contest": "tailor.bandits",
    "Coordinator": "tailor.annotation.coordinator",
    "Exhausted": "tailor.errors",
    "InputError": "tailor.errors",
    "LabelSummary": "tailor.bandits.rewards",
    "Learner": "tailor.selection.learner",
    "Model": "tailor.models.base",
    "MultiClass": "tailor.task",
    "MultiLabel": "tailor.task",
    "NotTrusted": "tailor.errors",
    "Outcomes": "tailor.bandits",
    "Pick": "tailor.selection.round",
    "Pool": "tailor.pools.base",
    "PoolView": "tailor.selection.pool_view",
    "Project": "tailor.run.project",
    "Reward": "tailor.bandits.rewards",
    "Round": "tailor.selection.round",
    "Run": "tailor.run.open_run",
    "ScoreStrategy": "tailor.strategies",
    "Selector": "tailor.bandits",
    "Session": "tailor.run.session",
    "Settings": "tailor.run.settings",
    "Strategy": "tailor.strategies",
    "TailorError": "tailor.errors",
    "Task": "tailor.task",
    "UnknownName": "tailor.errors",
    "make_model": "tailor.models",
    "open_pool": "tailor.pools",
    "open_run": "tailor.run.open_run",
}

__all__ = [
    "ArrayView",
    "Batch",
    "Contest",
    "Coordinator",
    "Exhausted",
    "InputError",
    "LabelSummary",
    "Learner",
    "Model",
    "MultiClass",
    "MultiLabel",
    "NotTrusted",
    "Outcomes",
    "Pick",
    "Pool",
    "PoolView",
    "Project",
    "Reward",
    "Round",
    "Run",
    "ScoreStrategy",
    "Selector",
    "Session",
    "Settings",
    "Strategy",
    "TailorError",
    "Task",
    "UnknownName",
    "__version__",
    "make_model",
    "open_pool",
    "open_run",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_import(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
