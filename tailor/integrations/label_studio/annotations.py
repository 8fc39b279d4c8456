"""What the annotations of an example say, taken together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tailor.integrations.label_studio.label_config import LabelConfig


@dataclass(frozen=True)
class Annotation:
    """One annotation of a task."""

    id: int
    who: int  # the user
    at: float  # when it was changed last, by Label Studio's clock
    classes: tuple[str, ...] | None  # None: skipped

    @classmethod
    def read(cls, given: dict[str, Any], config: LabelConfig) -> Annotation:
        who = given.get("completed_by") or 0
        classes: tuple[str, ...] | None = config.chosen(given.get("result") or [])
        if given.get("was_cancelled") or (not classes and config.kind == "multi-class"):
            classes = None  # submitted without a choice: nothing is known from it
        at = datetime.fromisoformat(given["updated_at"]).timestamp()
        return cls(given["id"], who["id"] if isinstance(who, dict) else who, at, classes)


@dataclass(frozen=True)
class SettledAnswer:
    """What counts. classes None: it was skipped."""

    classes: tuple[str, ...] | None
    who: int
    at: float


def settled(annotations: Iterable[Annotation]) -> SettledAnswer | None:
    """The answer that most annotators gave; of equally frequent ones the latest. None where there
    is no annotation.

    Of several annotations by one person the latest counts. A skip counts where nobody gave an
    answer.
    """
    latest: dict[int, Annotation] = {}
    for one in sorted(annotations, key=lambda a: (a.at, a.id)):
        latest[one.who] = one
    votes = [a for a in latest.values() if a.classes is not None] or list(latest.values())
    if not votes:
        return None
    count = {a.classes: sum(b.classes == a.classes for b in votes) for a in votes}
    best = max(votes, key=lambda a: (count[a.classes], a.at, a.id))
    return SettledAnswer(best.classes, best.who, best.at)
