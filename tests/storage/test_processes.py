"""Several processes and one run: who writes, and what is left of one that was killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tailor.storage import StoreBusy, StoreError, open_store

OPEN = "import sys; from tailor.storage import open_store; open_store(sys.argv[1])"
APPEND = """
import sys
from tailor.storage import open_store
store = open_store(sys.argv[1])
while True:
    print(store.append("told", {"x": "y" * 1000}), flush=True)
"""
TAKE_TURNS = """
import sys, time
from tailor.storage import StoreBusy, open_store
for n in range(8):
    while True:
        try:
            store = open_store(sys.argv[1])
            break
        except StoreBusy:
            time.sleep(0.01)
    known = store.last().number if store.last() else 0
    assert store.append("told", {"who": sys.argv[2], "n": n}) == known + 1
    store.close()
"""


def open_when_free(place, seconds=120):
    """The system, or the server, notices within moments that a process has died."""
    until = time.monotonic() + seconds
    while True:
        try:
            return open_store(place)
        except StoreBusy:
            assert time.monotonic() < until, "the lock of a dead process was not let go"
            time.sleep(0.02)


def test_a_second_process_is_told_who_writes(place):
    with open_store(place) as store:
        store.append("told", {})
        other = subprocess.run(
            [sys.executable, "-c", OPEN, str(place)], capture_output=True, text=True
        )
        assert other.returncode != 0
        assert "StoreBusy" in other.stderr
        assert f"process {os.getpid()}" in other.stderr
        with pytest.raises(StoreBusy, match=f"process {os.getpid()}"):
            open_store(place)
        assert store.append("told", {}) == 2


def test_kill_9_of_the_writer(place):
    """Everything acknowledged is there, without holes, and the next one may write."""
    acknowledged = 0
    for lines in (1, 7, 20):
        child = subprocess.Popen(
            [sys.executable, "-c", APPEND, str(place)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(lines):
            acknowledged = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        for late in child.stdout:
            acknowledged = int(late) if late.endswith("\n") else acknowledged
        child.wait()
        child.stdout.close()
        with open_when_free(place) as store:
            numbers = [e.number for e in store.events()]
            assert numbers == list(range(1, len(numbers) + 1))
            assert len(numbers) - acknowledged in (0, 1)  # one may have been on its way


def test_ctrl_c_at_any_moment(place):
    """The store stays usable; what was acknowledged is there, without holes."""

    def ring(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    chance = random.Random(0)
    acknowledged = []
    interrupts = 0
    longest = 0.06
    try:
        with open_store(place) as store:
            while interrupts < 40 or len(acknowledged) < 20:
                before_this = len(acknowledged)
                try:
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0005, longest))
                    while True:
                        acknowledged.append(store.append("told", {"interrupts": interrupts}))
                except KeyboardInterrupt:
                    interrupts += 1
                    if len(acknowledged) == before_this:
                        longest *= 1.2  # a slow machine gets nothing done in so little time
                except StoreError as error:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    if "did arrive" not in str(error):
                        raise
                    list(store.events())  # the interrupted one is there, and must be read first
            numbers = [e.number for e in store.events()]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert numbers == list(range(1, len(numbers) + 1))
    assert set(acknowledged) <= set(numbers)
    assert len(acknowledged) == len(set(acknowledged))


def test_processes_take_turns(place):
    children = [
        subprocess.Popen([sys.executable, "-c", TAKE_TURNS, str(place), str(i)]) for i in range(3)
    ]
    assert [child.wait(timeout=300) for child in children] == [0, 0, 0]
    with open_store(place, readonly=True) as store:
        events = list(store.events())
    assert [e.number for e in events] == list(range(1, 25))
    assert sorted((e.body["who"], e.body["n"]) for e in events) == [
        (str(i), n) for i in range(3) for n in range(8)
    ]
