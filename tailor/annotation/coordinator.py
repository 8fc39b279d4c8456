"""One run, open to any number of annotators at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from tailor.annotation import overview
from tailor.annotation.agreement import agreement
from tailor.annotation.assignment import Assignment
from tailor.annotation.group_commit import GroupCommit, QueuedAnswer
from tailor.annotation.items import Handed, Item, Page, Receipt, item_of
from tailor.annotation.leases import Leases
from tailor.annotation.people import People
from tailor.annotation.planner import Planner
from tailor.annotation.review import labelled
from tailor.common.checks import (
    check_flag,
    check_function,
    check_instance,
    check_list,
    check_number,
    check_text,
    check_whole,
    shown,
)
from tailor.errors import InputError
from tailor.run.answer_writer import Happening
from tailor.run.project import Project
from tailor.run.session import Session
from tailor.run.state import RunState
from tailor.selection.class_edits import merged
from tailor.task import MultiClass

#: picks made at a time while several people label
AHEAD = 8
#: a name is no longer than this, and nobody is handed more examples at once
LONGEST_NAME, MOST = 200, 1000


class Coordinator:
    """Hands out examples, takes answers in, and shows how it goes. Safe to call from many threads.

    No example goes to two people, unless overlap asks for it: `overlap_share` of the examples,
    chosen by a hash of their ids, go to `overlap` people each. A lease lasts `lease` seconds from
    its holder's last sign of life.

    Nothing here waits for training: rounds are prepared in the background (see Planner) once
    start() was called.
    """

    def __init__(
        self,
        source: Project | Session,
        *,
        overlap: int = 1,
        overlap_share: float = 0.0,
        lease: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """clock is what leases end by: it must never jump, whatever is done to the machine's time
        of day. wall_clock is what events are dated by.
        """
        check_instance(source, (Project, Session), "source", "a Project or a Session")
        overlap = check_whole(overlap, "overlap")
        a_share, seconds = "a share from 0 to 1 is needed", "more than 0 seconds are needed"
        if not 0 <= check_number(overlap_share, "overlap_share", a_share) <= 1:
            raise InputError(f"overlap_share is {overlap_share}: {a_share}")
        if check_number(lease, "lease", seconds) <= 0:
            raise InputError(f"lease is {lease}: {seconds}")
        check_function(clock, "clock")
        check_function(wall_clock, "wall_clock")
        self.session = source if isinstance(source, Session) else source.session()
        self._lock = self.session.lock
        self._wall_clock = wall_clock
        self._leases = Leases(lease, clock)
        self._shelf = Assignment(self.session, self._leases, overlap, overlap_share)
        self._people = People(self.session.store, wall_clock)
        folders = [] if isinstance(source, Session) else source.folders
        self.planner = Planner(self.session, self._people.pace, self._on_the_shelf, folders)
        self._intake = GroupCommit(self.session, self._events_of, self._receipt)
        self._closed = False

    def start(self) -> None:
        """Begin to prepare rounds."""
        self.planner.start()

    def close(self) -> None:
        """Everything answered is safe already. Idempotent."""
        if not self._closed:
            self._closed = True
            self.planner.close()
            with self._lock:
                self.session.store.close()

    def __enter__(self) -> Coordinator:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _journal(self) -> RunState:
        return self.session.run_state

    @property
    def classes(self) -> tuple[str, ...]:
        return self._journal.task.classes

    @property
    def kind(self) -> str:
        """Of the task: multi-class or multi-label."""
        return self._journal.task.kind

    def run_state(self) -> RunState:
        """All that is known, as it stands now: a copy, to read or export at leisure."""
        with self._lock:
            return self._journal.copy()

    # ------------------------------------------------------------------ labelling

    def next(self, who: str, n: int = 1) -> Handed:
        """Up to n examples for someone: first those already in hand, so that a reload gives the
        same.
        """
        self._check_name(who)
        n = check_whole(n, "n", most=MOST)
        with self._lock:
            self._leases.touch(who)
            self._leases.expire()
            mine = self._shelf.in_hand(who)[:n]
            why_not = None
            while len(mine) < n and why_not is None:
                found = self._shelf.find(who)
                if found is None:
                    why_not = self._pick_more()
                else:
                    self._leases.take(who, found)
                    mine.append(found)
            self.planner.wake()
            if mine or why_not is None:
                return Handed(tuple(self._item(p) for p in mine), "ready")
            return Handed((), *why_not)

    def answer(self, who: str, id: str, label: Sequence[str] | None) -> Receipt:
        """Class names (multi-class: exactly one; multi-label: none is an answer too), or None to
        skip.

        It is in the store when this returns. Answering again corrects, whoever answered first.
        """
        self._check_name(who)
        return self._intake.take(QueuedAnswer(who, check_text(id, "id"), label))

    def history(self, who: str, n: int = 20) -> list[Item]:
        """Someone's latest answers, newest first; skips too, but nothing whose answer was
        withdrawn.
        """
        self._check_name(who)
        n = check_whole(n, "n")
        with self._lock:
            stand = (p for p in self._people.recent(who) if self._is_answered(who, p))
            return [self._item(p) for p in islice(stand, n)]

    def _is_answered(self, who: str | None, position: int) -> bool:
        run_state = self._journal
        has_label = run_state.label_of(position) is not None
        return has_label or run_state.is_skipped(position) or who in run_state.votes.on(position)

    def release(self, who: str) -> int:
        """Someone leaves: the leases end now. How many there were."""
        self._check_name(who)
        with self._lock:
            return len(self._leases.release(who))

    def heartbeat(self, who: str) -> None:
        """Someone is still there."""
        self._check_name(who)
        with self._lock:
            self._leases.touch(who)

    # ------------------------------------------------------------------ watching

    def overview(self) -> dict[str, Any]:
        """Where it stands, as plain JSON. Cheap: nothing is counted anew."""
        with self._lock:
            run_state = self._journal
            current = self._journal.current
            stopped = self.session.why_stop()
            return {
                "classes": list(self.classes),
                "kind": self.kind,
                "progress": {
                    "answered": run_state.answered(),
                    "examples": len(run_state.ids),
                    "waiting": len(run_state.waiting),
                    "disputed": len(run_state.votes.disputed),
                    "left": self._left(),
                    "batch": current.size if current else 0,
                    "round": current.number if current else None,
                },
                "rounds": overview.open_rounds(run_state, self._unasked()),
                "unreadable": overview.unreadable(run_state),
                "pace": round(60 * self._people.pace(), 1),
                "counts": overview.counts(run_state),
                "holdout": overview.holdout(run_state),
                "arms": overview.arms(run_state),
                "training": {
                    "state": self.session.stage,
                    "since": self.session.stage_since,
                    "done": self.session.step[0],
                    "total": self.session.step[1],
                    "trouble": self.planner.trouble,
                },
                "annotators": [
                    {
                        "name": p.name,
                        "answered": p.answered,
                        "last": p.last,
                        "leases": len(self._leases.of(p.name)),
                    }
                    for p in self._people
                ],
                "stopped": stopped or self.planner.nothing_left,
            }

    def why(self, id: str) -> dict[str, Any]:
        """Why an example was chosen, in numbers and in sentences."""
        with self._lock:
            return overview.why(self._journal, self.session._position(id))

    def item(self, id: str) -> Item:
        with self._lock:
            return self._item(self.session._position(id))

    # ------------------------------------------------------------------ review

    def labelled(
        self,
        *,
        klass: str | None = None,
        arm: str | None = None,
        annotator: str | None = None,
        disagrees: bool = False,
        offset: int = 0,
        limit: int = 100,
    ) -> Page:
        """What has a label, in the order of the pool. disagrees: only where the model said
        otherwise before it learned the label; of a random start, when there was none, where it does
        today.
        """
        disagrees = check_flag(disagrees, "disagrees")
        for name, given in (("klass", klass), ("arm", arm), ("annotator", annotator)):
            if given is not None:
                check_text(given, name)
        with self._lock:
            where = labelled(
                self._journal,
                self.session.probs,
                klass=klass,
                arm=arm,
                annotator=annotator,
                disagrees=disagrees,
            )
            return self._page(where.tolist(), offset, limit)

    def disagreements(self, offset: int = 0, limit: int = 100) -> Page:
        """Examples whose votes are all in, and give no majority; oldest first."""
        with self._lock:
            return self._page(list(self._journal.votes.disputed), offset, limit)

    def settle(self, id: str, label: Sequence[str] | None, by: str) -> Receipt:
        """The label that counts, whatever the votes say."""
        self._check_name(by)
        return self._intake.take(QueuedAnswer(by, check_text(id, "id"), label, settles=True))

    def agreement(self) -> dict[str, Any]:
        """How far people agree on shared examples: for all and for each pair."""
        with self._lock:
            task = self._journal.task
            votes = self._journal.votes.everything()
        return agreement(task, votes)

    # ------------------------------------------------------------------ classes

    def add_class(self, name: str, by: str) -> tuple[str, ...]:
        return self._edit(self.session.add_class, name, by=by)

    def rename_class(self, old: str, new: str, by: str) -> tuple[str, ...]:
        return self._edit(self.session.rename_class, old, new, by=by)

    def merge_classes(self, old: str, into: str, by: str) -> tuple[str, ...]:
        return self._edit(self.session.merge_classes, old, into, by=by)

    def labels_to_merge(self, old: str, into: str) -> tuple[int, int]:
        """How many labels a merge would move, and how many are there already; or why it can't be
        done.
        """
        with self._lock:
            run_state = self._journal
            merged(run_state.task, old, into)
            counts = run_state.counts()
            return counts[old], counts[into]

    def undo_merge(self, event: int, by: str) -> tuple[str, ...]:
        """Take back the merge with this number, if it is the latest."""
        event = check_whole(event, "event")
        return self._edit(lambda by: self.session.undo_merge(event, by), by=by)

    def last_merge(self) -> dict[str, Any] | None:
        """The merge that can be taken back, and what that would mean."""
        with self._lock:
            run_state = self._journal
            if not run_state.merges:
                return None
            merge = run_state.merges[-1]
            into = run_state.task.classes[
                merge.kept - (merge.kept > merge.gone)
            ]  # it may have another name by now
            return {
                "event": merge.event,
                "old": merge.old,
                "into": into,
                "by": merge.by,
                "labels": sum(
                    (position, None) not in merge.since for position in merge.labels
                ),  # that come back
                "since": len(
                    {at for at, who in merge.since if self._is_answered(who, at)}
                ),  # answers that stay
            }

    def _edit(self, edit: Callable[..., None], *names: str, by: str) -> tuple[str, ...]:
        """The classes after it. What people hold they keep."""
        self._check_name(by)
        edit(*names, by=by)
        self.planner.forget()
        return self.classes

    # ------------------------------------------------------------------ picks

    def _pick_more(self) -> tuple[str, str | None] | None:
        """Further picks of the open round, or of the next one; (state, reason) where there are
        none.
        """
        session = self.session
        n = 1 if self._leases.alive <= 1 else AHEAD
        left = session.budget_left()
        if left is not None:
            n = min(n, left)
        if n < 1:
            return (
                "stopped",
                session.why_stop() or "the budget is spent once the waiting examples are answered",
            )
        if session.take(n):
            return None
        if session.batch_is_asked():
            stop = session.why_stop()
            if stop:
                return "stopped", stop
            self.planner.enter_round()
        if session.take(n) or session.take(n, spare=True):
            return None
        if self.planner.nothing_left and session.batch_is_asked():
            return "stopped", self.planner.nothing_left
        return "preparing", self.planner.trouble

    def _unasked(self) -> int:
        """Picks of the batch that are still to be made."""
        current = self._journal.current
        session_round = self.session.session_round
        return (
            0
            if current is None
            else max(
                0, current.size - max(current.asked, session_round.slot if session_round else 0)
            )
        )

    def _left(self) -> int:
        """Examples of the batch without an answer; shared ones that wait for someone else's vote
        don't count. Where fewer are left in the pool than picks are to be made, it is these.
        """
        unasked = self._journal.askable(self._unasked())
        return unasked + len(self._journal.waiting) - len(self._journal.votes.open)

    def _on_the_shelf(self) -> int:
        """What of the batch nobody has in hand yet."""
        votes = self._journal.votes.open
        waiting = self._journal.waiting
        voted_on = sum(p in waiting for p in votes)
        in_hand = sum(p in waiting and p not in votes for p in self._leases.positions)
        return self._unasked() + len(waiting) - voted_on - in_hand

    # ------------------------------------------------------------------ answers

    def _events_of(self, answer: QueuedAnswer) -> list[Happening]:
        """What an answer changes, checked."""
        session = self.session
        run_state = self._journal
        position = session._position(answer.id)
        given = self._checked(answer.id, answer.label)
        if not answer.settles and self._is_vote(answer.who, position):
            return [session.voting(answer.id, given, answer.who, self._shelf.asked_for(position))]
        if given is None and run_state.label_of(position) is not None:
            if not answer.settles and run_state.who.get(position, (None,))[0] != answer.who:
                # a page that did not know of the label: nobody's answer is lost by another's skip
                return []
            skip = ("told", {"answers": [], "skipped": [position], "by": answer.who})
            return [session.withdrawing([answer.id], answer.who), skip]
        return [session.telling({answer.id: given}, answer.who)]

    def _is_vote(self, who: str, position: int) -> bool:
        """An answer counts as one vote among several while the matter is open, from those who have
        voted, and from those who were to vote and come late.
        """
        votes = self._journal.votes
        if votes.on(position) and self._leases.is_late(who, position):
            return True
        if position in votes.settled:
            return False
        if votes.on(position):
            return position in votes.open or who in votes.on(position)
        return position in self._journal.waiting and self._shelf.asked_for(position) > 1

    def _checked(self, id: str, label: Sequence[str] | None) -> Any:
        """As the task wants it: one name, or a list."""
        if label is None:
            return None
        try:
            names = [
                check_text(name, "label")
                for name in check_list(label, "label", "class names", ordered=False)
            ]
        except InputError:
            raise InputError(
                f"{id!r}: {shown(label)} is no answer: give a list of class names as label, or "
                "None to skip"
            ) from None
        if isinstance(self._journal.task, MultiClass):
            if len(names) != 1:
                raise InputError(
                    f"{id!r}: {names!r} has {len(names)} classes: give exactly one, or None to skip"
                )
            return names[0]
        return names

    def _receipt(self, answer: QueuedAnswer) -> Receipt:
        position = self._journal.position[answer.id]
        run_state = self._journal
        self._leases.touch(answer.who)
        self._leases.end(answer.who, position)
        if position not in run_state.waiting:
            self._leases.end_all(position)
        self._people.answered(answer.who, position, self._wall_clock())
        if answer.label is None and self.planner.nothing_left:
            self.planner.rest_is_over()  # a skip costs nothing: a budget may have one left
        self.planner.wake()
        return Receipt(answer.id, run_state.event, run_state.counts(), self._left())

    def _check_name(self, who: str) -> None:
        if not isinstance(who, str) or not 1 <= len(who) <= LONGEST_NAME:
            raise InputError(
                f"the name {str(who)[:50]!r} won't do: 1 to {LONGEST_NAME} characters are needed"
            )

    # ------------------------------------------------------------------ items

    def _page(self, positions: list[int], offset: int, limit: int) -> Page:
        offset = check_whole(offset, "offset", least=0)
        limit = check_whole(limit, "limit", 0, MOST)
        return Page(
            tuple(self._item(p) for p in positions[offset : offset + limit]), len(positions)
        )

    def _item(self, position: int) -> Item:
        return item_of(self._journal, position, self.session.probs)
