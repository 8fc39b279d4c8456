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
        result = annotation.get("result") or []
        chosen = config.chosen(result)
        # Submitted without a choice where there must be one: nothing is known from it.
        is_empty = not chosen and config.kind == "multi-class"
        is_skipped = annotation.get("was_cancelled") or is_empty
        updated_at = datetime.fromisoformat(annotation["updated_at"])
        return cls(
            id=annotation["id"],
            user=user,
            time=updated_at.timestamp(),
            classes=None if is_skipped else chosen,
        )


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
    by_time = sorted(annotations, key=lambda annotation: (annotation.time, annotation.id))
    for annotation in by_time:
        latest_by_user[annotation.user] = annotation
    if not latest_by_user:
        return None
    votes = []
    for annotation in latest_by_user.values():
        if annotation.classes is not None:
            votes.append(annotation)
    if not votes:  # all of them skipped it
        votes = list(latest_by_user.values())
    counts = Counter(vote.classes for vote in votes)

    def rank(vote: Annotation) -> tuple[int, float, int]:
        return counts[vote.classes], vote.time, vote.id

    winner = max(votes, key=rank)
    return SettledAnswer(winner.classes, winner.user, winner.time)
