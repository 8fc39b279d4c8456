"""What goes wrong between a question and its answer: growth, loss, interruption, outside
knowledge.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small import Points, answer, settings
from stores import rewrite
from test_session import begin, play

from tailor.errors import InputError
from tailor.run.session import SKIP
from tailor.storage import StoreError


def tell_all(session, ids):
    session.tell({i: answer(session.pool, session.settings.kind, i) for i in ids})


def rest(session):
    seen = []
    while asked := session.ask():
        seen += asked.ids
        tell_all(session, asked.ids)
    return seen


def reopened(session, pool=None, **changes):
    session.store.close()
    return begin(session.store.path, pool or Points(len(session.pool)), **changes)


@pytest.mark.parametrize("holdout", [0.0, 0.3])
def test_a_short_last_round_goes_on_with_the_same_picks(tmp_path, holdout):
    """The batch is larger than what is left: closed in the middle of it, and never closed."""
    pool, batch = 90, 40
    whole = begin(tmp_path / "a.db", Points(pool), batch=batch, holdout=holdout)
    expected = rest(whole)
    cut = begin(tmp_path / "b.db", Points(pool), batch=batch, holdout=holdout)
    seen = []
    while asked := cut.ask(7):
        seen += asked.ids
        tell_all(cut, asked.ids)
        cut = reopened(cut, batch=batch, holdout=holdout)
    assert seen == expected
    assert sorted(seen) == cut.pool.ids


def test_growth_in_the_middle_of_a_round_changes_nothing_of_it(tmp_path):
    calm = begin(tmp_path / "a.db", Points(60))
    grown = begin(tmp_path / "b.db", Points(60))
    for session in (calm, grown):
        play(session, 1)
        session.tell({i: answer(session.pool, "multi-class", i) for i in session.ask(4).ids})
    larger = Points(80, broken=(70,))
    larger._ids = (
        larger._ids[60:] + larger._ids[:60]
    )  # listed in another order, with newcomers first
    larger.broken = {10}
    grown.store.close()
    grown = begin(tmp_path / "b.db", larger)
    assert grown.ask().ids == calm.ask().ids
    assert len(grown.run_state.ids) == 60
    grown.final_fit()  # a newcomer that can't be read and hasn't joined is no trouble
    grown.ask(1)
    assert len(grown.run_state.ids) == 80


def test_what_vanishes_is_not_asked_and_what_comes_back_is(tmp_path):
    session = begin(tmp_path / "a.db", Points(80), holdout=0.1)
    seen = play(session, 1)
    seen += session.ask(5).ids
    smaller = Points(80)
    smaller._ids = smaller._ids[30:]
    session = reopened(session, smaller, holdout=0.1)
    later = []
    while asked := session.ask():
        later += asked.ids
        tell_all(session, asked.ids)
    assert len(set(seen + later)) == len(seen + later)
    assert set(session.run_state.summary()["aside"].values()) == {"it has vanished from the pool"}
    session = reopened(session, Points(80), holdout=0.1)
    back = rest(session)
    assert sorted(seen + later + back) == session.pool.ids
    assert not session.run_state.summary()["aside"]


def test_all_that_was_labelled_is_gone(tmp_path):
    session = begin(tmp_path / "a.db", Points(40), holdout=0.0)
    labelled = play(session, 1)
    smaller = Points(40)
    smaller._ids = [i for i in smaller._ids if i not in labelled]
    session = reopened(session, smaller, holdout=0.0)
    assert {s.arm for s in session.ask()} == {"random start"}


def test_interrupted_while_resuming(tmp_path):
    session = begin(tmp_path / "a.db")
    play(session, 1)
    tell_all(session, session.ask(5).ids)
    expected = reopened(session)
    ids = [s.id for s in expected.ask(3)]
    session = reopened(expected)
    fit = session.model.fit
    session.model.fit = None

    def stop(*args, **more):
        raise KeyboardInterrupt

    session.model.fit = stop
    with pytest.raises(KeyboardInterrupt):
        session.ask()
    session.model.fit = fit
    more = session.ask()
    assert not set(more.ids) & set(ids)
    numbers = [r.number for r in reopened(session).run_state.rounds]
    assert numbers == list(range(len(numbers)))


def test_told_or_skipped_from_outside_in_the_middle_of_a_round(tmp_path):
    """Of a random start and of an arms' round: never asked any more."""
    session = begin(tmp_path / "a.db", Points(60), holdout=0.2)
    first = session.ask(1).ids
    outside = [i for i in session.pool.ids if i not in first][:50]
    session.tell({i: SKIP if n % 2 else "a" for n, i in enumerate(outside)})
    seen = rest(session)
    assert not set(seen) & set(outside)
    assert set(seen) | set(outside) | set(first) == set(session.pool.ids)


def test_outside_knowledge_never_joins_the_holdout(tmp_path):
    session = begin(tmp_path / "a.db", Points(60), holdout=0.4)
    tell_all(session, session.pool.ids[:20])
    rest(session)
    label_table = session.run_state.label_table
    assert not label_table.picks.is_holdout(np.arange(20)).any()
    assert set(range(20)) <= set(label_table.labelled.tolist())
    assert len(label_table.holdout_labelled) > 0
    assert session.run_state.answered() == 60


def test_any_mix_of_calls_can_be_opened_again(tmp_path):
    """Calls in a random order, good ones and bad ones: what was accepted is what a new process
    finds.
    """
    rng = np.random.default_rng(0)
    session = begin(tmp_path / "a.db", Points(50), holdout=0.3, batch=6)
    for step in range(120):
        one = [session.pool.ids[i] for i in rng.integers(0, 50, 3)]
        try:
            match rng.integers(5):
                case 0:
                    session.ask(int(rng.integers(1, 5)))
                case 1:
                    session.tell({i: "abc"[rng.integers(3)] for i in one})
                case 2:
                    session.tell(dict.fromkeys(one, SKIP))
                case 3:
                    session.offer_again([*one, one[0]])
                case _:
                    tell_all(session, [s.id for s in session.waiting()[:3]])
        except InputError:
            pass
        if step % 10 == 0:
            before = session.run_state.summary()
            session = reopened(session, holdout=0.3, batch=6)
            assert session.run_state.summary() == before


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda s: s.ask(2.5), "2.5"),
        (lambda s: s.ask("3"), "'3'"),
        (lambda s: s.tell({"p00001": 1.5}), "1.5"),
        (lambda s: s.tell({"p00001": "a"}, by=3), "by is 3"),
        (lambda s: s.tell({"p00001": ["a", "b"]}), "p00001"),
    ],
)
def test_wrong_types_are_input_errors(tmp_path, call, word):
    session = begin(tmp_path / "a.db")
    with pytest.raises(InputError, match=word):
        call(session)


def test_a_damaged_event_is_named(tmp_path):
    session = begin(tmp_path / "a.db")
    session.ask()
    session.store.close()
    whole = tmp_path / "a.db"

    def change(event):
        return replace(event, data=b"\x00\xff") if event.kind == "asked" else event

    rewrite(whole, change)
    with pytest.raises(StoreError, match=r"event \d+ \(asked\)"):
        begin(tmp_path / "a.db")


def test_class_shares_of_the_holdout(tmp_path):
    session = begin(tmp_path / "a.db", Points(300), holdout=0.5)
    play(session, 10)
    shares = session.run_state.summary()["shares"]
    truth = np.bincount([session.pool.truth(i) for i in session.pool.ids], minlength=3) / 300
    for name, true in zip("abc", truth):
        share, low, high = shares[name]
        assert low <= share <= high
        assert low - 0.1 <= true <= high + 0.1


def test_answers_need_neither_pool_nor_model(tmp_path):
    from tailor.run.answer_writer import AnswerWriter
    from tailor.storage import SqliteStore

    session = begin(tmp_path / "a.db")
    ids = session.ask().ids
    session.store.close()
    with SqliteStore(tmp_path / "a.db") as store:
        AnswerWriter(store, settings()).tell({ids[0]: "a"})
    assert begin(tmp_path / "a.db").run_state.answered() == 1
