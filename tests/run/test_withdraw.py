"""Answers that are taken back: as if they had never come."""

from __future__ import annotations

import numpy as np
import pytest
from test_odd_moments import reopened
from test_session import begin, play

from tailor.errors import InputError, UnknownName
from tailor.run.session import SKIP


def posterior(session):
    return {
        name: np.asarray(value)
        for name, value in session.run_state.learner.selector.state().items()
    }


def same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_allclose(one[name], other[name])


def test_an_asked_example_waits_again_and_another_is_free(tmp_path):
    session = begin(tmp_path / "a.db", holdout=0.3)
    asked = session.ask().ids
    session.tell({i: "a" for i in asked})
    outside = next(i for i in session.pool.ids if i not in asked)
    session.tell({outside: "b"})
    session.withdraw([asked[0], outside], by="ann")
    assert [s.id for s in session.waiting()] == [asked[0]]
    position = session.run_state.position
    assert session.run_state.label_table.untouched(position[outside])
    assert position[outside] not in session.run_state.answered_by
    assert session.run_state.counts() == {"a": len(asked) - 1, "b": 0, "c": 0}
    assert session.run_state.answered() == len(asked) - 1
    before = session.run_state.summary()
    assert reopened(session, holdout=0.3).run_state.summary() == before


def test_the_selector_has_never_heard_of_it_until_it_is_answered_again(tmp_path):
    """After it has learned from it."""
    kept = begin(tmp_path / "a.db", holdout=0.0)
    taken_back = begin(tmp_path / "b.db", holdout=0.0)
    for session in (kept, taken_back):
        play(session, 2)
    learned = [
        p for learned in kept.run_state.learner.history.rounds for p in learned.positions.tolist()
    ]
    assert not learned  # the second round's answers are learned from when the third is opened
    for session in (kept, taken_back):
        session.ask(1)
    one = kept.run_state.ids[int(kept.run_state.learner.history.rounds[0].positions[0])]
    label = kept.run_state.label_of(kept.run_state.position[one])
    full = posterior(kept)
    taken_back.withdraw([one])
    assert any((posterior(taken_back)[name] != full[name]).any() for name in full)
    before = posterior(taken_back)
    taken_back = reopened(taken_back, holdout=0.0)
    same(posterior(taken_back), before)
    taken_back.tell({one: int(label.argmax())})
    same(posterior(taken_back), full)
    taken_back.withdraw([one])
    taken_back.tell({one: SKIP})
    taken_back.offer_again([one])
    same(posterior(taken_back), before)
    assert one in {i for _ in range(20) for i in play(taken_back, 1)}


def test_a_skip_can_be_taken_back(tmp_path):
    session = begin(tmp_path / "a.db")
    one = session.ask().ids[0]
    session.tell({one: SKIP})
    session.withdraw([one])
    assert one in [s.id for s in session.waiting()]


def test_what_was_never_answered_cannot(tmp_path):
    session = begin(tmp_path / "a.db")
    one, two = session.ask().ids[:2]
    session.tell({one: "a"})
    with pytest.raises(InputError, match="has no answer"):
        session.withdraw([one, two])
    with pytest.raises(UnknownName):
        session.withdraw(["nope"])
    assert session.run_state.answered() == 1


def test_a_vote_can_be_taken_back(tmp_path):
    session = begin(tmp_path / "a.db")
    one = session.ask().ids[0]
    session.vote(one, "a", "ann", 2)
    session.vote(one, "b", "bob", 2)
    session.withdraw([one])
    assert not session.run_state.consensus.on(session.run_state.position[one])
    assert not session.run_state.consensus.disputed
    assert one in [s.id for s in session.waiting()]


REVEALED = {"strategies": ("galaxy(pending=revealed)",), "holdout": 0.0}


@pytest.mark.parametrize("closed", [False, True])
def test_a_label_withdrawn_in_mid_round_steers_no_arm(tmp_path, closed):
    """Told and taken back before the next pick: the picks are those of a run that never heard of
    it.
    """
    calm = begin(tmp_path / "a.db", **REVEALED)
    troubled = begin(tmp_path / "b.db", **REVEALED)
    for session in (calm, troubled):
        play(session, 1)
        session.ask(3)
    steered = begin(tmp_path / "c.db", **REVEALED)
    play(steered, 1)
    steered.ask(3)
    asked = [s.id for s in troubled.waiting()]
    for session in (troubled, steered):
        session.tell(dict.fromkeys(asked, "c"))
    troubled.withdraw(asked)
    if closed:
        troubled = reopened(troubled, **REVEALED)
    expected = calm.ask().ids
    assert troubled.ask().ids == expected
    assert steered.ask().ids != expected  # the labels would have mattered


def test_a_label_of_an_earlier_round_withdrawn_in_mid_round(tmp_path):
    """The arm goes on without it, and so it does after the run was closed."""
    live = begin(tmp_path / "a.db", **REVEALED)
    closed = begin(tmp_path / "b.db", **REVEALED)
    for session in (live, closed):
        labelled = play(session, 1)
        session.ask(2)
        session.withdraw(labelled[:6])
    closed = reopened(closed, **REVEALED)
    assert live.ask().ids == closed.ask().ids
    revealed = live.session_round.arms.view.ledger.revealed
    assert [index for index, label in revealed if label is None] == [
        live.run_state.position[i] for i in labelled[:6]
    ]


def test_told_again_it_counts_in_the_round_that_first_learned_from_it(tmp_path):
    """As if it had never been withdrawn; and where no round had learned from it, in the next."""
    kept = begin(tmp_path / "a.db", holdout=0.0)
    changed = begin(tmp_path / "b.db", holdout=0.0)
    for session in (kept, changed):
        play(session, 3)
        session.ask()
    learner = changed.run_state.learner
    learned = [changed.run_state.ids[p] for p in learner.history.rounds[0].positions.tolist()]
    fresh = [s.id for s in changed.waiting()]
    for session in (kept, changed):
        session.tell(dict.fromkeys(fresh, "b"))
    truth = {
        one: int(changed.run_state.label_of(changed.run_state.position[one]).argmax())
        for one in [*learned, *fresh]
    }
    changed.withdraw([*learned, *fresh])
    changed.tell(truth)
    same(posterior(changed), posterior(kept))
    for session in (kept, changed):
        play(session, 1)
    same(posterior(changed), posterior(kept))
    assert [learned.positions.tolist() for learned in learner.history.rounds] == [
        learned.positions.tolist() for learned in kept.run_state.learner.history.rounds
    ]


@pytest.mark.parametrize("holdout", [0.0, 0.5])
def test_what_was_passed_over_is_passed_over_when_the_round_is_resumed(tmp_path, holdout):
    """Told from outside when its turn came, and withdrawn since: a new process must not ask for it
    where the old one would not.
    """
    session = begin(tmp_path / "a.db", holdout=holdout)
    session.ask(2)
    batch = begin(tmp_path / "b.db", holdout=holdout).ask().ids
    passed_over = batch[2]
    session.tell({passed_over: "a"})
    session.ask(1)
    session.withdraw([passed_over])
    resumed = reopened(session, holdout=holdout)
    continued = resumed.ask(4).ids
    assert passed_over not in continued
