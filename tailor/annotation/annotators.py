"""How much each annotator answered, when, and how fast it goes altogether."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tailor.errors import InputError
from tailor.run.events import (
    AnswersTold,
    RunEvent,
    SeveralEvents,
    VoteCast,
    read_event,
)
from tailor.storage.base import Store

LONGEST_NAME = 200
#: seconds over which the pace is measured; with less behind us it would jump
PACE_WINDOW = 300.0
SHORTEST_WINDOW = 15.0
#: answers of each annotator that are remembered for going back
REMEMBERED = 1000
#: events with answers in them
ANSWER_KINDS = (AnswersTold.kind, VoteCast.kind, SeveralEvents.kind)


def check_annotator(name: str) -> None:
    """Raises InputError where this can't be an annotator's name."""
    if isinstance(name, str):
        is_long_enough = len(name) >= 1
        if is_long_enough and len(name) <= LONGEST_NAME:
            return
    shown = str(name)[:50]
    raise InputError(f"the name {shown!r} won't do: 1 to {LONGEST_NAME} characters are needed")


@dataclass
class AnnotatorActivity:
    """What one annotator did so far."""

    name: str
    answered: int = 0  # examples; a correction counts for nothing
    last: float | None = None  # time of the latest answer
    recent: dict[int, None] = field(default_factory=dict)  # positions, the latest answer last


class Annotators:
    """Everybody who answered in this run, in the order of their first answers.

    Read from the events: skips, and answers that someone else has corrected, stand nowhere else.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        """clock: the time of day, as events are dated."""
        self._clock = clock
        self._activities: dict[str, AnnotatorActivity] = {}
        self._answer_times: deque[float] = deque()
        for stored in store.events():
            # Others may hold large arrays, which are not read here.
            if stored.kind not in ANSWER_KINDS:
                continue
            event = read_event(stored.kind, stored.body, stored.data)
            for annotator, position in _answers_in(event):
                self.record_answer(annotator, position, stored.time)

    def record_answer(
        self,
        annotator: str,
        position: int,
        time: float,
    ) -> None:
        activity = self._activities.get(annotator)
        if activity is None:
            activity = AnnotatorActivity(annotator)
            self._activities[annotator] = activity
        activity.last = time
        recent = activity.recent
        if position in recent:
            # A correction: no further answer, but it moves to the end, where the latest stands.
            recent.pop(position)
        else:
            activity.answered += 1
            self._answer_times.append(time)
        recent[position] = None
        if len(recent) > REMEMBERED:
            oldest = next(iter(recent))
            recent.pop(oldest)

    def has_answered(self, annotator: str, position: int) -> bool:
        """Whether an annotator has answered an example, as far as is remembered."""
        activity = self._activities.get(annotator)
        return activity is not None and position in activity.recent

    def recent(self, annotator: str) -> list[int]:
        """The positions that an annotator answered lately, each once, newest first."""
        activity = self._activities.get(annotator)
        if activity is None:
            return []
        return list(reversed(activity.recent))

    def pace(self) -> float:
        """Answers a second, of all together, over the last minutes."""
        now = self._clock()
        window_start = now - PACE_WINDOW
        times = self._answer_times
        while times and times[0] < window_start:
            times.popleft()
        if not times:
            return 0.0
        since_first = now - times[0]
        # One answer a moment ago would otherwise look like a pace of hundreds a second.
        window = max(since_first, SHORTEST_WINDOW)
        return len(times) / window

    def __iter__(self) -> Iterator[AnnotatorActivity]:
        return iter(self._activities.values())


def _answers_in(event: RunEvent) -> Iterator[tuple[str, int]]:
    """(annotator, position) of every answer, skip and vote in an event."""
    if isinstance(event, SeveralEvents):
        for inner in event.events:
            yield from _answers_in(inner)
    elif isinstance(event, VoteCast):
        yield event.by, event.position
    elif isinstance(event, AnswersTold):
        # Answers that came from outside, such as an import, are nobody's.
        if not event.by:
            return
        for position, _ in event.answers:
            yield event.by, position
        for position in event.skipped:
            yield event.by, position
