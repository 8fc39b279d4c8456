"""Who answered how much, when, and how fast it goes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tailor.storage.base import Event, Store

#: seconds over which the pace is measured, and the fewest
WINDOW, SHORTEST = 300.0, 15.0
#: answers kept for going back
REMEMBERED = 1000


@dataclass
class Annotator:
    name: str
    answered: int = 0
    last: float | None = None
    recent: dict[int, None] = field(default_factory=dict)  # positions, the latest answer last


class People:
    """Everybody who answered in this run. Going back goes through what someone answered, each
    example once.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        """From the events: skips, and answers that someone else has corrected, are known by nothing
        else.
        """
        self._clock = clock
        self._people: dict[str, Annotator] = {}
        self._times: deque[float] = deque()
        for event in store.events():
            for by, position in _given(event):
                self.answered(by, position, event.time)

    def answered(self, who: str, position: int, at: float) -> None:
        person = self._people.setdefault(who, Annotator(who))
        person.last = at
        if position in person.recent:
            person.recent.pop(position)  # a correction: no further answer
        else:
            person.answered += 1
            self._times.append(at)
        person.recent[position] = None
        if len(person.recent) > REMEMBERED:
            person.recent.pop(next(iter(person.recent)))

    def recent(self, who: str) -> list[int]:
        """Someone's latest answers, newest first."""
        person = self._people.get(who)
        return list(reversed(person.recent)) if person else []

    def pace(self) -> float:
        """Answers a second, all together, over the last minutes."""
        now = self._clock()
        while self._times and self._times[0] < now - WINDOW:
            self._times.popleft()
        return len(self._times) / max(now - self._times[0], SHORTEST) if self._times else 0.0

    def __iter__(self) -> Iterator[Annotator]:
        return iter(self._people.values())


def _given(event: Event) -> Iterator[tuple[str, int]]:
    """Who answered or skipped which positions."""
    happened = event.body["events"] if event.kind == "several" else [(event.kind, event.body)]
    for kind, body in happened:
        if kind == "vote":
            yield body["by"], body["position"]
        elif kind == "told" and body.get("by"):
            yield from ((body["by"], position) for position, _ in body["answers"])
            yield from ((body["by"], position) for position in body["skipped"])
