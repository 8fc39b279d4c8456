"""Which annotator has which examples in hand. Kept in memory: leases end when the server ends."""

from __future__ import annotations

from collections.abc import Callable, KeysView

#: positions; a dictionary without values keeps their order, oldest first
OrderedPositions = dict[int, None]
#: an annotator and a position
Lease = tuple[str, int]
#: revoked leases that are remembered; an answer to an older one counts as unasked
REMEMBERED = 10_000


class Leases:
    """Each lease lasts `seconds` from its holder's last sign of life.

    Nothing here is locked: callers hold the session's lock.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self.seconds = seconds
        self.last_seen: dict[str, float] = {}  # annotator -> last sign of life
        self._clock = clock
        # Both ways, since either side is asked for: by annotator, and by position.
        self._held: dict[str, OrderedPositions] = {}
        self._holders: dict[int, set[str]] = {}
        # Taken back before there was an answer, oldest first.
        self._revoked: dict[Lease, None] = {}

    def heartbeat(self, annotator: str) -> None:
        """Take note of a sign of life."""
        self.last_seen[annotator] = self._clock()

    def grant(self, annotator: str, position: int) -> None:
        lease = (annotator, position)
        self._revoked.pop(lease, None)
        held = self._held.setdefault(annotator, {})
        held[position] = None
        holders = self._holders.setdefault(position, set())
        holders.add(annotator)

    def end(self, annotator: str, position: int) -> None:
        """End a lease whose example is answered, if there is one."""
        lease = (annotator, position)
        self._revoked.pop(lease, None)
        held = self._held.get(annotator, {})
        held.pop(position, None)
        holders = self.holders(position)
        holders.discard(annotator)
        # An entry without holders would count as held.
        if not holders:
            self._holders.pop(position, None)

    def revoke(self, position: int) -> None:
        """End everybody's lease of an example that needs no answer any more."""
        # Over a copy: each revocation takes a holder away.
        holders = list(self.holders(position))
        for annotator in holders:
            self._revoke_from(annotator, position)

    def release(self, annotator: str) -> list[int]:
        """End all leases of an annotator who leaves, and return the positions that were held."""
        self.last_seen.pop(annotator, None)
        positions = self.held_by(annotator)
        for position in positions:
            self._revoke_from(annotator, position)
        self._held.pop(annotator, None)
        return positions

    def _revoke_from(self, annotator: str, position: int) -> None:
        self.end(annotator, position)
        lease = (annotator, position)
        self._revoked[lease] = None
        if len(self._revoked) > REMEMBERED:
            oldest = next(iter(self._revoked))
            self._revoked.pop(oldest)

    def was_revoked(self, annotator: str, position: int) -> bool:
        """Whether this example was leased to the annotator, and taken back without an answer."""
        lease = (annotator, position)
        return lease in self._revoked

    def expire(self) -> None:
        """End the leases of those who gave no sign of life for too long."""
        oldest_alive = self._oldest_alive()
        # Over a copy: release() takes entries away.
        annotators = list(self.last_seen)
        for annotator in annotators:
            seen = self.last_seen[annotator]
            if seen < oldest_alive:
                self.release(annotator)

    def _oldest_alive(self) -> float:
        now = self._clock()
        return now - self.seconds

    def held_by(self, annotator: str) -> list[int]:
        """The positions that an annotator holds, oldest lease first."""
        positions = self._held.get(annotator, {})
        return list(positions)

    @property
    def held_positions(self) -> KeysView[int]:
        """The positions that anybody holds."""
        return self._holders.keys()

    def holders(self, position: int) -> set[str]:
        return self._holders.get(position, set())

    def count_active(self) -> int:
        """How many annotators have given a sign of life lately."""
        oldest_alive = self._oldest_alive()
        active = 0
        for seen in self.last_seen.values():
            if seen >= oldest_alive:
                active += 1
        return active
