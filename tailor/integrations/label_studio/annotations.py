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
        classes: tuple[str, ...] | None = chosen
        if is_empty or annotation.get("was_cancelled"):
            classes = None
        updated_at = datetime.fromisoformat(annotation["updated_at"])
        return cls(
            id=annotation["id"],
            user=user,
            time=updated_at.timestamp(),
            classes=classes,
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
    latest = _latest_of_each_user(annotations)
    if not latest:
        return None
    votes = []
    for annotation in latest:
        if annotation.classes is not None:
            votes.append(annotation)
    if not votes:  # all of them skipped it
        votes = latest
    counts = Counter(vote.classes for vote in votes)

    def rank(vote: Annotation) -> tuple[int, float, int]:
        return counts[vote.classes], vote.time, vote.id

    winner = max(votes, key=rank)
    return SettledAnswer(winner.classes, winner.user, winner.time)


def _latest_of_each_user(annotations: Iterable[Annotation]) -> list[Annotation]:
    def age(annotation: Annotation) -> tuple[float, int]:
        # Two may bear the same time: the number tells which came later.
        return annotation.time, annotation.id

    latest_by_user: dict[int, Annotation] = {}
    for annotation in sorted(annotations, key=age):
        latest_by_user[annotation.user] = annotation
    return list(latest_by_user.values())
