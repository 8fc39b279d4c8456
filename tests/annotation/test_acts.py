"""What is decided over others or for all has its author, and is taken back."""

from __future__ import annotations

import numpy as np
import pytest
from coordinators import label, open_coordinator, prepare, state
from small import Points

from tailor.annotation.roles import NotAllowed
from tailor.errors import InputError

FAMILIES = {"multi-class": ("galaxy", "confidence"), "multi-label": ("galaxy", "emal")}
#: what any change costs: its own events, and the rest of the round that was open
COST = ("event", "rounds")


@pytest.fixture(params=["multi-class", "multi-label"])
def coordinator(request, tmp_path):
    coordinator = open_coordinator(
        tmp_path / "a.db", Points(200), strategies=FAMILIES[request.param], kind=request.param
    )
    label(coordinator, 25)
    yield coordinator
    coordinator.close()


@pytest.fixture
def shared(tmp_path):
    """Every example is asked of two people."""
    coordinator = open_coordinator(
        tmp_path / "a.db",
        Points(60),
        strategies=("confidence",),
        coordinator={"overlap": 2, "overlap_share": 1.0},
    )
    prepare(coordinator)
    yield coordinator
    coordinator.close()


def known(coordinator) -> dict:
    everything = state(coordinator.session.run_state)
    return {name: value for name, value in everything.items() if name not in COST}


def assert_same(now, before) -> None:
    """To the last digits: weights are scaled to another number of classes and back."""
    if isinstance(before, dict):
        assert now.keys() == before.keys()
        for key, value in before.items():
            assert_same(now[key], value)
    elif isinstance(before, (list, tuple)):
        assert len(now) == len(before)
        for one_now, one_before in zip(now, before):
            assert_same(one_now, one_before)
    elif isinstance(before, float):
        assert now == pytest.approx(before, rel=1e-9, abs=1e-12)
    else:
        assert now == before


def reopened(coordinator):
    coordinator.close()
    settings = coordinator.session.settings
    return open_coordinator(
        coordinator.session.store.path,
        Points(len(coordinator.session.run_state.ids)),
        strategies=settings.strategies,
        kind=coordinator.kind,
    )


def latest(coordinator):
    return coordinator.act_history.latest(1)[0]


def disputed(coordinator) -> str:
    """An example about which ann and bob differ."""
    (item,) = coordinator.next("ann").items
    coordinator.answer("ann", item.id, ["a"])
    assert item.id in [held.id for held in coordinator.next("bob", 5).items]
    coordinator.answer("bob", item.id, ["b"])
    assert [one.id for one in coordinator.review.disagreements().items] == [item.id]
    return item.id


CLASS_ACTS = {
    "added": lambda editor: editor.add("quince", "olga"),
    "renamed": lambda editor: editor.rename("a", "apple", "olga"),
    "merged": lambda editor: editor.merge("c", "b", "olga"),
}


@pytest.mark.parametrize("kind", CLASS_ACTS)
def test_a_change_of_the_classes_is_taken_back_with_both_authors_in_the_history(coordinator, kind):
    before = known(coordinator)
    CLASS_ACTS[kind](coordinator.class_editor)
    act = latest(coordinator)
    assert (act.by, act.kind, act.undone_by, act.can_undo) == ("olga", kind, None, True)
    coordinator.act_history.undo(act.event, "olga", "otto")
    assert coordinator.classes == ("a", "b", "c")
    assert_same(known(coordinator), before)
    act = latest(coordinator)
    assert (act.by, act.kind, act.undone_by, act.can_undo) == ("olga", kind, "otto", False)
    with pytest.raises(InputError, match="otto has taken this back already"):
        coordinator.act_history.undo(act.event, "olga", "otto")
    again = reopened(coordinator)
    assert_same(known(again), before)
    assert latest(again).undone_by == "otto"
    assert len(set(label(again, 10))) == 10
    again.close()


def test_an_added_class_that_rounds_were_planned_with_is_taken_back(coordinator):
    """Picks of its arms are nobody's then, and the run goes on."""
    coordinator.class_editor.add("quince", "olga")
    event = latest(coordinator).event
    prepare(coordinator)
    done = label(coordinator, 20)
    run_state = coordinator.session.run_state
    counts = run_state.counts()
    assert run_state.task.size == 4
    coordinator.act_history.undo(event, "olga", "otto")
    del counts["quince"]
    assert coordinator.session.run_state.counts() == counts
    more = label(coordinator, 20)
    assert not set(done) & set(more)
    before = state(coordinator.session.run_state)
    again = reopened(coordinator)
    assert state(again.session.run_state) == before
    again.close()


def test_what_others_depend_on_is_not_taken_back(coordinator):
    history = coordinator.act_history
    coordinator.class_editor.add("quince", "olga")
    added = latest(coordinator).event
    prepare(coordinator)
    (item,) = coordinator.next("ann").items
    coordinator.answer("ann", item.id, ["quince"])
    with pytest.raises(InputError, match="'quince' has 1 labels"):
        history.undo(added, "olga", "olga")
    coordinator.class_editor.rename("quince", "pear", "olga")
    renamed = latest(coordinator).event
    coordinator.class_editor.rename("pear", "plum", "olga")
    with pytest.raises(InputError, match="'pear' is no class any more"):
        history.undo(renamed, "olga", "olga")
    assert not history.latest(2)[1].can_undo
    with pytest.raises(InputError, match="nothing of 'nobody' in event 1 "):
        history.undo(1, "nobody", "olga")


def test_an_overwritten_answer_comes_back_with_its_author(coordinator):
    first = label(coordinator, 1)[0]
    given = coordinator.item(first)
    other = next(name for name in coordinator.classes if (name,) != given.label)
    before = known(coordinator)
    coordinator.answer("rita", first, [other])
    assert coordinator.item(first).by == "rita"
    act = latest(coordinator)
    assert (act.by, act.kind, act.ids, act.before) == ("rita", "overwrote", (first,), given.label)
    coordinator.act_history.undo(act.event, "rita", "otto")
    assert coordinator.item(first) == given
    assert_same(known(coordinator), before)
    again = reopened(coordinator)
    assert (again.item(first).label, again.item(first).by) == (given.label, "ann")
    again.close()


def test_a_skip_of_anothers_answer_is_taken_back(coordinator):
    first = label(coordinator, 1)[0]
    before = known(coordinator)
    given = coordinator.item(first)
    coordinator.settle(first, None, "rita")
    assert coordinator.item(first).skipped
    act = latest(coordinator)
    assert (act.by, act.kind, act.examples) == ("rita", "overwrote", 1)
    coordinator.act_history.undo(act.event, "rita", "rita")
    assert coordinator.item(first) == given
    assert_same(known(coordinator), before)


def test_two_overwritings_are_taken_back_from_the_latest_on(coordinator):
    first = label(coordinator, 1)[0]
    given = coordinator.item(first)
    coordinator.answer("rita", first, ["a"])
    coordinator.answer("rolf", first, ["b"])
    later, earlier = coordinator.act_history.latest(2)
    with pytest.raises(InputError, match="was answered again since"):
        coordinator.act_history.undo(earlier.event, "rita", "otto")
    coordinator.act_history.undo(later.event, "rolf", "otto")
    assert (coordinator.item(first).label, coordinator.item(first).by) == (("a",), "rita")
    coordinator.answer("rita", first, ["c"])  # her own: no act, and the one before is overtaken
    with pytest.raises(InputError, match="was answered again since"):
        coordinator.act_history.undo(earlier.event, "rita", "otto")
    coordinator.answer("rolf", first, ["b"])
    coordinator.act_history.undo(latest(coordinator).event, "rolf", "otto")
    assert coordinator.item(first).label == ("c",)
    assert given.by == "ann"


def test_a_label_told_unasked_is_taken_back(coordinator):
    run_state = coordinator.session.run_state
    untouched = np.flatnonzero(run_state.label_table.untouched())
    one = run_state.ids[int(untouched[-1])]
    before = known(coordinator)
    coordinator.answer("rita", one, ["a"])
    act = latest(coordinator)
    assert (act.by, act.kind, act.ids, act.before) == ("rita", "told unasked", (one,), None)
    coordinator.act_history.undo(act.event, "rita", "otto")
    assert_same(known(coordinator), before)


def test_settling_is_taken_back_and_the_votes_count_again(shared):
    one = disputed(shared)
    before = known(shared)
    shared.settle(one, ["c"], "rita")
    assert not shared.review.disagreements().items
    act = latest(shared)
    assert (act.by, act.kind, act.ids) == ("rita", "settled", (one,))
    shared.act_history.undo(act.event, "rita", "otto")
    assert_same(known(shared), before)
    assert [item.id for item in shared.review.disagreements().items] == [one]
    shared.settle(one, ["a"], "rita")
    assert shared.item(one).label == ("a",)


def test_what_was_before_an_act_follows_classes_that_are_merged_and_parted(coordinator):
    first = label(coordinator, 1)[0]
    given = coordinator.item(first)
    coordinator.answer("ann", first, ["c"])
    coordinator.answer("rita", first, ["a"])
    overwritten = latest(coordinator).event
    coordinator.class_editor.merge("c", "b", "olga")
    assert coordinator.act_history.latest(2)[1].before == ("b",)
    coordinator.class_editor.undo_merge(latest(coordinator).event, "olga")
    coordinator.act_history.undo(overwritten, "rita", "otto")
    assert coordinator.item(first).label == ("c",)
    assert given.by == "ann"


def test_a_class_that_keeps_its_name_is_no_act(coordinator):
    coordinator.class_editor.rename("a", "a", "olga")
    assert coordinator.act_history.latest() == []


def test_only_who_could_do_it_takes_it_back(coordinator):
    coordinator.class_editor.add("quince", "olga")
    event = latest(coordinator).event
    for role in ("annotator", "reviewer"):
        assert not coordinator.act_history.latest(1, role=role)[0].can_undo
        with pytest.raises(NotAllowed, match=f"takes the role owner; yours is {role}"):
            coordinator.act_history.undo(event, "olga", "rita", role=role)
    assert "quince" in coordinator.classes
