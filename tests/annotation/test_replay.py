"""Whatever people do in whatever order, a new process finds the same state and goes on with the
same picks.
"""

from __future__ import annotations

import contextlib
import shutil

import numpy as np
import pytest
from coordinators import counted, found, open_coordinator, open_session, state
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import Points

from tailor.annotation.answer_collector import checked_label
from tailor.errors import InputError

#: (what, who or which, which class)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "next",
                "next",
                "next",
                "answer",
                "answer",
                "answer",
                "answer",
                "correct",
                "skip",
                "withdraw",
                "again",
                "outside",
                "plan",
                "early",
                "early",
                "classes",
                "settle",
                "release",
                "reopen",
            ]
        ),
        st.integers(0, 7),
        st.integers(0, 7),
    ),
    min_size=10,
    max_size=60,
)


class Play:
    """One run, driven step by step; what can't be done at a moment is refused and changes
    nothing.
    """

    def __init__(self, path, kind, families, selector):
        self.path = path
        self.options = {
            "kind": kind,
            "strategies": families,
            "selector": selector,
            "batch": 6,
            "holdout": 0.25,
        }
        self.coordinator = self.open(path)
        self.fresh = 0

    def open(self, path):
        return open_coordinator(
            path, Points(50), coordinator={"overlap": 2, "overlap_share": 0.3}, **self.options
        )

    def some(self, positions, which):
        run_state = self.coordinator.session.run_state
        positions = sorted(positions)
        return run_state.ids[positions[which % len(positions)]] if positions else "nothing"

    def classes(self, which):
        return [self.coordinator.classes[which % len(self.coordinator.classes)]]

    def step(self, what, which, klass):
        coordinator = self.coordinator
        run_state = self.coordinator.session.run_state
        who = f"p{which % 3}"
        table = run_state.label_table
        picked = table.picks.positions.tolist()
        match what:
            case "next":
                coordinator.next(who, 1 + klass % 3)
            case "answer":
                held = coordinator.next(who, 1).items
                if held:
                    coordinator.answer(who, held[0].id, self.classes(klass))
            case "correct":
                coordinator.answer(
                    who, self.some(run_state.answered_by, klass + 3 * which), self.classes(klass)
                )
            case "skip":
                coordinator.answer(who, self.some(picked, klass + 5 * which), None)
            case "withdraw":
                coordinator.session.withdraw(
                    [self.some(run_state.answered_by, klass + 5 * which)], by=who
                )
            case "again":
                coordinator.session.offer_again(
                    [self.some(np.flatnonzero(table.answers.skipped).tolist(), klass)]
                )
            case "outside":
                coordinator.session.tell(
                    {
                        run_state.ids[3 * which + klass]: checked_label(
                            run_state.task, "x", self.classes(klass)
                        )
                    },
                    by=who,
                )
            case "plan":
                coordinator.planner.step()
            case "early":  # much is answered between the draft of a round and its beginning
                if (
                    coordinator.planner._ready is None
                    and coordinator.session.session_round is not None
                ):
                    coordinator.planner._prepare_round()
            case "settle":
                coordinator.settle(
                    self.some(run_state.consensus.disputed or run_state.consensus.asked, klass),
                    self.classes(klass),
                    who,
                )
            case "release":
                coordinator.release(who)
            case "reopen":
                self.coordinator.close()
                self.coordinator = self.open(self.path)
            case "classes":
                self.edit(which, klass)

    def edit(self, which, klass):
        coordinator = self.coordinator
        names = self.coordinator.classes
        self.fresh += 1
        match which % 4:
            case 3 if (
                coordinator.class_editor.last_merge()
                and coordinator.class_editor.last_merge()["old"] not in names
            ):
                coordinator.class_editor.undo_merge(
                    coordinator.class_editor.last_merge()["event"], "bob"
                )
            case 0 if len(names) < 5:
                coordinator.class_editor.add(f"new{self.fresh}", "ann")
            case 1:
                coordinator.class_editor.rename(
                    names[klass % len(names)], f"other{self.fresh}", "ann"
                )
            case 2 if len(names) > 2:
                coordinator.class_editor.merge(
                    names[klass % len(names)], names[(klass + 1) % len(names)], "ann"
                )

    def check(self, tmp):
        """Against a second process that opens a copy of the store."""
        session = self.coordinator.session
        copy = tmp / "copy.db"
        for end in ("", "-wal", "-shm", ".head"):
            (tmp / f"copy.db{end}").unlink(missing_ok=True)
            source = self.path.with_name(self.path.name + end)
            if source.exists():
                shutil.copyfile(source, tmp / f"copy.db{end}")
        other = open_session(copy, Points(50), **self.options)
        assert state(other.run_state) == state(session.run_state)
        assert found(session.run_state) == counted(session.run_state)
        if session.session_round is not None and not session.batch_is_asked():
            other.resume_round()
            assert state(other.run_state) == state(session.run_state)
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
    play.coordinator.planner.step()
    for number, (what, which, klass) in enumerate(steps):
        with contextlib.suppress(InputError):
            play.step(what, which, klass)
        if number % 20 == 19:
            play.check(tmp)
    play.check(tmp)
    play.coordinator.close()
    shutil.rmtree(tmp)
