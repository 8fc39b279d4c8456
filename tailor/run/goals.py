"""What a run is to reach, as it was set while labelling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Self

from tailor.run.event_base import Body, RunEvent
from tailor.run.stopping import Budget, ClassCounts, StoppingRule, TargetAccuracy


@dataclass(frozen=True)
class Goals:
    """When a run has enough; None where nothing is set.

    budget     labels in all
    per_class  labels of every class
    accuracy   that the lower end of the hold-out's interval is to reach, in (0, 1]

    Raises InputError for numbers that can't be reached.

    >>> Goals(budget=500).rules()
    [Budget(labels=500)]
    """

    budget: int | None = None
    per_class: int | None = None
    accuracy: float | None = None

    def __post_init__(self) -> None:
        self.rules()

    def rules(self) -> list[StoppingRule]:
        """The stopping rules that they are."""
        rules: list[StoppingRule] = []
        if self.budget is not None:
            rules.append(Budget(self.budget))
        if self.per_class is not None:
            rules.append(ClassCounts(self.per_class))
        if self.accuracy is not None:
            rules.append(TargetAccuracy(self.accuracy))
        return rules

    def in_place_of(self, rules: Sequence[StoppingRule]) -> list[StoppingRule]:
        """These goals, and those of the rules (tailor.toml's, say) of whose kind none is set."""
        own = self.rules()
        kinds = {type(rule) for rule in own}
        others = []
        for rule in rules:
            if type(rule) not in kinds:
                others.append(rule)
        return own + others


@dataclass(frozen=True)
class GoalsSet(RunEvent):
    """These goals, and no others, count from now on."""

    kind = "goals"
    goals: Goals
    by: str | None = None

    def body(self) -> Body:
        return asdict(self.goals) | {"by": self.by}

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        goals = Goals(
            budget=body["budget"],
            per_class=body["per_class"],
            accuracy=body["accuracy"],
        )
        return cls(goals, body.get("by"))
