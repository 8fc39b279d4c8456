"""The choices that make a run what it is, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from tailor.common.checks import check_list, check_number, check_seed, check_text, check_whole
from tailor.errors import InputError
from tailor.task import MultiClass, MultiLabel, Task

KINDS: dict[str, type[Task]] = {"multi-class": MultiClass, "multi-label": MultiLabel}


@dataclass(frozen=True)
class Settings:
    """A run is rebuilt from these and its events, so they can't change once it has begun; `batch`
    can.

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
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise InputError(f"kind is {self.kind!r}: it must be one of {', '.join(KINDS)}")
        families = [self.families] if isinstance(self.families, str) else self.families
        holdout = check_number(self.holdout, "holdout", "it must lie in [0, 1)")
        if not 0 <= holdout < 1:
            raise InputError(f"holdout is {holdout}: it must lie in [0, 1)")
        plain = {
            "classes": tuple(check_list(self.classes, "classes", "names")),
            "families": tuple(
                check_text(name, "family")
                for name in check_list(families, "families", "names of arm families")
            ),
            "selector": check_text(self.selector, "selector"),
            "reward": check_text(self.reward, "reward"),
            "holdout": holdout,
            "seed": check_seed(self.seed),
        }
        plain |= {
            name: check_whole(getattr(self, name), name)
            for name in ("batch", "rounds", "dropout_passes")
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        self.task  # noqa: B018  checks the class names

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
                raise InputError(
                    f"this run has {name} = {value!r}, now it is {now!r}: begin another run"
                )

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Settings:
        return cls(
            **{**values, "classes": tuple(values["classes"]), "families": tuple(values["families"])}
        )
