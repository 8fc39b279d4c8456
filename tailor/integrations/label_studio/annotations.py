"""What the annotations of an example say, taken together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tailor.integrations.label_studio.label_config import LabelConfig


@dataclass(frozen=True)
class Annotation:
    """One annotation of a task.

    user     the number of the annotator
    time     when it was changed last, by Label Studio's clock, in seconds since 1970
    classes  the names chosen, sorted; None where the task was skipped
    """

    id: int
    user: int
    time: float
    classes: tuple[str, ...] | None

    @classmethod
    def read(cls, annotation: dict[str, Any], config: LabelConfig) -> Annotation:
        """From an annotation as Label Studio's API gives it."""
        user = annotation.get("completed_by") or 0
        if isinstance(user, dict):
            user = user["id"]
        classes: tuple[str, ...] | None = config.chosen(annotation.get("result") or [])
        # Submitted without a choice where there must be one: nothing is known from it.
        is_empty = not classes and config.kind == "multi-class"
        if annotation.get("was_cancelled") or is_empty:
            classes = None
        time = datetime.fromisoformat(annotation["updated_at"]).timestamp()
        return cls(annotation["id"], user, time, classes)


@dataclass(frozen=True)
class SettledAnswer:
    """The answer that counts, who gave it and when. classes is None where it was skipped."""

    classes: tuple[str, ...] | None
    user: int
    time: float


def settled(annotations: Iterable[Annotation]) -> SettledAnswer | None:
    """The answer that most annotators gave; of equally frequent ones the latest. None where there
    is no annotation.

    Of several annotations by one person the latest counts. A skip counts where nobody gave an
    answer.
    """
    latest_by_user: dict[int, Annotation] = {}
    for annotation in sorted(annotations, key=lambda a: (a.time, a.id)):
        latest_by_user[annotation.user] = annotation
    latest = list(latest_by_user.values())
    votes = [annotation for annotation in latest if annotation.classes is not None] or latest
    if not votes:
        return None
    counts = Counter(vote.classes for vote in votes)
    winner = max(votes, key=lambda vote: (counts[vote.classes], vote.time, vote.id))
    return SettledAnswer(winner.classes, winner.user, winner.time)
