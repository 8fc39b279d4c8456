"""Answers that come at the same time are written together: a crowd waits for the disk once, not in
a queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tailor.annotation.items import Receipt
from tailor.run.answer_writer import Happening
from tailor.run.session import Session


@dataclass(eq=False)
class QueuedAnswer:
    """What someone said, and what became of it."""

    who: str
    id: str
    label: Sequence[str] | None
    settles: bool = False  # counts at once, whatever the votes say
    receipt: Receipt | None = None
    error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        return self.receipt is not None or self.error is not None


class GroupCommit:
    """Whoever gets the lock first writes for all who wait, in one event; they find their receipts
    when it is free.
    """

    def __init__(
        self,
        session: Session,
        events_of: Callable[[QueuedAnswer], list[Happening]],
        receipt_of: Callable[[QueuedAnswer], Receipt],
    ) -> None:
        """events_of checks an answer; receipt_of is called when it is in the store. Both under the
        session's lock.
        """
        self._session = session
        self._events_of = events_of
        self._receipt_of = receipt_of
        self._waiting: deque[QueuedAnswer] = deque()

    def take(self, answer: QueuedAnswer) -> Receipt:
        """Returns when the answer is safe."""
        self._waiting.append(answer)
        with self._session.lock:
            while not answer.is_done:
                self._write()
        if answer.error is not None:
            raise answer.error
        assert answer.receipt is not None
        return answer.receipt

    def _write(self) -> None:
        taken: dict[str, QueuedAnswer] = {}
        later = []
        happened = []
        while self._waiting:
            answer = self._waiting.popleft()
            if answer.id in taken:  # what it changes depends on the one before
                later.append(answer)
                continue
            try:
                happened += self._events_of(answer)
                taken[answer.id] = answer
            except Exception as error:
                answer.error = error
        self._waiting.extendleft(reversed(later))
        try:
            self._session.record(happened)
            for answer in taken.values():
                answer.receipt = self._receipt_of(answer)
        except BaseException as error:
            for answer in taken.values():
                answer.error = error
