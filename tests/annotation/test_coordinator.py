"""What a coordinator promises to each annotator."""

from __future__ import annotations

import errno
import time

import pytest
from coordinators import (
    Clock,
    Repeating,
    counted,
    found,
    label,
    open_coordinator,
    open_session,
    prepare,
    truth,
)
from small import Points

from tailor.annotation import Coordinator
from tailor.errors import InputError, UnknownName
from tailor.run.session import SKIP
from tailor.run.stopping import Budget, ClassCounts


@pytest.fixture
def coordinator(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db")
    assert coordinator.next("ann").state == "preparing"
    prepare(coordinator)
    yield coordinator
    coordinator.close()


def ids(handed):
    return [item.id for item in handed.items]


def test_a_reload_gives_the_same_and_nobody_gets_anothers(coordinator):
    mine = ids(coordinator.next("ann", 3))
    assert ids(coordinator.next("ann", 3)) == mine
    assert ids(coordinator.next("ann", 2)) == mine[:2]
    theirs = ids(coordinator.next("bob", 5))
    assert len({*mine, *theirs}) == 8
    coordinator.answer("ann", mine[0], ["a"])
    again = ids(coordinator.next("ann", 3))
    assert again[:2] == mine[1:]
    assert again[2] not in theirs


def test_an_answer_is_durable_and_counted(coordinator):
    (item,) = coordinator.next("ann").items
    assert (item.label, item.skipped, item.by, item.arm, item.round) == (
        None,
        False,
        None,
        item.arm,
        0,
    )
    before = coordinator.overview()["progress"]["left"]
    receipt = coordinator.answer("ann", item.id, ["b"])
    assert receipt.counts == {"a": 0, "b": 1, "c": 0}
    assert receipt.event == coordinator.session.store.last().number
    assert receipt.left == before - 1
    (back,) = coordinator.history("ann")
    assert (back.id, back.label, back.by) == (item.id, ("b",), "ann")
    assert coordinator.history("bob") == []


def test_corrections_by_oneself_and_by_others(coordinator):
    (item,) = coordinator.next("ann").items
    coordinator.answer("ann", item.id, ["b"])
    assert coordinator.answer("ann", item.id, ["c"]).counts == {"a": 0, "b": 0, "c": 1}
    coordinator.answer("bob", item.id, ["a"])
    assert coordinator.item(item.id).label == ("a",)
    assert coordinator.item(item.id).by == "bob"
    assert [p["answered"] for p in coordinator.overview()["annotators"]] == [1, 1]


def test_skip_go_back_and_answer_and_skip_again(coordinator):
    (item,) = coordinator.next("ann").items
    coordinator.answer("ann", item.id, None)
    assert coordinator.item(item.id).skipped
    assert item.id not in ids(coordinator.next("ann", 20))
    assert [i.id for i in coordinator.history("ann")] == [item.id]
    assert coordinator.answer("ann", item.id, ["a"]).counts["a"] == 1
    assert coordinator.answer("ann", item.id, None).counts["a"] == 0
    assert coordinator.item(item.id).label is None
    assert coordinator.item(item.id).skipped


def test_who_leaves_or_falls_silent_gives_back_what_he_had(tmp_path):
    clock = Clock()
    coordinator = open_coordinator(tmp_path / "a.db", clock=clock, coordinator={"lease": 60})
    prepare(coordinator)
    gone = ids(coordinator.next("gone", 2))
    quiet = ids(coordinator.next("quiet", 2))
    assert coordinator.release("gone") == 2
    assert ids(coordinator.next("bob", 2)) == gone
    clock.now += 59
    coordinator.heartbeat("quiet")
    clock.now += 59
    coordinator.heartbeat("bob")
    assert not set(ids(coordinator.next("cid", 3))) & set(quiet)
    clock.now += 2
    assert ids(coordinator.next("dan", 2)) == quiet
    coordinator.answer("quiet", quiet[0], ["a"])  # late, and not lost
    assert coordinator.item(quiet[0]).label == ("a",)
    assert ids(coordinator.next("dan", 1)) == quiet[1:]
    coordinator.close()


def test_a_late_skip_takes_nobodys_label_away(tmp_path):
    clock = Clock()
    coordinator = open_coordinator(tmp_path / "a.db", clock=clock, coordinator={"lease": 60})
    prepare(coordinator)
    (item,) = coordinator.next("ann").items
    clock.now += 61
    assert ids(coordinator.next("bob")) == [item.id]
    coordinator.answer("bob", item.id, ["a"])
    assert coordinator.answer("ann", item.id, None).counts["a"] == 1
    assert coordinator.item(item.id).by == "bob"
    assert coordinator.answer("bob", item.id, None).counts["a"] == 0  # his own he may take back
    assert coordinator.item(item.id).skipped
    coordinator.close()


def test_the_round_goes_on_and_the_overview_is_right(coordinator):
    done = label(coordinator, 45)
    assert len(set(done)) == 45
    view = coordinator.overview()
    run_state = coordinator.run_state()
    assert view["progress"]["answered"] == 45
    assert {c["name"]: c["count"] for c in view["counts"]} == run_state.counts()
    assert [c["count"] for c in view["counts"]] == sorted(c["count"] for c in view["counts"])
    assert found(run_state) == counted(run_state)
    assert sum(a["pulls"] for a in view["arms"]) == len(run_state.label_table.picks.positions)
    assert sum(a["round_pulls"] for a in view["arms"]) == run_state.rounds[-1].asked
    assert sum(sum(a["found"].values()) for a in view["arms"]) == 45
    assert view["progress"]["round"] >= 2
    assert (
        view["holdout"][-1]["lower"]
        <= view["holdout"][-1]["accuracy"]
        <= view["holdout"][-1]["upper"]
    )
    assert [r["labels"] for r in view["holdout"]] == sorted(r["labels"] for r in view["holdout"])
    assert view["training"]["state"] == "idle"
    assert view["pace"] > 0


def test_why_says_so_in_words(coordinator):
    start = coordinator.next("ann").items[0]
    assert "at random" in coordinator.why(start.id)["sentences"][0]
    label(coordinator, 30)
    told = {
        coordinator.why(i.id)["arm"]: coordinator.why(i.id)
        for i in coordinator.review.labelled(limit=1000).items
    }
    arms = [said for arm, said in told.items() if "[" in arm]
    assert arms
    for said in arms:
        assert said["arm"] in said["sentences"][0]
        assert 0 < said["chance"] <= 1
        assert len(said["predicted"]) == 3
        assert len(said["sentences"]) == 3


def test_why_says_where_a_wrapped_family_looks(tmp_path):
    coordinator = open_coordinator(tmp_path / "s.db", strategies=["seals(margin, neighbours=3)"])
    prepare(coordinator)
    label(coordinator, 30)
    answered = coordinator.review.labelled(limit=1000).items
    said = [coordinator.why(item.id) for item in answered if item.arm == "seals(margin)"]
    assert said
    for explanation in said:
        assert "as margin does, among the 3 nearest neighbours" in explanation["sentences"][1]
    coordinator.close()


def test_review_filters(coordinator):
    label(coordinator, 20, "ann")
    label(coordinator, 10, "bob")
    everything = coordinator.review.labelled(limit=1000)
    assert everything.total == len(everything.items) == 30
    assert [i.id for i in everything.items] == sorted(i.id for i in everything.items)
    for name in "abc":
        page = coordinator.review.labelled(klass=name, limit=1000)
        assert all(i.label == (name,) for i in page.items)
        assert page.total == coordinator.run_state().counts()[name]
    assert coordinator.review.labelled(annotator="bob").total == 10
    assert (
        coordinator.review.labelled(annotator="bob", offset=8, limit=5).items
        == coordinator.review.labelled(annotator="bob").items[8:]
    )
    arms = {i.arm for i in everything.items}
    assert sum(coordinator.review.labelled(arm=arm).total for arm in arms) == 30
    wrong = [i.id for i in coordinator.review.labelled(disagrees=True, limit=1000).items]
    assert wrong == [
        i.id for i in everything.items if i.predicted and next(iter(i.predicted)) not in i.label
    ]
    target = everything.items[0]
    coordinator.answer("bob", target.id, ["c" if target.label != ("c",) else "a"])
    assert target.id in [
        i.id for i in coordinator.review.labelled(disagrees=True, limit=1000).items
    ]
    with pytest.raises(UnknownName):
        coordinator.review.labelled(klass="zebra")
    with pytest.raises(InputError, match="no arm"):
        coordinator.review.labelled(arm="zebra")


def test_planted_mistakes_are_where_the_model_disagrees(tmp_path):
    """The model has learned all seven and repeats them by now; what it said before is what
    counts.
    """
    coordinator = open_coordinator(tmp_path / "a.db", model=Repeating, batch=12, holdout=0.0)
    prepare(coordinator)
    label(coordinator, 24)  # a random start, and a round with a model
    planted = {}
    while len(planted) < 7:
        (item,) = coordinator.next("ann").items
        given = truth(coordinator, item.id)
        if item.predicted and next(iter(item.predicted)) in given:  # the model is right
            given = ["a" if given != ["a"] else "b"]
            planted[item.id] = tuple(given)
        coordinator.answer("ann", item.id, given)
        prepare(coordinator)
    label(coordinator, 36)  # whenever rounds are prepared, one has learned all seven by now
    at = [coordinator.session.run_state.position[one] for one in planted]
    now = coordinator.session.run_state.task.predicted(coordinator.session.probs[at])
    assert [("abc"[row.argmax()],) for row in now] == list(
        planted.values()
    )  # it says what it was taught
    doubted = coordinator.review.labelled(disagrees=True, limit=1000)
    assert planted.keys() <= {item.id for item in doubted.items}
    assert doubted.total < coordinator.review.labelled().total
    for item in doubted.items:
        assert (
            next(iter(item.predicted)) not in item.label
        )  # and this is what the page shows beside the label
    coordinator.close()


def test_the_holdout_is_judged_by_the_model_of_today(tmp_path):
    """It never learns the hold-out: what it says of it now is as honest as what it said then, and
    better.
    """
    coordinator = open_coordinator(tmp_path / "a.db", model=Repeating, holdout=0.5)
    prepare(coordinator)
    label(coordinator, 36)
    held_out = coordinator.review.labelled(arm="hold-out", limit=1000).items
    assert len(held_out) > 5
    for item in held_out:
        row = coordinator.session.probs[coordinator.session.run_state.position[item.id]]
        assert next(iter(item.predicted)) == "abc"[row.argmax()]
    coordinator.close()


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda coordinator, one: coordinator.next(""), "1 to 200"),
        (lambda coordinator, one: coordinator.next("x" * 201), "1 to 200"),
        (lambda coordinator, one: coordinator.next("ann", 0), "n is 0"),
        (lambda coordinator, one: coordinator.answer("ann", one, []), "exactly one"),
        (lambda coordinator, one: coordinator.answer("ann", one, ["a", "b"]), "exactly one"),
        (lambda coordinator, one: coordinator.answer("ann", one, "a"), "list of class names"),
        (lambda coordinator, one: coordinator.answer("ann", one, ["zebra"]), "zebra"),
        (lambda coordinator, one: coordinator.answer("ann", "nope", ["a"]), "nope"),
        (lambda coordinator, one: coordinator.why("nope"), "nope"),
        (lambda coordinator, one: coordinator.review.labelled(offset=-1), "offset is -1"),
    ],
)
def test_bad_input_changes_nothing(coordinator, call, word):
    (item,) = coordinator.next("ann").items
    events = coordinator.session.store.last().number
    with pytest.raises(InputError, match=word):
        call(coordinator, item.id)
    assert coordinator.session.store.last().number == events
    assert coordinator.overview()["progress"]["answered"] == 0


def test_multi_label_none_of_these_is_an_answer(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", kind="multi-label")
    prepare(coordinator)
    a, b = coordinator.next("ann", 2).items
    coordinator.answer("ann", a.id, [])
    coordinator.answer("ann", b.id, ["a", "c"])
    assert coordinator.item(a.id).label == ()
    assert coordinator.item(b.id).label == ("a", "c")
    assert coordinator.review.labelled().total == 2
    label(coordinator, 30)
    coordinator.close()


def test_a_budget_is_kept_with_people_in_parallel(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", stop=[Budget(30)])
    prepare(coordinator)
    handed = [ids(coordinator.next(f"p{k}", 4)) for k in range(5)]
    for k, some in enumerate(handed):
        for one in some:
            coordinator.answer(f"p{k}", one, truth(coordinator, one))
            prepare(coordinator)
    label(coordinator, 10)
    end = coordinator.next("ann")
    assert (end.items, end.state) == ((), "stopped")
    assert "budget of 30" in end.reason
    assert len(coordinator.run_state().label_table.picks.positions) == 30
    assert coordinator.overview()["stopped"] == end.reason
    coordinator.close()


def test_other_rules_stop_when_the_batch_is_done(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", Points(400), stop=[ClassCounts(3)])
    prepare(coordinator)
    while (handed := coordinator.next("ann")).state != "stopped":
        if not handed.items:
            prepare(coordinator)
            continue
        coordinator.answer("ann", handed.items[0].id, truth(coordinator, handed.items[0].id))
    assert "every class has 3" in handed.reason
    run_state = coordinator.run_state()
    assert run_state.current.asked >= run_state.current.size
    coordinator.close()


def test_the_pool_runs_out(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", Points(40))
    done = label(coordinator, 40)
    assert sorted(done) == coordinator.session.pool.ids
    prepare(coordinator)
    end = coordinator.next("ann")
    assert (end.state, end.reason) == ("stopped", "no example is left to ask")
    coordinator.session.withdraw([done[0]])
    assert ids(coordinator.next("ann")) == [done[0]]
    coordinator.close()


def test_what_was_answered_by_another_way_is_not_handed_out(coordinator):
    one, two = ids(coordinator.next("ann", 2))
    coordinator.session.tell({one: "a"}, by="a program")
    assert ids(coordinator.next("ann", 1)) == [two]
    coordinator.session.withdraw([one], by="a program")
    assert one in ids(coordinator.next("bob", 5))


def test_nothing_is_left_of_a_round_whose_pool_was_answered_by_another_way(tmp_path, monkeypatch):
    monkeypatch.setattr("tailor.selection.label_table.STRETCH", 5)
    coordinator = open_coordinator(tmp_path / "a.db", Points(12, broken=(7,)))
    first, second = label(coordinator, 2)
    assert coordinator.overview()["progress"]["left"] == coordinator.run_state().current.size - 2
    others = [one for one in coordinator.session.pool.ids if one not in (first, second, "p00007")]
    coordinator.session.tell({one: "a" for one in others[1:]} | {others[0]: SKIP}, by="a program")
    assert coordinator.overview()["progress"]["left"] == 0
    coordinator.close()
    coordinator = open_coordinator(tmp_path / "a.db", Points(12, broken=(7,)))
    assert (
        coordinator.overview()["progress"]["left"] == 0
    )  # the round has not been gone through again
    prepare(coordinator)
    assert coordinator.overview()["progress"]["left"] == 0
    assert coordinator.answer("ann", first, ["a"]).left == 0
    coordinator.close()


def test_what_cannot_be_read_is_never_handed_out(tmp_path):
    broken = tuple(range(0, 60, 2))
    coordinator = open_coordinator(tmp_path / "a.db", Points(60, broken=broken))
    done = label(coordinator, 30)
    assert not {int(one[1:]) for one in done} & set(broken)
    coordinator.close()


def rounds(coordinator):
    """(number, size, answered, skipped, voted, left) of each round that is open."""
    keys = ("number", "size", "answered", "skipped", "voted", "left")
    return [tuple(row[key] for key in keys) for row in coordinator.overview()["rounds"]]


def test_a_round_adds_up(coordinator):
    """What is answered, skipped and left of a round is all of it; an earlier one that is not done
    stands beside it.
    """
    assert rounds(coordinator) == [(0, 12, 0, 0, 0, 12)]
    held = ids(coordinator.next("bob", 2))  # someone takes two and is slow
    label(coordinator, 3)
    (item,) = coordinator.next("ann").items
    coordinator.answer("ann", item.id, None)
    assert rounds(coordinator) == [(0, 12, 3, 1, 0, 8)]
    coordinator.session.withdraw([coordinator.history("ann")[1].id], by="ann")
    assert rounds(coordinator) == [(0, 12, 2, 1, 0, 9)]
    while len(rounds(coordinator)) == 1:
        label(coordinator, 1)
    first, second = rounds(coordinator)
    assert first[:5] == (0, first[1], first[1] - 1 - first[5], 1, 0)
    assert first[5] == 2  # bob's
    for one in held:
        coordinator.answer("bob", one, truth(coordinator, one))
    assert rounds(coordinator) == [second]  # the first is done
    label(coordinator, 4)
    assert rounds(coordinator) == [(1, 12, second[2] + 4, 0, 0, second[5] - 4)]


def test_what_is_offered_again_counts_where_it_was_asked_last(coordinator):
    (item,) = coordinator.next("ann").items
    coordinator.answer("ann", item.id, None)
    coordinator.session.offer_again([item.id])
    assert rounds(coordinator) == [(0, 11, 0, 0, 0, 11)]


def test_a_shared_example_waits_for_the_other_vote(tmp_path):
    coordinator = open_coordinator(
        tmp_path / "a.db", coordinator={"overlap": 2, "overlap_share": 1.0}
    )
    prepare(coordinator)
    label(coordinator, 2, "ann")
    assert rounds(coordinator) == [(0, 12, 0, 0, 2, 10)]
    label(coordinator, 2, "bob")
    assert rounds(coordinator) == [(0, 12, 2, 0, 0, 10)]
    coordinator.close()


def test_what_cannot_be_read_is_counted_and_named(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", Points(60, broken=tuple(range(25))))
    prepare(coordinator)
    told = coordinator.overview()["unreadable"]
    assert told["count"] == 25
    assert len(told["some"]) == 20
    assert told["some"][0]["reason"] == "it is broken"
    assert {one["name"] for one in told["some"]} <= {f"p{i:05d}" for i in range(25)}
    coordinator.close()


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0], ids=["back a day", "on a day"])
def test_leases_do_not_follow_the_time_of_day(tmp_path, monkeypatch, jump):
    """Someone sets the machine's clock, or a time server does: nobody loses what is held, nobody
    keeps it for ever.
    """
    clock = Clock()
    real = time.time
    coordinator = Coordinator(
        open_session(tmp_path / "a.db"), lease=60, clock=clock, wall_clock=lambda: time.time()
    )
    prepare(coordinator)
    held = ids(coordinator.next("ann", 2))
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    assert not set(ids(coordinator.next("bob", 2))) & set(held)
    assert ids(coordinator.next("ann", 2)) == held
    clock.now += 61
    coordinator.heartbeat("bob")
    assert set(held) <= set(ids(coordinator.next("bob", 4)))
    coordinator.close()


class Unlooked(list):
    """A list that is not to be gone through: it counts how many of its items are taken."""

    taken = 0

    def __iter__(self):
        for item in super().__iter__():
            self.taken += 1
            yield item

    def __getitem__(self, at):
        found = super().__getitem__(at)
        self.taken += len(found) if isinstance(at, slice) else 1
        return found


def test_an_unknown_id_is_not_searched_among_all(tmp_path):
    """It happens under everybody's lock: with a million examples going through them would hold up
    all who label.
    """
    coordinator = open_coordinator(tmp_path / "a.db", Points(5000))
    run_state = coordinator.session.run_state
    run_state.ids = Unlooked(run_state.ids)

    def answer(name):
        return coordinator.answer("ann", name, ["a"])

    def settle(name):
        return coordinator.settle(name, ["a"], "ann")

    for ask in (coordinator.why, coordinator.item, answer, settle):
        for one in ("p9", "nothing like it", "p00001x"):
            with pytest.raises(UnknownName, match=r"known: p00000, .* and 4,99\d more"):
                ask(one)
    assert run_state.ids.taken <= 12 * 5
    coordinator.close()


def test_among_a_few_the_nearest_id_is_named(coordinator):
    with pytest.raises(UnknownName, match="did you mean 'p00"):
        coordinator.why("p0001")


def test_a_coordinator_measures_leases_by_a_clock_that_never_jumps(tmp_path):
    coordinator = Coordinator(open_session(tmp_path / "a.db"))
    assert coordinator._leases._clock is time.monotonic
    coordinator.close()


def test_why_there_is_no_round_names_no_path(coordinator, monkeypatch):
    """Everybody sees it beside the picture."""

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "/home/chief/cache/features.bin")

    monkeypatch.setattr(coordinator.session, "draft", full)
    monkeypatch.setattr(coordinator.planner, "_is_due", lambda: True)
    monkeypatch.setattr(coordinator.planner, "_ready", None)
    assert coordinator.planner.step()
    assert (
        coordinator.overview()["training"]["trouble"]
        == "the next round could not be prepared: No space left on device"
    )
