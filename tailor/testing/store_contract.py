"""The contract that every store keeps. The author of another one calls `check_store` from a test.

>>> import tempfile
>>> from tailor.storage import SqliteStore
>>> with tempfile.TemporaryDirectory() as folder:
...     places = iter(range(100))
...     def place():
...         path = f"{folder}/{next(places)}.db"
...         return lambda readonly=False: SqliteStore(path, readonly=readonly)
...     check_store(place)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from tailor.errors import InputError, TailorError
from tailor.storage import (
    Event,
    Store,
    StoreBusy,
    StoreError,
    StoreMissing,
)
from tailor.storage.chain import ids_digest
from tailor.testing.odd_ids import ODD_IDS


class Opener(Protocol):
    """Opens the store at one place, which has nothing at first."""

    def __call__(self, readonly: bool = False) -> Store: ...


Place = Callable[[], Opener]
#: numbers of events by the thread that added them and its own count
NumbersByThread = dict[tuple[int, int], int]
#: the kind, body and data of an event
EventContent = tuple[str, dict[str, Any], bytes | None]


def check_store(place: Place) -> None:
    """Raises AssertionError where a store breaks a rule that runs rely on.

    place  gives a new, empty place each time, as a function that opens it
    """
    for check in STORE_CHECKS:
        check(place)


@contextmanager
def refused(kind: type[Exception] = StoreError) -> Iterator[None]:
    """The block must raise an error of this kind."""
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was expected")


def event_numbers(store: Store) -> list[int]:
    return [event.number for event in store.events()]


def check_events(place: Place) -> None:
    """They come back as they were, in order, with the time at which they were added, also after
    opening again.
    """
    open_it = place()
    before = time.time()
    added = _odd_events()
    with open_it() as store:
        assert list(store.events()) == []
        assert store.last() is None
        for number, (kind, body, data) in enumerate(added, 1):
            assert store.append(kind, body, data) == number
    # Opened again, to write and to read: nothing may come from the memory of the first.
    for readonly in (False, True):
        with open_it(readonly) as store:
            assert event_numbers(store) == [1, 2, 3, 4]
            events = list(store.events())
            for event, content in zip(events, added):
                assert (event.kind, event.body, event.data) == content
            # A dict equals another one whatever the order of its keys.
            keys = list(events[3].body)
            assert keys == ["b", "a", "large", "small"], "keys change places"
            _check_times(events, before)
            _check_later_events(store, events)


def _odd_events() -> list[EventContent]:
    """Contents that something on the way might change: deep ones, odd text, numbers at the limits
    of their types, every byte.
    """
    nested = {
        "n": 1,
        "nested": [{"a": None}, 0.1, True],
    }
    # A null character, half of a surrogate pair, quotes and a backslash.
    odd_text = {"text": "ü 猫 \0 \ud800 \"'\\"}
    odd_numbers = {
        "b": 1,
        "a": 2,
        "large": 2**60,
        "small": 5e-324,
    }
    every_byte = bytes(range(256))
    return [
        ("told", nested, None),
        ("told", {}, b""),
        ("asked", odd_text, every_byte),
        ("ü", odd_numbers, b"x" * 300_000),
    ]


def _check_times(events: list[Event], before: float) -> None:
    times = [event.time for event in events]
    assert before <= times[0]
    assert times == sorted(times)
    assert times[-1] <= time.time()


def _check_later_events(store: Store, events: list[Event]) -> None:
    assert list(store.events(after=2)) == events[2:]
    assert list(store.events(after=4)) == []
    assert list(store.events(after=99)) == []
    assert store.last() == events[-1]


def check_many_events(place: Place) -> None:
    """More of them than are read at once, small and large."""

    def data_of(number: int) -> bytes:
        length = number % 3
        # Few of them: a store may read so many events at once, or so many bytes.
        if number % 30 == 7:
            length = 2_000_000
        return b"x" * length

    with place()() as store:
        for number in range(300):
            data = data_of(number)
            store.append("told", {"n": number}, data)
        count = 0
        for event in store.events():
            expected_data = data_of(count)
            assert event.body == {"n": count}
            assert (event.data or b"") == expected_data
            count += 1
            assert event.number == count
    assert count == 300


def check_reading_while_writing(place: Place) -> None:
    """What is added while events are gone through comes with the next call, not with this one."""
    with place()() as store:
        for number in range(20):
            store.append("told", {"n": number})
        seen = []
        for event in store.events():
            store.append("told", {"n": -1})
            seen.append(event.body["n"])
        assert seen == list(range(20))
        assert len(event_numbers(store)) == 40
        # Events that are not gone through to their end keep nobody from writing.
        first = next(store.events())
        assert first.body == {"n": 0}
        assert store.append("told", {}) == 41


def check_no_holes(place: Place) -> None:
    """What was refused leaves no trace and no gap in the numbers."""
    open_it = place()
    with open_it() as store:
        store.add_examples(["a"])
        # The first of each pair is new: it must not stay behind when the second is refused.
        for refused_ids in (["b", "a"], ["c", "c"], ["d", "\ud800"]):
            with refused(TailorError):
                store.add_examples(refused_ids)
            with refused(ValueError):
                store.append("told", {"n": float("nan")})
            with refused(InputError):
                store.append("\ud800", {})
            store.append("told", {})
        assert store.examples() == ["a"]
        store.add_examples(["b"])
    with open_it(True) as store:
        assert event_numbers(store) == [1, 2, 3, 4, 5]
        assert store.examples() == ["a", "b"]


def check_examples(place: Place) -> None:
    """Any text is an id. Positions follow each other, and an event counts what came."""
    open_it = place()
    with open_it() as store:
        assert store.examples() == []
        store.add_examples(ODD_IDS)
        store.add_examples([])
        store.add_examples(["one more"])
        for example_id in ODD_IDS:
            with refused():
                store.add_examples(["new", example_id])
    size = len(ODD_IDS)
    with open_it(True) as store:
        assert store.examples() == [*ODD_IDS, "one more"]
        events = list(store.events())
    kinds = {event.kind for event in events}
    bodies = [event.body for event in events]
    assert kinds == {"examples"}
    assert bodies == [
        {"first": 0, "count": size},
        {"first": size, "count": 0},
        {"first": size, "count": 1},
    ]


def check_one_writer(place: Place) -> None:
    """A second writer is told who writes and changes nothing; readers see each event as soon as it
    is there.
    """
    open_it = place()
    with refused(StoreMissing):
        open_it(True)
    with open_it() as store, open_it(True) as reader:
        assert list(reader.events()) == []
        store.append("told", {"n": 1})
        # In the same process too: a lock that only other processes see is not enough.
        with refused(StoreBusy):
            open_it()
        bodies = [event.body for event in reader.events()]
        assert bodies == [{"n": 1}]
        with refused():
            reader.append("told", {"n": 2})
        with refused():
            reader.add_examples(["a"])
        store.append("told", {"n": 2})
        assert reader.last() == store.last()
    with open_it() as store:
        assert store.append("told", {}) == 3


def check_closing(place: Place) -> None:
    """Closing twice is fine; afterwards nothing works, and the place is free."""
    open_it = place()
    store = open_it()
    store.append("told", {})
    store.close()
    store.close()  # as a context manager does after its block has closed it
    for use in (
        lambda: store.append("told", {}),
        lambda: list(store.events()),
        store.examples,
        store.last,
    ):
        with refused():
            use()
    with open_it() as again:
        assert len(list(again.events())) == 1


def check_threads(place: Place) -> None:
    """Threads share a store: every event once, in the order of the numbers that append gave."""
    numbers: NumbersByThread = {}  # that append() gave

    def work(store: Store, thread: int) -> None:
        for count in range(15):
            body = {
                "thread": thread,
                "n": count,
            }
            number = store.append("told", body)
            store.add_examples([f"{thread}-{count}"])
            up_to_here = event_numbers(store)[:number]
            without_gap = list(range(1, number + 1))
            assert up_to_here == without_gap
            numbers[thread, count] = number

    open_it = place()
    with open_it() as store:
        threads = []
        for thread_number in range(4):
            thread = threading.Thread(target=work, args=(store, thread_number))
            threads.append(thread)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # An assertion that fails in a thread ends that thread alone.
        assert len(numbers) == 4 * 15, "a thread failed"
        assert _numbers_by_thread(store) == numbers
        # Each of the 60 turns wrote an event of its own and one that counts its example.
        all_numbers = list(range(1, 121))
        assert event_numbers(store) == all_numbers
        assert len(store.examples()) == 60


def _numbers_by_thread(store: Store) -> NumbersByThread:
    numbers: NumbersByThread = {}
    for event in store.events():
        if event.kind != "told":
            continue
        thread = event.body["thread"]
        count = event.body["n"]
        numbers[thread, count] = event.number
    return numbers


def check_restore(place: Place) -> None:
    """Everything of another store, numbers and times too; nothing where it fails; never over
    something.
    """
    # Times that a decimal fraction rounds, and the last one earlier than the one before.
    counted = {"first": 0, "count": len(ODD_IDS)}
    events = [
        Event(
            1,
            0.1 + 0.2,
            "opened",
            {"ü": "\0"},
            None,
        ),
        Event(
            2,
            1e9 / 3,
            "examples",
            counted,
            ids_digest(ODD_IDS),
        ),
        Event(
            3,
            1e9 / 7,
            "told",
            {},
            b"\0\1",
        ),
        Event(
            4,
            5.0,
            "asked",
            {},
            b"",
        ),
    ]
    open_it = place()

    def fails() -> None:
        raise StoreError("what arrived differs")

    with open_it() as store:
        # Called when all has arrived, before it counts: the last chance to refuse.
        with refused():
            store.restore(ODD_IDS, events, fails)
        assert list(store.events()) == []
        assert store.examples() == []
        store.restore(ODD_IDS, iter(events), lambda: None)
        with refused():
            store.restore([], events, lambda: None)
        assert store.append("told", {}) == 5
    with open_it(True) as store:
        assert list(store.events())[:4] == events
        assert store.examples() == ODD_IDS


def check_kinds(place: Place) -> None:
    """find() gives the events of a kind as events() does."""
    with place()() as store:
        assert list(store.find("told")) == []
        for number in range(30):
            kind = "told"
            if number % 3 == 0:
                kind = "asked"
            store.append(kind, {"n": number})
        for kind in ("told", "asked", "nothing"):
            expected = []
            for event in store.events():
                if event.kind == kind:
                    expected.append(event)
            assert list(store.find(kind)) == expected


def check_whole(place: Place) -> None:
    """A store in which nothing was damaged says so: when it is new, in use, complete by itself, and
    open for reading. The event that counts ids knows their checksum.
    """
    open_it = place()
    with open_it() as store:
        assert store.problems() == []
        store.checkpoint()
        store.add_examples(ODD_IDS)
        store.append("told", {}, b"\0" * 100_000)
        store.checkpoint()
        store.append("told", {})
        assert store.problems() == []
        with open_it(True) as reader:
            reader.checkpoint()
            assert reader.problems() == []
        store.add_examples([])
    with open_it(True) as store:
        assert store.problems() == []
        data = [event.data for event in store.find("examples")]
    assert data == [ids_digest(ODD_IDS), ids_digest([])]


def check_writing_at_once(place: Place) -> None:
    """Writing goes on from what is there, also where nothing was read before."""
    open_it = place()
    for number in range(1, 6):
        with open_it() as store:
            assert store.append("told", {}) == number
    with open_it(True) as store:
        assert event_numbers(store) == [1, 2, 3, 4, 5]
        assert store.problems() == []


STORE_CHECKS = [
    check_events,
    check_many_events,
    check_reading_while_writing,
    check_no_holes,
    check_examples,
    check_one_writer,
    check_closing,
    check_threads,
    check_restore,
    check_kinds,
    check_whole,
    check_writing_at_once,
]
