"""Whatever people do in whatever order, a new process finds the same state and goes on with the same picks."""

from __future__ import annotations

import contextlib
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rooms import counted, found, open_room, open_session, state
from small import Points

from tailor.errors import InputError

#: (what, who or which, which class)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["next", "next", "next", "answer", "answer", "answer", "answer", "correct", "skip", "withdraw", "again",
             "outside", "plan", "early", "early", "classes", "settle", "release", "reopen"]
        ),
        st.integers(0, 7),
        st.integers(0, 7),
    ),
    min_size=10,
    max_size=60,
)  # fmt: skip


class Play:
    """One run, driven step by step; what can't be done at a moment is refused and changes nothing."""

    def __init__(self, path, kind, families, selector):
        self.path = path
        self.options = {"kind": kind, "families": families, "selector": selector, "batch": 6, "holdout": 0.25}
        self.room, self.fresh = self.open(path), 0

    def open(self, path):
        return open_room(path, Points(50), room={"overlap": 2, "overlap_share": 0.3}, **self.options)

    def some(self, positions, which):
        journal = self.room.session.journal
        positions = sorted(positions)
        return journal.ids[positions[which % len(positions)]] if positions else "nothing"

    def classes(self, which):
        return [self.room.classes[which % len(self.room.classes)]]

    def step(self, what, which, klass):
        room, journal, who = self.room, self.room.session.journal, f"p{which % 3}"
        match what:
            case "next":
                room.next(who, 1 + klass % 3)
            case "answer":
                held = room.next(who, 1).items
                if held:
                    room.answer(who, held[0].id, self.classes(klass))
            case "correct":
                room.answer(who, self.some(journal.who, klass + 3 * which), self.classes(klass))
            case "skip":
                room.answer(who, self.some(journal.stories, klass + 5 * which), None)
            case "withdraw":
                room.session.withdraw([self.some(journal.who, klass + 5 * which)], by=who)
            case "again":
                room.session.offer_again([self.some(journal.books.skipped.tolist(), klass)])
            case "outside":
                room.session.tell({journal.ids[3 * which + klass]: room._checked("x", self.classes(klass))}, by=who)
            case "plan":
                room.planner.step()
            case "early":  # much is answered between the draft of a round and its beginning
                if room.planner._ready is None and room.session.walk is not None:
                    room.planner._draft()
            case "settle":
                room.settle(self.some(journal.votes.disputed or journal.votes.asked, klass), self.classes(klass), who)
            case "release":
                room.release(who)
            case "reopen":
                self.room.close()
                self.room = self.open(self.path)
            case "classes":
                self.edit(which, klass)

    def edit(self, which, klass):
        room, names = self.room, self.room.classes
        self.fresh += 1
        match which % 4:
            case 3 if room.last_merge() and room.last_merge()["old"] not in names:
                room.undo_merge(room.last_merge()["event"], "bob")
            case 0 if len(names) < 5:
                room.add_class(f"new{self.fresh}", "ann")
            case 1:
                room.rename_class(names[klass % len(names)], f"other{self.fresh}", "ann")
            case 2 if len(names) > 2:
                room.merge_classes(names[klass % len(names)], names[(klass + 1) % len(names)], "ann")

    def check(self, tmp):
        """Against a second process that opens a copy of the store."""
        session = self.room.session
        copy = tmp / "copy.db"
        for end in ("", "-wal", "-shm"):
            (tmp / f"copy.db{end}").unlink(missing_ok=True)
            source = self.path.with_name(self.path.name + end)
            if source.exists():
                shutil.copyfile(source, tmp / f"copy.db{end}")
        other = open_session(copy, Points(50), **self.options)
        assert state(other.journal) == state(session.journal)
        assert found(session.journal) == counted(session.journal)
        if session.walk is not None and not session.batch_is_asked():
            other.walk_again()
            assert state(other.journal) == state(session.journal)
            assert other.take(3) == session.take(3)
        other.store.close()


@pytest.mark.parametrize(
    ("kind", "families", "selector"),
    [
        ("multi-class", ("galaxy(pending=revealed)", "confidence"), "tailor"),
        ("multi-label", ("galaxy(pending=revealed)", "random"), "tailor"),
        ("multi-class", ("galaxy", "random"), "albl"),
        ("multi-label", ("uncertainty", "random"), "deal"),
    ],
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_any_order_of_calls(tmp_path_factory, kind, families, selector, steps):
    tmp = tmp_path_factory.mktemp("run")
    play = Play(tmp / "a.db", kind, families, selector)
    play.room.planner.step()
    for number, (what, which, klass) in enumerate(steps):
        with contextlib.suppress(InputError):
            play.step(what, which, klass)
        if number % 20 == 19:
            play.check(tmp)
    play.check(tmp)
    play.room.close()
    shutil.rmtree(tmp)
