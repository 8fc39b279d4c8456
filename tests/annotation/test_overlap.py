"""Examples that several people answer: votes, majority, disagreements, figures of agreement."""

from __future__ import annotations

import numpy as np
import pytest
from coordinators import Clock, label, open_coordinator, prepare, state
from sklearn.metrics import cohen_kappa_score

from tailor.annotation.agreement import agreement, cohen_kappa
from tailor.run.consensus import Vote, majority
from tailor.task import MultiClass, MultiLabel

EVERYTHING = {"overlap": 2, "overlap_share": 1.0}


@pytest.fixture
def coordinator(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", coordinator=EVERYTHING)
    prepare(coordinator)
    yield coordinator
    coordinator.close()


def both(coordinator, one, ann, bob):
    coordinator.answer("ann", one, [ann] if ann else None)
    coordinator.answer("bob", one, [bob] if bob else None)


def test_two_people_get_the_same_and_a_third_does_not(coordinator):
    ann = coordinator.next("ann", 3)
    bob = coordinator.next("bob", 3)
    assert [i.id for i in ann.items] == [i.id for i in bob.items]
    assert not {i.id for i in coordinator.next("cid", 3).items} & {i.id for i in ann.items}


def test_a_label_counts_when_all_votes_are_in_and_agree(coordinator):
    one = coordinator.next("ann").items[0].id
    assert coordinator.answer("ann", one, ["a"]).counts["a"] == 0
    assert coordinator.item(one).label is None
    assert [v.label for v in coordinator.item(one).votes] == [("a",)]
    assert one not in [i.id for i in coordinator.next("ann", 5).items]
    assert coordinator.next("bob").items[0].id == one
    assert coordinator.answer("bob", one, ["a"]).counts["a"] == 1
    assert (coordinator.item(one).label, coordinator.item(one).by) == (("a",), "ann, bob")
    assert coordinator.review.disagreements().total == 0


def test_a_disagreement_is_listed_until_settled(coordinator):
    one = coordinator.next("ann").items[0].id
    both(coordinator, one, "a", "b")
    assert coordinator.item(one).label is None
    assert [i.id for i in coordinator.review.disagreements().items] == [one]
    assert [v.label for v in coordinator.review.disagreements().items[0].votes] == [("a",), ("b",)]
    assert one not in [
        i.id for who in ("ann", "bob", "cid") for i in coordinator.next(who, 5).items
    ]
    assert coordinator.overview()["progress"]["disputed"] == 1
    assert coordinator.settle(one, ["c"], "chief").counts == {"a": 0, "b": 0, "c": 1}
    assert coordinator.review.disagreements().total == 0
    assert (
        coordinator.item(one).label,
        coordinator.item(one).by,
        len(coordinator.item(one).votes),
    ) == (("c",), "chief", 2)
    coordinator.answer(
        "ann", one, ["b"]
    )  # settled is settled: from here on an answer is a correction
    assert coordinator.item(one).label == ("b",)


def test_a_further_vote_decides(coordinator):
    one = coordinator.next("ann").items[0].id
    both(coordinator, one, "a", "b")
    coordinator.answer("cid", one, ["b"])
    assert coordinator.item(one).label == ("b",)
    assert coordinator.item(one).by == "bob, cid"


def test_changing_ones_vote(coordinator):
    one = coordinator.next("ann").items[0].id
    both(coordinator, one, "a", "a")
    coordinator.answer("ann", one, ["b"])
    assert coordinator.item(one).label is None
    assert coordinator.review.disagreements().total == 1
    assert coordinator.run_state().counts() == {"a": 0, "b": 0, "c": 0}
    coordinator.answer("ann", one, ["a"])
    assert coordinator.item(one).label == ("a",)
    coordinator.answer("chief", one, ["c"])  # a reviewer who has not voted corrects
    assert coordinator.item(one).label == ("c",)


def test_a_late_vote_is_a_vote_and_no_correction(tmp_path):
    """Bob was handed the example and fell silent; two others have agreed by the time his answer
    comes.
    """
    clock = Clock()
    coordinator = open_coordinator(
        tmp_path / "a.db", clock=clock, coordinator=EVERYTHING | {"lease": 60}
    )
    prepare(coordinator)
    (item,) = coordinator.next("ann").items
    assert coordinator.next("bob").items[0].id == item.id
    coordinator.answer("ann", item.id, ["a"])
    clock.now += 61
    assert coordinator.next("cid").items[0].id == item.id
    coordinator.answer("cid", item.id, ["a"])
    coordinator.answer("bob", item.id, ["b"])
    assert coordinator.item(item.id).label == ("a",)
    assert {vote.by for vote in coordinator.item(item.id).votes} == {"ann", "bob", "cid"}
    coordinator.answer("bob", item.id, ["a"])
    assert coordinator.item(item.id).by == "ann, bob, cid"
    coordinator.answer("dan", item.id, ["b"])  # he was never asked: he knows what he corrects
    assert coordinator.item(item.id).label == ("b",)
    before = state(coordinator.session.run_state)
    coordinator.close()
    again = open_coordinator(tmp_path / "a.db", coordinator=EVERYTHING)
    assert state(again.session.run_state) == before
    again.close()


def test_a_late_vote_does_not_undo_what_was_settled(coordinator):
    (item,) = coordinator.next("ann").items
    coordinator.next("bob")
    coordinator.answer("ann", item.id, ["a"])
    coordinator.settle(item.id, ["c"], "boss")
    coordinator.answer("bob", item.id, ["b"])
    assert coordinator.item(item.id).label == ("c",)
    assert coordinator.item(item.id).by == "boss"


def test_skips_leave_the_matter_to_the_others(coordinator):
    one, two = (i.id for i in coordinator.next("ann", 2).items)
    both(coordinator, one, None, "b")
    assert coordinator.item(one).label == ("b",)
    both(coordinator, two, None, None)
    assert coordinator.item(two).skipped
    assert coordinator.item(two).label is None


def test_only_the_share_is_shared(tmp_path):
    coordinator = open_coordinator(
        tmp_path / "a.db", coordinator={"overlap": 2, "overlap_share": 0.3}, holdout=0.0
    )
    done = label(coordinator, 60, "ann")
    assert len(set(done)) == 60
    waiting = coordinator.session.run_state.consensus.open
    assert 8 <= len(waiting) <= 30
    seen = {i.id for i in coordinator.next("bob", len(waiting)).items}
    assert seen == {coordinator.session.run_state.ids[p] for p in waiting}
    coordinator.close()


def test_one_annotator_alone_never_runs_dry(coordinator):
    assert len(set(label(coordinator, 50))) == 50
    assert coordinator.run_state().answered() == 0


def test_votes_survive_a_restart_and_leases_do_not(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", coordinator=EVERYTHING)
    prepare(coordinator)
    one, two, three = (i.id for i in coordinator.next("ann", 3).items)
    both(coordinator, one, "a", "b")
    coordinator.answer("ann", two, ["a"])
    before = state(coordinator.session.run_state)
    coordinator.close()
    coordinator = open_coordinator(tmp_path / "a.db")  # without overlap now
    assert state(coordinator.session.run_state) == before
    assert [i.id for i in coordinator.review.disagreements().items] == [one]
    assert [i.id for i in coordinator.next("bob", 2).items] == [two, three]
    coordinator.answer("bob", two, ["a"])
    assert coordinator.item(two).label == ("a",)
    assert coordinator.answer("bob", three, ["b"]).counts["b"] == 1
    assert [i.id for i in coordinator.history("ann")] == [two, one]
    coordinator.close()


def test_agreement_figures(coordinator):
    for n, item in enumerate(coordinator.next("ann", 8).items):
        both(coordinator, item.id, "abc"[n % 3], "abcaacba"[n])
    figures = coordinator.review.agreement()
    (pair,) = figures["pairs"]
    answers = [[v.label for v in coordinator.item(i.id).votes] for i in coordinator.history("ann")]
    first, second = zip(*answers)
    assert (pair["a"], pair["b"], pair["n"]) == ("ann", "bob", 8)
    assert pair["equal"] == pytest.approx(np.mean([a == b for a, b in answers]))
    assert pair["kappa"] == pytest.approx(
        cohen_kappa_score([a[0] for a in first], [b[0] for b in second])
    )
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
    votes = [
        {"a": Vote((0,), 0.0), "b": Vote((0, 1), 0.0)},
        {"a": Vote((), 0.0), "b": Vote((), 0.0)},
        {"a": Vote(None, 0.0), "b": Vote((1,), 0.0)},
    ]
    (pair,) = agreement(task, votes)["pairs"]
    assert pair == {
        "a": "a",
        "b": "b",
        "n": 2,
        "equal": 0.5,
        "kappa": 0.5,
        "classes": {"x": 1.0, "y": 0.0},
    }


@pytest.mark.parametrize(
    ("task", "given", "label"),
    [
        (MultiClass(3), [(0,), (0,), (1,)], (0,)),
        (MultiClass(3), [(0,), (1,)], None),
        (MultiClass(3), [(0,), (1,), (2,)], None),
        (MultiClass(3), [(0,), None], (0,)),
        (MultiClass(3), [None, None], None),
        (MultiLabel(3), [(0, 1), (0,), (0, 2)], (0,)),
        (MultiLabel(3), [(0,), (0, 1)], None),
        (MultiLabel(3), [(), ()], ()),
        (MultiLabel(3), [(0,), (1,), (2,)], ()),
    ],
)
def test_majority(task, given, label):
    assert majority(task, [Vote(classes, 0.0) for classes in given]) == label
