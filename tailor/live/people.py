"""Who answered how much, when, and how fast it goes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tailor.journal import Journal

#: seconds over which the pace is measured, and the fewest
WINDOW, SHORTEST = 300.0, 15.0
#: answers kept for going back
REMEMBERED = 1000


@dataclass
class Person:
    name: str
    answered: int = 0
    last: float | None = None
    recent: dict[int, None] = field(default_factory=dict)  # positions, the latest answer last


class People:
    """Everybody who answered in this run. Going back goes through what someone answered, each example once."""

    def __init__(self, journal: Journal, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._people: dict[str, Person] = {}
        self._times: deque[float] = deque()
        told = [(at, by, p) for p, (by, at) in journal.who.items() if by and not journal.votes.on(p)]
        voted = [(b.at, by, p) for p in journal.votes.asked for by, b in journal.votes.on(p).items()]
        for at, by, position in sorted(told + voted):
            self.answered(by, position, at)

    def answered(self, who: str, position: int, at: float) -> None:
        person = self._people.setdefault(who, Person(who))
        person.last = at
        if position in person.recent:
            person.recent.pop(position)  # a correction: no further answer
        else:
            person.answered += 1
            self._times.append(at)
        person.recent[position] = None
        if len(person.recent) > REMEMBERED:
            person.recent.pop(next(iter(person.recent)))

    def recent(self, who: str, n: int) -> list[int]:
        """Someone's latest answers, newest first."""
        person = self._people.get(who)
        return list(reversed(person.recent))[:n] if person else []

    def pace(self) -> float:
        """Answers a second, all together, over the last minutes."""
        now = self._clock()
        while self._times and self._times[0] < now - WINDOW:
            self._times.popleft()
        return len(self._times) / max(now - self._times[0], SHORTEST) if self._times else 0.0

    def __iter__(self) -> Iterator[Person]:
        return iter(self._people.values())
