"""The choices that make a run what it is, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from tailor.errors import InputError
from tailor.task import MultiClass, MultiLabel, Task

KINDS: dict[str, type[Task]] = {"multi-class": MultiClass, "multi-label": MultiLabel}


@dataclass(frozen=True)
class Settings:
    """A run is rebuilt from these and its events, so they can't change once it has begun; `batch` can.

    families, selector and reward are names with options, as `tailor arms` lists them.
    """

    kind: str  # "multi-class" or "multi-label"
    classes: tuple[str, ...]
    families: tuple[str, ...] = ()  # empty: the paper's for the kind of task
    selector: str = "tailor"
    reward: str = "diversity"
    batch: int = field(default=100, compare=False)
    rounds: int = 20  # planned; ALBL, COMB and DEAL set their rates by it
    holdout: float = 0.1
    dropout_passes: int = 10  # for bald
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"kind is {self.kind!r}: it must be one of {', '.join(KINDS)}")
        if not 0 <= self.holdout < 1:
            raise InputError(f"holdout is {self.holdout}: it must lie in [0, 1)")
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed is {self.seed}: it must lie in [0, 2^63)")
        for name in ("batch", "rounds", "dropout_passes"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: at least 1 is needed")

    @property
    def task(self) -> Task:
        return KINDS[self.kind](self.classes)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def check_same(self, then: dict[str, Any]) -> None:
        """then: as_dict() of when the run was begun."""
        for name, value in Settings.from_dict(then).as_dict().items():
            now = getattr(self, name)
            if name != "batch" and value != now:
                raise InputError(f"this run has {name} = {value!r}, now it is {now!r}: begin another run")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Settings:
        return cls(**{**values, "classes": tuple(values["classes"]), "families": tuple(values["families"])})
