"""What a room promises to each annotator."""

from __future__ import annotations

import errno
import time

import pytest
from rooms import Clock, Repeating, counted, found, label, open_room, open_session, prepare, truth
from small import Points

from tailor.errors import InputError, UnknownName
from tailor.live import Room
from tailor.session import SKIP
from tailor.stopping import Budget, ClassCounts


@pytest.fixture
def room(tmp_path):
    room = open_room(tmp_path / "a.db")
    assert room.next("ann").state == "preparing"
    prepare(room)
    yield room
    room.close()


def ids(handed):
    return [item.id for item in handed.items]


def test_a_reload_gives_the_same_and_nobody_gets_anothers(room):
    mine = ids(room.next("ann", 3))
    assert ids(room.next("ann", 3)) == mine
    assert ids(room.next("ann", 2)) == mine[:2]
    theirs = ids(room.next("bob", 5))
    assert len({*mine, *theirs}) == 8
    room.answer("ann", mine[0], ["a"])
    again = ids(room.next("ann", 3))
    assert again[:2] == mine[1:]
    assert again[2] not in theirs


def test_an_answer_is_durable_and_counted(room):
    (item,) = room.next("ann").items
    assert (item.label, item.skipped, item.by, item.arm, item.round) == (None, False, None, item.arm, 0)
    before = room.overview()["progress"]["left"]
    receipt = room.answer("ann", item.id, ["b"])
    assert receipt.counts == {"a": 0, "b": 1, "c": 0}
    assert receipt.event == room.session.store.last().number
    assert receipt.left == before - 1
    (back,) = room.history("ann")
    assert (back.id, back.label, back.by) == (item.id, ("b",), "ann")
    assert room.history("bob") == []


def test_corrections_by_oneself_and_by_others(room):
    (item,) = room.next("ann").items
    room.answer("ann", item.id, ["b"])
    assert room.answer("ann", item.id, ["c"]).counts == {"a": 0, "b": 0, "c": 1}
    room.answer("bob", item.id, ["a"])
    assert room.item(item.id).label == ("a",)
    assert room.item(item.id).by == "bob"
    assert [p["answered"] for p in room.overview()["annotators"]] == [1, 1]


def test_skip_go_back_and_answer_and_skip_again(room):
    (item,) = room.next("ann").items
    room.answer("ann", item.id, None)
    assert room.item(item.id).skipped
    assert item.id not in ids(room.next("ann", 20))
    assert [i.id for i in room.history("ann")] == [item.id]
    assert room.answer("ann", item.id, ["a"]).counts["a"] == 1
    assert room.answer("ann", item.id, None).counts["a"] == 0
    assert room.item(item.id).label is None
    assert room.item(item.id).skipped


def test_who_leaves_or_falls_silent_gives_back_what_he_had(tmp_path):
    clock = Clock()
    room = open_room(tmp_path / "a.db", clock=clock, room={"lease": 60})
    prepare(room)
    gone, quiet = ids(room.next("gone", 2)), ids(room.next("quiet", 2))
    assert room.release("gone") == 2
    assert ids(room.next("bob", 2)) == gone
    clock.now += 59
    room.heartbeat("quiet")
    clock.now += 59
    room.heartbeat("bob")
    assert not set(ids(room.next("cid", 3))) & set(quiet)
    clock.now += 2
    assert ids(room.next("dan", 2)) == quiet
    room.answer("quiet", quiet[0], ["a"])  # late, and not lost
    assert room.item(quiet[0]).label == ("a",)
    assert ids(room.next("dan", 1)) == quiet[1:]
    room.close()


def test_a_late_skip_takes_nobodys_label_away(tmp_path):
    clock = Clock()
    room = open_room(tmp_path / "a.db", clock=clock, room={"lease": 60})
    prepare(room)
    (item,) = room.next("ann").items
    clock.now += 61
    assert ids(room.next("bob")) == [item.id]
    room.answer("bob", item.id, ["a"])
    assert room.answer("ann", item.id, None).counts["a"] == 1
    assert room.item(item.id).by == "bob"
    assert room.answer("bob", item.id, None).counts["a"] == 0  # his own he may take back
    assert room.item(item.id).skipped
    room.close()


def test_the_round_goes_on_and_the_overview_is_right(room):
    done = label(room, 45)
    assert len(set(done)) == 45
    view, journal = room.overview(), room.journal()
    assert view["progress"]["answered"] == 45
    assert {c["name"]: c["count"] for c in view["counts"]} == journal.counts()
    assert [c["count"] for c in view["counts"]] == sorted(c["count"] for c in view["counts"])
    assert found(journal) == counted(journal)
    assert sum(a["pulls"] for a in view["arms"]) == len(journal.stories)
    assert sum(a["round_pulls"] for a in view["arms"]) == journal.rounds[-1].asked
    assert sum(sum(a["found"].values()) for a in view["arms"]) == 45
    assert view["progress"]["round"] >= 2
    assert view["reserve"][-1]["lower"] <= view["reserve"][-1]["accuracy"] <= view["reserve"][-1]["upper"]
    assert [r["labels"] for r in view["reserve"]] == sorted(r["labels"] for r in view["reserve"])
    assert view["training"]["state"] == "idle"
    assert view["pace"] > 0


def test_why_says_so_in_words(room):
    start = room.next("ann").items[0]
    assert "at random" in room.why(start.id)["sentences"][0]
    label(room, 30)
    told = {room.why(i.id)["arm"]: room.why(i.id) for i in room.labelled(limit=1000).items}
    arms = [said for arm, said in told.items() if "[" in arm]
    assert arms
    for said in arms:
        assert said["arm"] in said["sentences"][0]
        assert 0 < said["chance"] <= 1
        assert len(said["predicted"]) == 3
        assert len(said["sentences"]) == 3


def test_review_filters(room):
    label(room, 20, "ann")
    label(room, 10, "bob")
    everything = room.labelled(limit=1000)
    assert everything.total == len(everything.items) == 30
    assert [i.id for i in everything.items] == sorted(i.id for i in everything.items)
    for name in "abc":
        page = room.labelled(klass=name, limit=1000)
        assert all(i.label == (name,) for i in page.items)
        assert page.total == room.journal().counts()[name]
    assert room.labelled(annotator="bob").total == 10
    assert room.labelled(annotator="bob", offset=8, limit=5).items == room.labelled(annotator="bob").items[8:]
    arms = {i.arm for i in everything.items}
    assert sum(room.labelled(arm=arm).total for arm in arms) == 30
    wrong = [i.id for i in room.labelled(disagrees=True, limit=1000).items]
    assert wrong == [i.id for i in everything.items if i.predicted and next(iter(i.predicted)) not in i.label]
    target = everything.items[0]
    room.answer("bob", target.id, ["c" if target.label != ("c",) else "a"])
    assert target.id in [i.id for i in room.labelled(disagrees=True, limit=1000).items]
    with pytest.raises(UnknownName):
        room.labelled(klass="zebra")
    with pytest.raises(InputError, match="no arm"):
        room.labelled(arm="zebra")


def test_planted_mistakes_are_where_the_model_disagrees(tmp_path):
    """The model has learned all seven and repeats them by now; what it said before is what counts."""
    room = open_room(tmp_path / "a.db", model=Repeating, batch=12, holdout=0.0)
    prepare(room)
    label(room, 24)  # a random start, and a round with a model
    planted = {}
    while len(planted) < 7:
        (item,) = room.next("ann").items
        given = truth(room, item.id)
        if item.predicted and next(iter(item.predicted)) in given:  # the model is right
            given = ["a" if given != ["a"] else "b"]
            planted[item.id] = tuple(given)
        room.answer("ann", item.id, given)
        prepare(room)
    label(room, 36)  # whenever rounds are prepared, one has learned all seven by now
    at = [room.session.journal.position[one] for one in planted]
    now = room.session.journal.task.predicted(room.session.probs[at])
    assert [("abc"[row.argmax()],) for row in now] == list(planted.values())  # it says what it was taught
    doubted = room.labelled(disagrees=True, limit=1000)
    assert planted.keys() <= {item.id for item in doubted.items}
    assert doubted.total < room.labelled().total
    for item in doubted.items:
        assert next(iter(item.predicted)) not in item.label  # and this is what the page shows beside the label
    room.close()


def test_the_reserve_is_judged_by_the_model_of_today(tmp_path):
    """It never learns the reserve: what it says of it now is as honest as what it said then, and better."""
    room = open_room(tmp_path / "a.db", model=Repeating, holdout=0.5)
    prepare(room)
    label(room, 36)
    kept = room.labelled(arm="reserve", limit=1000).items
    assert len(kept) > 5
    for item in kept:
        row = room.session.probs[room.session.journal.position[item.id]]
        assert next(iter(item.predicted)) == "abc"[row.argmax()]
    room.close()


@pytest.mark.parametrize(("call", "word"), [
    (lambda room, one: room.next(""), "1 to 200"), (lambda room, one: room.next("x" * 201), "1 to 200"),
    (lambda room, one: room.next("ann", 0), "n is 0"), (lambda room, one: room.answer("ann", one, []), "exactly one"),
    (lambda room, one: room.answer("ann", one, ["a", "b"]), "exactly one"),
    (lambda room, one: room.answer("ann", one, "a"), "list of class names"),
    (lambda room, one: room.answer("ann", one, ["zebra"]), "zebra"),
    (lambda room, one: room.answer("ann", "nope", ["a"]), "nope"), (lambda room, one: room.why("nope"), "nope"),
    (lambda room, one: room.labelled(offset=-1), "offset is -1"),
])  # fmt: skip
def test_bad_input_changes_nothing(room, call, word):
    (item,) = room.next("ann").items
    events = room.session.store.last().number
    with pytest.raises(InputError, match=word):
        call(room, item.id)
    assert room.session.store.last().number == events
    assert room.overview()["progress"]["answered"] == 0


def test_multi_label_none_of_these_is_an_answer(tmp_path):
    room = open_room(tmp_path / "a.db", kind="multi-label")
    prepare(room)
    a, b = room.next("ann", 2).items
    room.answer("ann", a.id, [])
    room.answer("ann", b.id, ["a", "c"])
    assert room.item(a.id).label == ()
    assert room.item(b.id).label == ("a", "c")
    assert room.labelled().total == 2
    label(room, 30)
    room.close()


def test_a_budget_is_kept_with_people_in_parallel(tmp_path):
    room = open_room(tmp_path / "a.db", stop=[Budget(30)])
    prepare(room)
    handed = [ids(room.next(f"p{k}", 4)) for k in range(5)]
    for k, some in enumerate(handed):
        for one in some:
            room.answer(f"p{k}", one, truth(room, one))
            prepare(room)
    label(room, 10)
    end = room.next("ann")
    assert (end.items, end.state) == ((), "stopped")
    assert "budget of 30" in end.reason
    assert len(room.journal().stories) == 30
    assert room.overview()["stopped"] == end.reason
    room.close()


def test_other_rules_stop_when_the_batch_is_done(tmp_path):
    room = open_room(tmp_path / "a.db", Points(400), stop=[ClassCounts(3)])
    prepare(room)
    while (handed := room.next("ann")).state != "stopped":
        if not handed.items:
            prepare(room)
            continue
        room.answer("ann", handed.items[0].id, truth(room, handed.items[0].id))
    assert "every class has 3" in handed.reason
    journal = room.journal()
    assert journal.current.asked >= journal.current.size
    room.close()


def test_the_pool_runs_out(tmp_path):
    room = open_room(tmp_path / "a.db", Points(40))
    done = label(room, 40)
    assert sorted(done) == room.session.pool.ids
    prepare(room)
    end = room.next("ann")
    assert (end.state, end.reason) == ("stopped", "no example is left to ask")
    room.session.withdraw([done[0]])
    assert ids(room.next("ann")) == [done[0]]
    room.close()


def test_what_was_answered_by_another_way_is_not_handed_out(room):
    one, two = ids(room.next("ann", 2))
    room.session.tell({one: "a"}, by="a program")
    assert ids(room.next("ann", 1)) == [two]
    room.session.withdraw([one], by="a program")
    assert one in ids(room.next("bob", 5))


def test_nothing_is_left_of_a_round_whose_pool_was_answered_by_another_way(tmp_path, monkeypatch):
    monkeypatch.setattr("tailor.journal.STRETCH", 5)
    room = open_room(tmp_path / "a.db", Points(12, broken=(7,)))
    first, second = label(room, 2)
    assert room.overview()["progress"]["left"] == room.journal().current.size - 2
    others = [one for one in room.session.pool.ids if one not in (first, second, "p00007")]
    room.session.tell({one: "a" for one in others[1:]} | {others[0]: SKIP}, by="a program")
    assert room.overview()["progress"]["left"] == 0
    room.close()
    room = open_room(tmp_path / "a.db", Points(12, broken=(7,)))
    assert room.overview()["progress"]["left"] == 0  # the round has not been gone through again
    prepare(room)
    assert room.overview()["progress"]["left"] == 0
    assert room.answer("ann", first, ["a"]).left == 0
    room.close()


def test_what_cannot_be_read_is_never_handed_out(tmp_path):
    broken = tuple(range(0, 60, 2))
    room = open_room(tmp_path / "a.db", Points(60, broken=broken))
    done = label(room, 30)
    assert not {int(one[1:]) for one in done} & set(broken)
    room.close()


def rounds(room):
    """(number, size, answered, skipped, voted, left) of each round that is open."""
    keys = ("number", "size", "answered", "skipped", "voted", "left")
    return [tuple(row[key] for key in keys) for row in room.overview()["rounds"]]


def test_a_round_adds_up(room):
    """What is answered, skipped and left of a round is all of it; an earlier one that is not done stands beside it."""
    assert rounds(room) == [(0, 12, 0, 0, 0, 12)]
    held = ids(room.next("bob", 2))  # someone takes two and is slow
    label(room, 3)
    (item,) = room.next("ann").items
    room.answer("ann", item.id, None)
    assert rounds(room) == [(0, 12, 3, 1, 0, 8)]
    room.session.withdraw([room.history("ann")[1].id], by="ann")
    assert rounds(room) == [(0, 12, 2, 1, 0, 9)]
    while len(rounds(room)) == 1:
        label(room, 1)
    first, second = rounds(room)
    assert first[:5] == (0, first[1], first[1] - 1 - first[5], 1, 0)
    assert first[5] == 2  # bob's
    for one in held:
        room.answer("bob", one, truth(room, one))
    assert rounds(room) == [second]  # the first is done
    label(room, 4)
    assert rounds(room) == [(1, 12, second[2] + 4, 0, 0, second[5] - 4)]


def test_what_is_offered_again_counts_where_it_was_asked_last(room):
    (item,) = room.next("ann").items
    room.answer("ann", item.id, None)
    room.session.offer_again([item.id])
    assert rounds(room) == [(0, 11, 0, 0, 0, 11)]


def test_a_shared_example_waits_for_the_other_vote(tmp_path):
    room = open_room(tmp_path / "a.db", room={"overlap": 2, "overlap_share": 1.0})
    prepare(room)
    label(room, 2, "ann")
    assert rounds(room) == [(0, 12, 0, 0, 2, 10)]
    label(room, 2, "bob")
    assert rounds(room) == [(0, 12, 2, 0, 0, 10)]
    room.close()


def test_what_cannot_be_read_is_counted_and_named(tmp_path):
    room = open_room(tmp_path / "a.db", Points(60, broken=tuple(range(25))))
    prepare(room)
    told = room.overview()["unreadable"]
    assert told["count"] == 25
    assert len(told["some"]) == 20
    assert told["some"][0]["reason"] == "it is broken"
    assert {one["name"] for one in told["some"]} <= {f"p{i:05d}" for i in range(25)}
    room.close()


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0], ids=["back a day", "on a day"])
def test_leases_do_not_follow_the_time_of_day(tmp_path, monkeypatch, jump):
    """Someone sets the machine's clock, or a time server does: nobody loses what is held, nobody keeps it for ever."""
    clock, real = Clock(), time.time
    room = Room(open_session(tmp_path / "a.db"), lease=60, clock=clock, wall_clock=lambda: time.time())
    prepare(room)
    held = ids(room.next("ann", 2))
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    assert not set(ids(room.next("bob", 2))) & set(held)
    assert ids(room.next("ann", 2)) == held
    clock.now += 61
    room.heartbeat("bob")
    assert set(held) <= set(ids(room.next("bob", 4)))
    room.close()


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
    """It happens under everybody's lock: with a million examples going through them would hold up all who label."""
    room = open_room(tmp_path / "a.db", Points(5000))
    journal = room.session.journal
    journal.ids = Unlooked(journal.ids)
    answer, settle = (lambda one: room.answer("ann", one, ["a"])), (lambda one: room.settle(one, ["a"], "ann"))
    for ask in (room.why, room.item, answer, settle):
        for one in ("p9", "nothing like it", "p00001x"):
            with pytest.raises(UnknownName, match=r"known: p00000, .* and 4,99\d more"):
                ask(one)
    assert journal.ids.taken <= 12 * 5
    room.close()


def test_among_a_few_the_nearest_id_is_named(room):
    with pytest.raises(UnknownName, match="did you mean 'p00"):
        room.why("p0001")


def test_a_room_measures_leases_by_a_clock_that_never_jumps(tmp_path):
    room = Room(open_session(tmp_path / "a.db"))
    assert room._leases._clock is time.monotonic
    room.close()


def test_why_there_is_no_round_names_no_path(room, monkeypatch):
    """Everybody sees it beside the picture."""

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "/home/chief/cache/features.bin")

    monkeypatch.setattr(room.session, "draft", full)
    monkeypatch.setattr(room.planner, "_is_due", lambda: True)
    monkeypatch.setattr(room.planner, "_ready", None)
    assert room.planner.step()
    assert room.overview()["training"]["trouble"] == "the next round could not be prepared: No space left on device"
