"""Who works on which example right now. Kept in memory: when the server ends, all leases end."""

from __future__ import annotations

from collections.abc import Callable, KeysView

#: leases that ended without an answer: whoever comes later than this many others is no longer known
REMEMBERED = 10_000


class Leases:
    """Each lease lasts `seconds` from its holder's last sign of life."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self.seconds = seconds
        self._clock = clock
        self._held: dict[str, dict[int, None]] = {}  # who -> positions, oldest first
        self._holders: dict[int, set[str]] = {}
        self._late: dict[
            tuple[str, int], None
        ] = {}  # handed out, and taken back before there was an answer
        self.seen: dict[str, float] = {}  # who -> last sign of life

    def touch(self, who: str) -> None:
        """A sign of life."""
        self.seen[who] = self._clock()

    def take(self, who: str, position: int) -> None:
        self._late.pop((who, position), None)
        self._held.setdefault(who, {})[position] = None
        self._holders.setdefault(position, set()).add(who)

    def end(self, who: str, position: int) -> None:
        """This one is answered. No lease, no harm."""
        self._late.pop((who, position), None)
        self._held.get(who, {}).pop(position, None)
        holders = self._holders.get(position, set())
        holders.discard(who)
        if not holders:
            self._holders.pop(position, None)

    def end_all(self, position: int) -> None:
        """Nobody needs to work on this one any more."""
        for who in list(self.holders(position)):
            self._take_back(who, position)

    def release(self, who: str) -> list[int]:
        """Someone leaves -> what was held."""
        self.seen.pop(who, None)
        held = self.of(who)
        for position in held:
            self._take_back(who, position)
        self._held.pop(who, None)
        return held

    def _take_back(self, who: str, position: int) -> None:
        self.end(who, position)
        self._late[who, position] = None
        if len(self._late) > REMEMBERED:
            self._late.pop(next(iter(self._late)))

    def is_late(self, who: str, position: int) -> bool:
        """Whether an answer of theirs would be to what they were handed, but after its lease."""
        return (who, position) in self._late

    def expire(self) -> list[int]:
        """End the leases of those who gave no sign of life -> what they held."""
        limit = self._clock() - self.seconds
        gone = [who for who, seen in self.seen.items() if seen < limit]
        return [position for who in gone for position in self.release(who)]

    def of(self, who: str) -> list[int]:
        """What someone holds, oldest first."""
        return list(self._held.get(who, ()))

    @property
    def positions(self) -> KeysView[int]:
        """All that someone holds."""
        return self._holders.keys()

    def holders(self, position: int) -> set[str]:
        return self._holders.get(position, set())

    @property
    def alive(self) -> int:
        """How many people have given a sign of life lately."""
        limit = self._clock() - self.seconds
        return sum(seen >= limit for seen in self.seen.values())
