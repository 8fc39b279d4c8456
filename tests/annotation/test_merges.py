"""A merge of classes is taken back: all is as it was, and what came since stays."""

from __future__ import annotations

import shutil

import pytest
from coordinators import counted, found, label, open_coordinator, prepare, state
from small import Points

from tailor.errors import InputError
from tailor.run.export import rows
from tailor.run.session import SKIP

FAMILIES = ("galaxy", "confidence")
#: what a change of classes costs in any case: its own events, and the rest of the round that was
#: open
COST = ("event", "rounds", "classes")


@pytest.fixture(params=["multi-class", "multi-label"])
def coordinator(request, tmp_path):
    families = FAMILIES if request.param == "multi-class" else ("galaxy", "emal")
    coordinator = open_coordinator(
        tmp_path / "a.db", Points(200), strategies=families, kind=request.param
    )
    coordinator.families = families
    label(coordinator, 45)
    yield coordinator
    coordinator.close()


def learned_positions(run_state):
    rounds = run_state.learner.history.rounds
    return [int(position) for learned in rounds for position in learned.positions]


def known(run_state) -> dict:
    everything = state(run_state)
    rounds = [
        (r.number, r.asked, r.weights, r.chances, r.pulled, r.beliefs) for r in run_state.rounds
    ]
    plain = [
        [None if v is None else v if isinstance(v, int) else v.tolist() for v in one]
        for one in rounds
    ]
    return {name: value for name, value in everything.items() if name not in COST} | {
        "plain rounds": plain
    }


def labels(coordinator) -> dict[str, set[str]]:
    """What would be exported."""
    given = {row["id"]: row["label"] for row in rows(coordinator.run_state())}
    return {one: set(names) if isinstance(names, list) else {names} for one, names in given.items()}


def undo(coordinator, by="ann"):
    return coordinator.class_editor.undo_merge(coordinator.class_editor.last_merge()["event"], by)


def answers(coordinator, *classes):
    return [classes[0]] if coordinator.kind == "multi-class" else list(classes)


@pytest.mark.parametrize(("old", "into"), [("c", "b"), ("a", "c"), ("b", "a")])
def test_undone_at_once_everything_is_as_it_was(coordinator, old, into):
    before = known(coordinator.session.run_state)
    given = labels(coordinator)
    coordinator.class_editor.merge(old, into, "ann")
    assert labels(coordinator) != given
    assert undo(coordinator) == ("a", "b", "c")
    assert labels(coordinator) == given
    assert known(coordinator.session.run_state) == before
    assert coordinator.class_editor.last_merge() is None


def test_it_is_the_same_after_a_restart_and_the_run_goes_on(coordinator):
    given = labels(coordinator)
    coordinator.class_editor.merge("c", "b", "ann")
    undo(coordinator)
    after = state(coordinator.session.run_state)
    coordinator.close()
    again = open_coordinator(
        coordinator.session.store.path,
        Points(200),
        strategies=coordinator.families,
        kind=coordinator.kind,
    )
    assert state(again.session.run_state) == after
    assert labels(again) == given
    more = label(again, 20)
    assert not set(more) & set(given)
    assert found(again.session.run_state) == counted(again.session.run_state)
    again.close()


def test_a_merge_before_a_restart_is_undone_after_it(coordinator):
    given = labels(coordinator)
    coordinator.class_editor.merge("c", "a", "ann")
    coordinator.close()
    again = open_coordinator(
        coordinator.session.store.path,
        Points(200),
        strategies=coordinator.families,
        kind=coordinator.kind,
    )
    assert again.class_editor.last_merge()["old"] == "c"
    undo(again)
    assert labels(again) == given
    again.close()


def test_answers_given_since_stay(coordinator):
    """New ones, corrected ones, withdrawn ones and skipped ones: whoever gave them saw the classes
    as one.
    """
    given = labels(coordinator)
    of_c = [one for one, name in given.items() if "c" in name]
    assert len(of_c) >= 3
    coordinator.class_editor.merge("c", "b", "ann")
    coordinator.answer("bob", of_c[0], answers(coordinator, "a"))
    coordinator.answer("bob", of_c[1], answers(coordinator, "b"))
    coordinator.session.withdraw([of_c[2]])
    prepare(coordinator)
    new = next(item.id for item in coordinator.next("ann", 3).items if item.id != of_c[2])
    coordinator.answer("ann", new, answers(coordinator, "b"))
    assert coordinator.class_editor.last_merge()["since"] == 3
    undo(coordinator)
    now = labels(coordinator)
    assert now[of_c[0]] == {"a"}
    assert now[of_c[1]] == {"b"}
    assert of_c[2] not in now
    assert now[new] == {"b"}
    untouched = set(given) - set(of_c[:3])
    assert {one: now[one] for one in untouched} == {one: given[one] for one in untouched}
    run_state = coordinator.session.run_state
    assert run_state.counts()["c"] == sum("c" in names for names in now.values()) == len(of_c) - 3
    assert found(run_state) == counted(run_state)
    label(coordinator, 15)


def test_an_answer_that_is_corrected_skipped_offered_and_told_since_counts_once(coordinator):
    one = next(one for one, name in labels(coordinator).items() if "c" in name)
    coordinator.class_editor.merge("c", "b", "ann")
    coordinator.answer("bob", one, answers(coordinator, "a"))
    coordinator.answer("bob", one, None)
    coordinator.session.offer_again([one])
    coordinator.answer("bob", one, answers(coordinator, "a"))
    undo(coordinator)
    label(coordinator, 30)
    assert labels(coordinator)[one] == {"a"}
    run_state = coordinator.session.run_state
    learned = learned_positions(run_state)
    assert len(set(learned)) == len(learned)
    assert found(run_state) == counted(run_state)


def test_rounds_since_are_told_in_the_classes_apart(coordinator):
    given = labels(coordinator)
    coordinator.class_editor.merge("c", "b", "ann")
    for _ in range(30):
        prepare(coordinator)
        (item,) = coordinator.next("ann").items
        coordinator.answer("ann", item.id, answers(coordinator, "b"))
    undo(coordinator)
    run_state = coordinator.session.run_state
    assert {one: name for one, name in labels(coordinator).items() if one in given} == given
    assert [arm.name for arm in run_state.learner.arms][:3] == [
        "galaxy[a]",
        "galaxy[b]",
        "galaxy[c]",
    ]
    assert found(run_state) == counted(run_state)
    assert sum(run_state.arm_statistics.pulls.values()) == len(
        run_state.label_table.picks.positions
    )
    after = state(run_state)
    coordinator.close()
    again = open_coordinator(
        coordinator.session.store.path,
        Points(200),
        strategies=coordinator.families,
        kind=coordinator.kind,
    )
    assert state(again.session.run_state) == after
    label(again, 10)
    again.close()


def test_classes_renamed_and_added_since_stay(coordinator):
    given = labels(coordinator)
    coordinator.class_editor.merge("a", "b", "ann")
    coordinator.class_editor.rename("b", "bee", "ann")
    coordinator.class_editor.add("d", "ann")
    assert coordinator.class_editor.last_merge()["into"] == "bee"
    assert undo(coordinator) == ("a", "bee", "c", "d")
    assert labels(coordinator) == {
        one: {{"b": "bee"}.get(name, name) for name in names} for one, names in given.items()
    }
    coordinator.class_editor.rename("bee", "b", "ann")
    label(coordinator, 5)


def test_two_merges_are_undone_the_latest_first(coordinator):
    given = labels(coordinator)
    coordinator.class_editor.add("d", "ann")
    coordinator.class_editor.merge("a", "b", "ann")
    first = coordinator.class_editor.last_merge()["event"]
    coordinator.class_editor.merge("b", "c", "ann")
    events = coordinator.session.store.last().number
    with pytest.raises(InputError, match="the latest is 'b' into 'c'"):
        coordinator.class_editor.undo_merge(first, "ann")
    assert coordinator.session.store.last().number == events
    undo(coordinator)
    undo(coordinator)
    assert labels(coordinator) == given
    with pytest.raises(InputError, match="no merge"):
        coordinator.class_editor.undo_merge(first, "ann")


def test_a_name_that_is_taken_again_is_said(coordinator):
    coordinator.class_editor.merge("c", "b", "ann")
    coordinator.class_editor.add("c", "ann")
    with pytest.raises(InputError, match="'c' is a class again: rename it first"):
        undo(coordinator)
    coordinator.class_editor.rename("c", "other c", "ann")
    assert undo(coordinator) == ("a", "b", "c", "other c")


def test_votes_are_parted_again(tmp_path):
    coordinator = open_coordinator(
        tmp_path / "a.db", coordinator={"overlap": 2, "overlap_share": 1.0}
    )
    prepare(coordinator)
    disputed, agreed, half = (item.id for item in coordinator.next("ann", 3).items)
    for who, one, name in [
        ("ann", disputed, "b"),
        ("bob", disputed, "c"),
        ("ann", agreed, "c"),
        ("bob", agreed, "c"),
        ("ann", half, "c"),
    ]:
        coordinator.answer(who, one, [name])
    before = known(coordinator.session.run_state)
    coordinator.class_editor.merge("c", "b", "chief")
    assert coordinator.item(disputed).label == ("b",)
    undo(coordinator, "chief")
    assert known(coordinator.session.run_state) == before
    assert coordinator.item(disputed).label is None
    assert coordinator.item(agreed).label == ("c",)
    coordinator.class_editor.merge("c", "b", "chief")
    coordinator.answer("bob", half, ["b"])  # one before, one since
    undo(coordinator, "chief")
    assert {vote.by: vote.label for vote in coordinator.item(half).votes} == {
        "ann": ("c",),
        "bob": ("b",),
    }
    assert coordinator.review.disagreements().total == 2
    coordinator.close()


def test_a_skipped_one_stays_skipped(coordinator):
    (one, *_) = [i for i, name in labels(coordinator).items() if "c" in name]
    coordinator.class_editor.merge("c", "b", "ann")
    coordinator.session.withdraw([one])
    coordinator.session.tell({one: SKIP})
    undo(coordinator)
    assert coordinator.item(one).skipped


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
def test_what_is_taken_back_around_a_merge_is_as_without_it(coordinator, tmp_path, merged, undone):
    """One example goes from withdrawn to told anew, as outside knowledge; the merge comes and goes
    on the way.
    """
    steps = ["withdraw", "skip", "offer again", "tell"]
    coordinator.close()
    shutil.copyfile(tmp_path / "a.db", tmp_path / "twin.db")
    coordinator, twin = (
        open_coordinator(
            tmp_path / name, Points(200), strategies=coordinator.families, kind=coordinator.kind
        )
        for name in ("a.db", "twin.db")
    )
    run_state = coordinator.session.run_state
    learned = learned_positions(run_state)
    one = run_state.ids[next(p for p in learned if run_state.label_of(p)[2])]
    for number in range(5):
        if number == merged:
            coordinator.class_editor.merge("c", "b", "ann")
        if number == undone:
            undo(coordinator)
        for session in (coordinator.session, twin.session):
            _step(session, one, (*steps, "nothing more")[number])
    assert known(coordinator.session.run_state) == known(twin.session.run_state)
    again = label(coordinator, 30)
    learned = [
        int(p)
        for learned in coordinator.session.run_state.learner.history.rounds
        for p in learned.positions
    ]
    assert len(set(learned)) == len(learned)
    assert one not in again
    for either in (coordinator, twin):
        either.close()


def test_what_is_offered_again_after_a_merge_is_learned_once(coordinator):
    session = coordinator.session
    first = session.run_state.learner.history.rounds[0].positions[0]
    one = session.run_state.ids[first]
    coordinator.class_editor.merge("c", "b", "ann")
    session.withdraw([one])
    session.tell({one: SKIP})
    session.offer_again([one])
    handed = []
    while one not in handed:
        handed += label_as(coordinator, "b")
    label_as(coordinator, "b", 30)  # so that a round has learned from it
    undo(coordinator)
    learned = [
        int(p) for learned in session.run_state.learner.history.rounds for p in learned.positions
    ]
    assert learned.count(first) == 1
    assert len(set(learned)) == len(learned)


def label_as(coordinator, name, n=1) -> list[str]:
    done = []
    for _ in range(n):
        prepare(coordinator)
        done += [item.id for item in coordinator.next("ann").items]
        coordinator.answer("ann", done[-1], [name])
    return done


def test_what_a_merge_would_move_is_told_or_why_it_can_not_be_done(coordinator):
    counts = coordinator.session.run_state.counts()
    assert coordinator.class_editor.labels_to_merge("c", "b") == (counts["c"], counts["b"])
    coordinator.class_editor.merge("c", "b", "ann")
    with pytest.raises(InputError, match="unknown class 'c'"):
        coordinator.class_editor.labels_to_merge("c", "b")


def test_only_answers_are_counted_as_given_since(coordinator):
    """A skip is one; what was withdrawn, or is offered again, is none."""
    one, other = list(labels(coordinator))[:2]
    coordinator.class_editor.merge("c", "b", "ann")
    coordinator.session.withdraw([one, other])
    assert coordinator.class_editor.last_merge()["since"] == 0
    coordinator.session.tell({one: SKIP, other: SKIP})
    assert coordinator.class_editor.last_merge()["since"] == 2
    coordinator.session.offer_again([one])
    assert coordinator.class_editor.last_merge()["since"] == 1
