"""Going back: what someone answered, skipped or voted, before a restart and after it."""

from __future__ import annotations

import pytest
from rooms import open_room, prepare, truth

ROOMS = {"alone": {}, "with votes": {"overlap": 2, "overlap_share": 1.0}}


def told(room, who):
    return [(i.id, i.label, i.skipped, [(v.by, v.label) for v in i.votes]) for i in room.history(who, 50)]


def figures(room):
    return [(p["name"], p["answered"]) for p in room.overview()["annotators"]]


@pytest.mark.parametrize("options", ROOMS.values(), ids=ROOMS)
def test_a_restart_changes_nobodys_history(tmp_path, options):
    """Answers, skips, a skip for an answer, an answer for a skip, another's correction, a settlement."""
    room = open_room(tmp_path / "a.db", room=options)
    prepare(room)
    ids = [item.id for item in room.next("ann", 6).items]
    for number, one in enumerate(ids):
        room.answer("ann", one, None if number % 2 else truth(room, one))
    room.answer("ann", ids[0], None)
    room.answer("ann", ids[1], ["a"])
    room.answer("bob", ids[2], ["b" if truth(room, ids[2]) != ["b"] else "c"])
    room.settle(ids[4], ["c"], "chief")
    people = ("ann", "bob", "chief")
    before, counted = [told(room, who) for who in people], figures(room)
    assert [one for one, *_ in before[0]] == [ids[1], ids[0], *reversed(ids[2:])]
    assert ids[3] in [one for one, *_ in before[0]]  # skipped
    room.close()
    room = open_room(tmp_path / "a.db", room=options)
    assert [told(room, who) for who in people] == before
    assert figures(room) == counted
    room.close()


def test_answers_at_the_same_moment_are_found_again(tmp_path):
    room = open_room(tmp_path / "a.db")
    prepare(room)
    one, two = (room.next(who).items[0].id for who in ("ann", "bob"))
    session = room.session
    session.record([session.telling({one: None}, "ann"), session.telling({two: "a"}, "bob")])
    room.close()
    room = open_room(tmp_path / "a.db")
    assert [item.id for item in room.history("ann")] == [one]
    assert [item.id for item in room.history("bob")] == [two]
    room.close()


def test_a_withdrawn_answer_is_nothing_to_go_back_to(tmp_path):
    room = open_room(tmp_path / "a.db")
    prepare(room)
    one, two = (item.id for item in room.next("ann", 2).items)
    for name in (one, two):
        room.answer("ann", name, ["a"])
    room.session.withdraw([two])
    assert [item.id for item in room.history("ann")] == [one]
    room.close()
    room = open_room(tmp_path / "a.db")
    assert [item.id for item in room.history("ann")] == [one]
    room.close()
