"""Examples that several people answer: votes, majority, disagreements, figures of agreement."""

from __future__ import annotations

import numpy as np
import pytest
from rooms import Clock, label, open_room, prepare, state
from sklearn.metrics import cohen_kappa_score

from tailor.live.agreement import agreement, cohen_kappa
from tailor.task import MultiClass, MultiLabel
from tailor.votes import Ballot, majority

EVERYTHING = {"overlap": 2, "overlap_share": 1.0}


@pytest.fixture
def room(tmp_path):
    room = open_room(tmp_path / "a.db", room=EVERYTHING)
    prepare(room)
    yield room
    room.close()


def both(room, one, ann, bob):
    room.answer("ann", one, [ann] if ann else None)
    room.answer("bob", one, [bob] if bob else None)


def test_two_people_get_the_same_and_a_third_does_not(room):
    ann, bob = room.next("ann", 3), room.next("bob", 3)
    assert [i.id for i in ann.items] == [i.id for i in bob.items]
    assert not {i.id for i in room.next("cid", 3).items} & {i.id for i in ann.items}


def test_a_label_counts_when_all_votes_are_in_and_agree(room):
    one = room.next("ann").items[0].id
    assert room.answer("ann", one, ["a"]).counts["a"] == 0
    assert room.item(one).label is None
    assert [v.label for v in room.item(one).votes] == [("a",)]
    assert one not in [i.id for i in room.next("ann", 5).items]
    assert room.next("bob").items[0].id == one
    assert room.answer("bob", one, ["a"]).counts["a"] == 1
    assert (room.item(one).label, room.item(one).by) == (("a",), "ann, bob")
    assert room.disagreements().total == 0


def test_a_disagreement_is_listed_until_settled(room):
    one = room.next("ann").items[0].id
    both(room, one, "a", "b")
    assert room.item(one).label is None
    assert [i.id for i in room.disagreements().items] == [one]
    assert [v.label for v in room.disagreements().items[0].votes] == [("a",), ("b",)]
    assert one not in [i.id for who in ("ann", "bob", "cid") for i in room.next(who, 5).items]
    assert room.overview()["progress"]["disputed"] == 1
    assert room.settle(one, ["c"], "chief").counts == {"a": 0, "b": 0, "c": 1}
    assert room.disagreements().total == 0
    assert (room.item(one).label, room.item(one).by, len(room.item(one).votes)) == (("c",), "chief", 2)
    room.answer("ann", one, ["b"])  # settled is settled: from here on an answer is a correction
    assert room.item(one).label == ("b",)


def test_a_further_vote_decides(room):
    one = room.next("ann").items[0].id
    both(room, one, "a", "b")
    room.answer("cid", one, ["b"])
    assert room.item(one).label == ("b",)
    assert room.item(one).by == "bob, cid"


def test_changing_ones_vote(room):
    one = room.next("ann").items[0].id
    both(room, one, "a", "a")
    room.answer("ann", one, ["b"])
    assert room.item(one).label is None
    assert room.disagreements().total == 1
    assert room.journal().counts() == {"a": 0, "b": 0, "c": 0}
    room.answer("ann", one, ["a"])
    assert room.item(one).label == ("a",)
    room.answer("chief", one, ["c"])  # a reviewer who has not voted corrects
    assert room.item(one).label == ("c",)


def test_a_late_vote_is_a_vote_and_no_correction(tmp_path):
    """Bob was handed the example and fell silent; two others have agreed by the time his answer comes."""
    clock = Clock()
    room = open_room(tmp_path / "a.db", clock=clock, room=EVERYTHING | {"lease": 60})
    prepare(room)
    (item,) = room.next("ann").items
    assert room.next("bob").items[0].id == item.id
    room.answer("ann", item.id, ["a"])
    clock.now += 61
    assert room.next("cid").items[0].id == item.id
    room.answer("cid", item.id, ["a"])
    room.answer("bob", item.id, ["b"])
    assert room.item(item.id).label == ("a",)
    assert {vote.by for vote in room.item(item.id).votes} == {"ann", "bob", "cid"}
    room.answer("bob", item.id, ["a"])
    assert room.item(item.id).by == "ann, bob, cid"
    room.answer("dan", item.id, ["b"])  # he was never asked: he knows what he corrects
    assert room.item(item.id).label == ("b",)
    before = state(room.session.journal)
    room.close()
    again = open_room(tmp_path / "a.db", room=EVERYTHING)
    assert state(again.session.journal) == before
    again.close()


def test_a_late_vote_does_not_undo_what_was_settled(room):
    (item,) = room.next("ann").items
    room.next("bob")
    room.answer("ann", item.id, ["a"])
    room.settle(item.id, ["c"], "boss")
    room.answer("bob", item.id, ["b"])
    assert room.item(item.id).label == ("c",)
    assert room.item(item.id).by == "boss"


def test_skips_leave_the_matter_to_the_others(room):
    one, two = (i.id for i in room.next("ann", 2).items)
    both(room, one, None, "b")
    assert room.item(one).label == ("b",)
    both(room, two, None, None)
    assert room.item(two).skipped
    assert room.item(two).label is None


def test_only_the_share_is_shared(tmp_path):
    room = open_room(tmp_path / "a.db", room={"overlap": 2, "overlap_share": 0.3}, holdout=0.0)
    done = label(room, 60, "ann")
    assert len(set(done)) == 60
    waiting = room.session.journal.votes.open
    assert 8 <= len(waiting) <= 30
    seen = {i.id for i in room.next("bob", len(waiting)).items}
    assert seen == {room.session.journal.ids[p] for p in waiting}
    room.close()


def test_one_annotator_alone_never_runs_dry(room):
    assert len(set(label(room, 50))) == 50
    assert room.journal().answered() == 0


def test_votes_survive_a_restart_and_leases_do_not(tmp_path):
    room = open_room(tmp_path / "a.db", room=EVERYTHING)
    prepare(room)
    one, two, three = (i.id for i in room.next("ann", 3).items)
    both(room, one, "a", "b")
    room.answer("ann", two, ["a"])
    before = state(room.session.journal)
    room.close()
    room = open_room(tmp_path / "a.db")  # without overlap now
    assert state(room.session.journal) == before
    assert [i.id for i in room.disagreements().items] == [one]
    assert [i.id for i in room.next("bob", 2).items] == [two, three]
    room.answer("bob", two, ["a"])
    assert room.item(two).label == ("a",)
    assert room.answer("bob", three, ["b"]).counts["b"] == 1
    assert [i.id for i in room.history("ann")] == [two, one]
    room.close()


def test_agreement_figures(room):
    for n, item in enumerate(room.next("ann", 8).items):
        both(room, item.id, "abc"[n % 3], "abcaacba"[n])
    figures = room.agreement()
    (pair,) = figures["pairs"]
    answers = [[v.label for v in room.item(i.id).votes] for i in room.history("ann")]
    first, second = zip(*answers)
    assert (pair["a"], pair["b"], pair["n"]) == ("ann", "bob", 8)
    assert pair["equal"] == pytest.approx(np.mean([a == b for a, b in answers]))
    assert pair["kappa"] == pytest.approx(cohen_kappa_score([a[0] for a in first], [b[0] for b in second]))
    assert figures["overall"]["kappa"] == pytest.approx(pair["kappa"])


def test_kappa_is_scikit_learns():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a = rng.integers(0, 4, 30)
        b = np.where(rng.random(30) < 0.6, a, rng.integers(0, 4, 30))
        assert cohen_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b))
    assert cohen_kappa(np.zeros(5, int), np.zeros(5, int)) is None


def test_multi_label_agreement_is_by_class():
    task = MultiLabel(["x", "y"])
    votes = [{"a": Ballot((0,), 0.0), "b": Ballot((0, 1), 0.0)}, {"a": Ballot((), 0.0), "b": Ballot((), 0.0)},
             {"a": Ballot(None, 0.0), "b": Ballot((1,), 0.0)}]  # fmt: skip
    (pair,) = agreement(task, votes)["pairs"]
    assert pair == {"a": "a", "b": "b", "n": 2, "equal": 0.5, "kappa": 0.5, "classes": {"x": 1.0, "y": 0.0}}


@pytest.mark.parametrize(("task", "given", "label"), [
    (MultiClass(3), [(0,), (0,), (1,)], (0,)), (MultiClass(3), [(0,), (1,)], None),
    (MultiClass(3), [(0,), (1,), (2,)], None), (MultiClass(3), [(0,), None], (0,)), (MultiClass(3), [None, None], None),
    (MultiLabel(3), [(0, 1), (0,), (0, 2)], (0,)), (MultiLabel(3), [(0,), (0, 1)], None),
    (MultiLabel(3), [(), ()], ()), (MultiLabel(3), [(0,), (1,), (2,)], ()),
])  # fmt: skip
def test_majority(task, given, label):
    assert majority(task, [Ballot(classes, 0.0) for classes in given]) == label
