"""A merge of classes is taken back: all is as it was, and what came since stays."""

from __future__ import annotations

import shutil

import pytest
from rooms import counted, found, label, open_room, prepare, state
from small import Points

from tailor.errors import InputError
from tailor.export import rows
from tailor.session import SKIP

FAMILIES = ("galaxy", "confidence")
#: what a change of classes costs in any case: its own events, and the rest of the round that was open
COST = ("event", "rounds", "classes")


@pytest.fixture(params=["multi-class", "multi-label"])
def room(request, tmp_path):
    families = FAMILIES if request.param == "multi-class" else ("galaxy", "emal")
    room = open_room(tmp_path / "a.db", Points(200), families=families, kind=request.param)
    room.families = families
    label(room, 45)
    yield room
    room.close()


def known(journal) -> dict:
    everything = state(journal)
    rounds = [(r.number, r.asked, r.weights, r.chances, r.pulled, r.beliefs) for r in journal.rounds]
    plain = [[None if v is None else v if isinstance(v, int) else v.tolist() for v in one] for one in rounds]
    return {name: value for name, value in everything.items() if name not in COST} | {"plain rounds": plain}


def labels(room) -> dict[str, set[str]]:
    """What would be exported."""
    given = {row["id"]: row["label"] for row in rows(room.journal())}
    return {one: set(names) if isinstance(names, list) else {names} for one, names in given.items()}


def undo(room, by="ann"):
    return room.undo_merge(room.last_merge()["event"], by)


def answers(room, *classes):
    return [classes[0]] if room.kind == "multi-class" else list(classes)


@pytest.mark.parametrize(("old", "into"), [("c", "b"), ("a", "c"), ("b", "a")])
def test_undone_at_once_everything_is_as_it_was(room, old, into):
    before, given = known(room.session.journal), labels(room)
    room.merge_classes(old, into, "ann")
    assert labels(room) != given
    assert undo(room) == ("a", "b", "c")
    assert labels(room) == given
    assert known(room.session.journal) == before
    assert room.last_merge() is None


def test_it_is_the_same_after_a_restart_and_the_run_goes_on(room):
    given = labels(room)
    room.merge_classes("c", "b", "ann")
    undo(room)
    after = state(room.session.journal)
    room.close()
    again = open_room(room.session.store.path, Points(200), families=room.families, kind=room.kind)
    assert state(again.session.journal) == after
    assert labels(again) == given
    more = label(again, 20)
    assert not set(more) & set(given)
    assert found(again.session.journal) == counted(again.session.journal)
    again.close()


def test_a_merge_before_a_restart_is_undone_after_it(room):
    given = labels(room)
    room.merge_classes("c", "a", "ann")
    room.close()
    again = open_room(room.session.store.path, Points(200), families=room.families, kind=room.kind)
    assert again.last_merge()["old"] == "c"
    undo(again)
    assert labels(again) == given
    again.close()


def test_answers_given_since_stay(room):
    """New ones, corrected ones, withdrawn ones and skipped ones: whoever gave them saw the classes as one."""
    given = labels(room)
    of_c = [one for one, name in given.items() if "c" in name]
    assert len(of_c) >= 3
    room.merge_classes("c", "b", "ann")
    room.answer("bob", of_c[0], answers(room, "a"))
    room.answer("bob", of_c[1], answers(room, "b"))
    room.session.withdraw([of_c[2]])
    prepare(room)
    new = next(item.id for item in room.next("ann", 3).items if item.id != of_c[2])
    room.answer("ann", new, answers(room, "b"))
    assert room.last_merge()["since"] == 3
    undo(room)
    now = labels(room)
    assert now[of_c[0]] == {"a"}
    assert now[of_c[1]] == {"b"}
    assert of_c[2] not in now
    assert now[new] == {"b"}
    untouched = set(given) - set(of_c[:3])
    assert {one: now[one] for one in untouched} == {one: given[one] for one in untouched}
    journal = room.session.journal
    assert journal.counts()["c"] == sum("c" in names for names in now.values()) == len(of_c) - 3
    assert found(journal) == counted(journal)
    label(room, 15)


def test_an_answer_that_is_corrected_skipped_offered_and_told_since_counts_once(room):
    one = next(one for one, name in labels(room).items() if "c" in name)
    room.merge_classes("c", "b", "ann")
    room.answer("bob", one, answers(room, "a"))
    room.answer("bob", one, None)
    room.session.offer_again([one])
    room.answer("bob", one, answers(room, "a"))
    undo(room)
    label(room, 30)
    assert labels(room)[one] == {"a"}
    journal = room.session.journal
    learned = [int(p) for at, _ in journal.loop._learned for p in at]
    assert len(set(learned)) == len(learned)
    assert found(journal) == counted(journal)


def test_rounds_since_are_told_in_the_classes_apart(room):
    given = labels(room)
    room.merge_classes("c", "b", "ann")
    for _ in range(30):
        prepare(room)
        (item,) = room.next("ann").items
        room.answer("ann", item.id, answers(room, "b"))
    undo(room)
    journal = room.session.journal
    assert {one: name for one, name in labels(room).items() if one in given} == given
    assert [arm.name for arm in journal.loop.arms][:3] == ["galaxy[a]", "galaxy[b]", "galaxy[c]"]
    assert found(journal) == counted(journal)
    assert sum(journal.tally.pulls.values()) == len(journal.stories)
    after = state(journal)
    room.close()
    again = open_room(room.session.store.path, Points(200), families=room.families, kind=room.kind)
    assert state(again.session.journal) == after
    label(again, 10)
    again.close()


def test_classes_renamed_and_added_since_stay(room):
    given = labels(room)
    room.merge_classes("a", "b", "ann")
    room.rename_class("b", "bee", "ann")
    room.add_class("d", "ann")
    assert room.last_merge()["into"] == "bee"
    assert undo(room) == ("a", "bee", "c", "d")
    assert labels(room) == {one: {{"b": "bee"}.get(name, name) for name in names} for one, names in given.items()}
    room.rename_class("bee", "b", "ann")
    label(room, 5)


def test_two_merges_are_undone_the_latest_first(room):
    given = labels(room)
    room.add_class("d", "ann")
    room.merge_classes("a", "b", "ann")
    first = room.last_merge()["event"]
    room.merge_classes("b", "c", "ann")
    events = room.session.store.last().number
    with pytest.raises(InputError, match="the latest is 'b' into 'c'"):
        room.undo_merge(first, "ann")
    assert room.session.store.last().number == events
    undo(room)
    undo(room)
    assert labels(room) == given
    with pytest.raises(InputError, match="no merge"):
        room.undo_merge(first, "ann")


def test_a_name_that_is_taken_again_is_said(room):
    room.merge_classes("c", "b", "ann")
    room.add_class("c", "ann")
    with pytest.raises(InputError, match="'c' is a class again: rename it first"):
        undo(room)
    room.rename_class("c", "other c", "ann")
    assert undo(room) == ("a", "b", "c", "other c")


def test_votes_are_parted_again(tmp_path):
    room = open_room(tmp_path / "a.db", room={"overlap": 2, "overlap_share": 1.0})
    prepare(room)
    disputed, agreed, half = (item.id for item in room.next("ann", 3).items)
    for who, one, name in [("ann", disputed, "b"), ("bob", disputed, "c"), ("ann", agreed, "c"), ("bob", agreed, "c"),
                           ("ann", half, "c")]:  # fmt: skip
        room.answer(who, one, [name])
    before = known(room.session.journal)
    room.merge_classes("c", "b", "chief")
    assert room.item(disputed).label == ("b",)
    undo(room, "chief")
    assert known(room.session.journal) == before
    assert room.item(disputed).label is None
    assert room.item(agreed).label == ("c",)
    room.merge_classes("c", "b", "chief")
    room.answer("bob", half, ["b"])  # one before, one since
    undo(room, "chief")
    assert {vote.by: vote.label for vote in room.item(half).votes} == {"ann": ("c",), "bob": ("b",)}
    assert room.disagreements().total == 2
    room.close()


def test_a_skipped_one_stays_skipped(room):
    (one, *_) = [i for i, name in labels(room).items() if "c" in name]
    room.merge_classes("c", "b", "ann")
    room.session.withdraw([one])
    room.session.tell({one: SKIP})
    undo(room)
    assert room.item(one).skipped


def _step(session, one, what):
    match what:
        case "withdraw":
            session.withdraw([one])
        case "skip":
            session.tell({one: SKIP})
        case "offer again":
            session.offer_again([one])
        case "tell":
            session.tell({one: "a" if session.settings.kind == "multi-class" else ["a"]})


@pytest.mark.parametrize(("merged", "undone"), [(m, u) for u in range(5) for m in range(u + 1)])
def test_what_is_taken_back_around_a_merge_is_as_without_it(room, tmp_path, merged, undone):
    """One example goes from withdrawn to told anew, as outside knowledge; the merge comes and goes on the way."""
    steps = ["withdraw", "skip", "offer again", "tell"]
    room.close()
    shutil.copyfile(tmp_path / "a.db", tmp_path / "twin.db")
    room, twin = (
        open_room(tmp_path / name, Points(200), families=room.families, kind=room.kind) for name in ("a.db", "twin.db")
    )
    journal = room.session.journal
    learned = [int(p) for at, _ in journal.loop._learned for p in at]
    one = journal.ids[next(p for p in learned if journal.label_of(p)[2])]
    for number in range(5):
        if number == merged:
            room.merge_classes("c", "b", "ann")
        if number == undone:
            undo(room)
        for session in (room.session, twin.session):
            _step(session, one, (*steps, "nothing more")[number])
    assert known(room.session.journal) == known(twin.session.journal)
    again = label(room, 30)
    learned = [int(p) for at, _ in room.session.journal.loop._learned for p in at]
    assert len(set(learned)) == len(learned)
    assert one not in again
    for either in (room, twin):
        either.close()


def test_what_is_offered_again_after_a_merge_is_learned_once(room):
    session = room.session
    (first, *_), _ = session.journal.loop._learned[0]
    one = session.journal.ids[first]
    room.merge_classes("c", "b", "ann")
    session.withdraw([one])
    session.tell({one: SKIP})
    session.offer_again([one])
    handed = []
    while one not in handed:
        handed += label_as(room, "b")
    label_as(room, "b", 30)  # so that a round has learned from it
    undo(room)
    learned = [int(p) for at, _ in session.journal.loop._learned for p in at]
    assert learned.count(first) == 1
    assert len(set(learned)) == len(learned)


def label_as(room, name, n=1) -> list[str]:
    done = []
    for _ in range(n):
        prepare(room)
        done += [item.id for item in room.next("ann").items]
        room.answer("ann", done[-1], [name])
    return done


def test_what_a_merge_would_move_is_told_or_why_it_can_not_be_done(room):
    counts = room.session.journal.counts()
    assert room.labels_to_merge("c", "b") == (counts["c"], counts["b"])
    room.merge_classes("c", "b", "ann")
    with pytest.raises(InputError, match="unknown class 'c'"):
        room.labels_to_merge("c", "b")


def test_only_answers_are_counted_as_given_since(room):
    """A skip is one; what was withdrawn, or is offered again, is none."""
    one, other = list(labels(room))[:2]
    room.merge_classes("c", "b", "ann")
    room.session.withdraw([one, other])
    assert room.last_merge()["since"] == 0
    room.session.tell({one: SKIP, other: SKIP})
    assert room.last_merge()["since"] == 2
    room.session.offer_again([one])
    assert room.last_merge()["since"] == 1
