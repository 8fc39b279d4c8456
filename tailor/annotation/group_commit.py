"""Answers that come at the same time are written together: a crowd waits for the disk once, not in
a queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tailor.annotation.items import Receipt
from tailor.annotation.roles import OWNER
from tailor.run.events import RunEvent
from tailor.run.session import Session


@dataclass(eq=False)
class QueuedAnswer:
    """An annotator's answer, and what became of it: a receipt or an error."""

    annotator: str
    id: str
    label: Sequence[str] | None
    settles: bool = False  # counts at once, whatever the votes say
    role: str = OWNER  # of the annotator
    unasked: bool = True  # counts without being asked for, where the role may
    was_asked: bool = False  # it is known otherwise that this person was asked
    spends_budget: bool = False  # a label beside those that wait; whoever checks it says so
    receipt: Receipt | None = None
    error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        return self.receipt is not None or self.error is not None


class GroupCommit:
    """Whoever gets the session's lock first writes the answers of all who wait, in one event. The
    others find their receipts when the lock is free.
    """

    def __init__(
        self,
        session: Session,
        events_of: Callable[[QueuedAnswer, Collection[QueuedAnswer]], list[RunEvent]],
        receipt_of: Callable[[QueuedAnswer], Receipt],
    ) -> None:
        """events_of checks an answer, beside those that are written with it, and says what it
        changes; receipt_of is called once it is in the store. Both are called under the session's
        lock.
        """
        self._session = session
        self._events_of = events_of
        self._receipt_of = receipt_of
        self._queue: deque[QueuedAnswer] = deque()

    def commit(self, answer: QueuedAnswer) -> Receipt:
        """Returns when the answer is in the store; raises what was wrong with it or the store."""
        self._queue.append(answer)
        with self._session.lock:
            while not answer.is_done:
                self._write_queue()
        if answer.error is not None:
            raise answer.error
        assert answer.receipt is not None
        return answer.receipt

    def _write_queue(self) -> None:
        group: dict[str, QueuedAnswer] = {}  # by the id of the example
        postponed = []
        events = []
        while self._queue:
            answer = self._queue.popleft()
            if answer.id in group:  # what it changes depends on the one before
                postponed.append(answer)
                continue
            try:
                events += self._events_of(answer, group.values())
                group[answer.id] = answer
            except Exception as error:
                answer.error = error
        # To the front again, in the order in which they came.
        self._queue.extendleft(reversed(postponed))
        try:
            self._session.record(events)
            for answer in group.values():
                answer.receipt = self._receipt_of(answer)
        except BaseException as error:
            # Each of them is raised in the thread that waits for it, an interrupt too.
            for answer in group.values():
                answer.error = error
