"""The settings of a run, as plain values that its store and its tailor.toml hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tailor.bandits import AUTO_SELECTOR
from tailor.common.checks import (
    check_flag,
    check_list,
    check_number,
    check_seed,
    check_text,
    check_whole,
)
from tailor.errors import InputError
from tailor.strategies import expand_sets
from tailor.task import MultiClass, MultiLabel, Task

KINDS: dict[str, type[Task]] = {
    "multi-class": MultiClass,
    "multi-label": MultiLabel,
}

#: how a first batch may be chosen
STARTS = ("coverage", "random", "half")
#: what `auto` is
AUTO_START = "coverage"
#: settings by the names that version 0.1.0 gave them, and their names today
RENAMED = {"families": "strategies"}


def with_todays_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as an older version wrote them, with every key under today's name.

    Raises InputError where a setting is there under both names.
    """
    renamed = dict(values)
    for old_name, new_name in RENAMED.items():
        if old_name not in renamed:
            continue
        if new_name in renamed:
            raise InputError(
                f"{old_name} and {new_name} are the same setting, and both are given: keep "
                f"{new_name}"
            )
        renamed[new_name] = renamed.pop(old_name)
    return renamed


@dataclass(frozen=True)
class Settings:
    """A run is rebuilt from its settings and its events, so only `batch` may change once it has
    begun.

    strategies, selector and reward are names with options, as `tailor arms` lists them. "auto", of
    strategies, selector and start, becomes what it stands for.

    >>> Settings("multi-class", ("cat", "dog"), batch=20).task.size
    2
    """

    kind: str  # "multi-class" or "multi-label"
    classes: tuple[str, ...]
    strategies: tuple[str, ...] = ()  # empty: the paper's for the kind of task
    selector: str = "tailor"
    reward: str = "diversity"
    batch: int = field(default=100, compare=False)
    rounds: int = 20  # planned; ALBL, COMB and DEAL set their rates by it
    holdout: float = 0.1
    dropout_passes: int = 10  # for bald
    seed: int = 0
    start: str = "random"  # the first batch: "coverage", "random" or "half"
    cover: bool = False  # arms propose, and what covers the pool best is taken

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise InputError(f"kind is {self.kind!r}: it must be one of {', '.join(KINDS)}")
        listed = _check_strategies(self.strategies)
        holdout = _check_holdout(self.holdout)
        classes = check_list(self.classes, "classes", "names")
        names = [check_text(name, "strategy") for name in listed]
        # What "auto" stands for may change with a version, and a run must not change with it.
        strategies = expand_sets(names, self.kind)
        checked = {
            "classes": tuple(classes),
            "strategies": tuple(strategies),
            "selector": _check_selector(self.selector),
            "reward": check_text(self.reward, "reward"),
            "batch": check_whole(self.batch, "batch"),
            "rounds": check_whole(self.rounds, "rounds"),
            "holdout": holdout,
            "dropout_passes": check_whole(self.dropout_passes, "dropout_passes"),
            "seed": check_seed(self.seed),
            "start": _check_start(self.start),
            "cover": check_flag(self.cover, "cover"),
        }
        # The class is frozen: this is how its own constructor sets a value.
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self.task  # noqa: B018  checks the class names

    @property
    def task(self) -> Task:
        return KINDS[self.kind](self.classes)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def check_same(self, begun_with: Mapping[str, Any]) -> None:
        """Raise InputError where these are not the settings that the run was begun with.

        begun_with: what as_dict() gave then, by this version or an older one.
        """
        begun = Settings.from_dict(begun_with).as_dict()
        today = self.as_dict()
        for name, value in begun.items():
            # It may change between two rounds: nothing that was decided before depends on it.
            if name == "batch":
                continue
            if value != today[name]:
                raise InputError(
                    f"this run has {name} = {value!r}, now it is {today[name]!r}: begin another run"
                )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        options = with_todays_names(values)
        options["classes"] = tuple(options["classes"])
        options["strategies"] = tuple(options["strategies"])
        return cls(**options)


def _check_strategies(strategies: Any) -> list[Any]:
    if isinstance(strategies, str):
        strategies = [strategies]
    return check_list(strategies, "strategies", "names of arm families")


def _check_holdout(share: Any) -> float:
    holdout = check_number(share, "holdout", "it must lie in [0, 1)")
    if not 0 <= holdout < 1:
        raise InputError(f"holdout is {holdout}: it must lie in [0, 1)")
    return holdout


def _check_selector(selector: Any) -> str:
    name = check_text(selector, "selector")
    if name == "auto":
        return AUTO_SELECTOR
    return name


def _check_start(start: str) -> str:
    if start == "auto":
        return AUTO_START
    if check_text(start, "start") not in STARTS:
        raise InputError(f"start is {start!r}: it must be one of {', '.join(STARTS)}")
    return start
