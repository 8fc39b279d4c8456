"""The soak finds what is lost, and a short one passes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import parts
import pytest

from tailor.storage import Event

parts.need("labelling page")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    """The scripts import each other by name, as they do when one is run."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="other systems can't fork")
def test_a_server_that_is_killed_loses_nothing(tmp_path):
    rows = tmp_path / "rows.jsonl"
    small = ("--annotators", "2", "--examples", "300", "--classes", "3", "--batch", "30")
    quick = ("--kills", "3", "--life", "0.1", "--edit-every", "5", "--speed", "50")
    finished = subprocess.run(
        [
            *(sys.executable, str(BENCHMARKS / "soak.py"), "--store", "sqlite", "--disk", "0"),
            *(*small, *quick, "--out", str(rows)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr + finished.stdout
    kills, whole = (json.loads(line) for line in rows.read_text().splitlines())
    assert kills["faults"]["kill"] == 3
    assert whole["server_lives"] == 4
    assert whole["acknowledged"] >= 3
    assert whole["wrong"] == []


@pytest.fixture
def told(tmp_path):
    """A run with one answer of ann's, and the checker and ledger that know of it."""
    from coordinator import begin
    from crowd import Acknowledged
    from soak_checks import Checker
    from soak_people import SoakLedger

    from tailor.run.project import Project

    begin(tmp_path, 40, 3, 5, None)
    session = Project(tmp_path).session()
    (asked, *_) = session.ask(1)
    session.tell({asked.id: "1"}, by="ann")
    event = session.run_state.event
    session.store.close()
    ledger = SoakLedger()
    ledger.acknowledged.append(Acknowledged("ann", asked.id, "1", event, at=1.0))
    ledger.sent.add(("ann", asked.id, "1"))
    return Checker(tmp_path, ledger), ledger


COUNTS = {"0": 0, "1": 1, "2": 0}


def test_what_is_there_is_right(told):
    checker, _ = told
    assert checker.finish(COUNTS)["wrong"] == []


def test_an_acknowledged_answer_that_is_not_there_is_lost(told):
    from crowd import Acknowledged

    checker, ledger = told
    (receipt,) = ledger.acknowledged
    ledger.acknowledged.append(Acknowledged("ann", receipt.id, "2", receipt.event + 1, at=2.0))
    figures = checker.finish(COUNTS)
    assert figures["lost"] == 1
    assert figures["wrong"][0].startswith("lost:")


def test_every_other_difference_is_told(told):
    from crowd import Hold

    checker, ledger = told
    (receipt,) = ledger.acknowledged
    ledger.sent.clear()
    ledger.acknowledged.clear()
    ledger.class_lists.append(("0", "1", "2", "3"))
    ledger.holds["5"] = [Hold("ann", 1.0, 3.0), Hold("bob", 2.0, 4.0)]
    wrong = checker.finish(COUNTS | {"2": 1})["wrong"]
    assert [line.split()[0] for line in wrong] == ["the", "nobody", "lost:", "5"]
    assert receipt.id in wrong[1]


def test_a_kill_ends_what_people_hold():
    from crowd import Hold
    from soak_people import SoakLedger

    ledger = SoakLedger()
    hold = Hold("ann", 0.0)
    ledger.holds["5"] = [hold]
    ledger.open_holds.add(hold)
    ledger.killed()
    ledger.holds["5"].append(Hold("bob", ledger.last_kill + 1))
    assert ledger.shared() == []


def event(number: int, kind: str, body: dict) -> Event:
    return Event(number=number, time=0.0, kind=kind, body=body, data=None)


def test_labels_come_back_with_a_merge_unless_they_were_answered_since():
    from soak_checks import PlainReplay

    replay = PlainReplay()
    answers = [[0, [0]], [1, [1]], [2, [1]]]
    merge = {"classes": ["a", "c"], "place": [0, 0, 1], "by": "owner"}
    undo = {"classes": ["a", "b", "c"], "place": [0, 2], "by": "owner", "undoes": 3}
    for number, (kind, body) in enumerate(
        [
            ("opened", {"settings": {"classes": ["a", "b", "c"]}}),
            ("told", {"answers": answers, "skipped": [], "by": "ann"}),
            ("classes", merge),
            ("told", {"answers": [[2, [1]]], "skipped": [5], "by": "bob"}),
            ("classes", undo),
        ]
    ):
        replay.apply(event(number + 1, kind, body))
    assert [replay.classes[replay.labels[position]] for position in range(3)] == ["a", "b", "c"]
    assert replay.answers[4, 2] == ("bob", "c")
    assert replay.answers[4, 5] == ("bob", None)
    with pytest.raises(ValueError, match="event 7 follows event 5"):
        replay.apply(event(7, "told", {}))


def test_a_full_disk_can_be_freed():
    from soak_faults import small_disk

    with small_disk(8) as disk:
        if not disk.kind:
            pytest.skip("root alone may mount a disk")
        disk.fill()
        with pytest.raises(OSError, match="No space left"):
            (disk.folder / "more").write_bytes(bytes(4096))
        disk.free()
        (disk.folder / "more").write_bytes(bytes(4096))


def test_memory_is_compared_with_a_third_of_the_way():
    from soak import memory_figures

    assert memory_figures([100, 200, 210, 190, 220, 205]) == {
        "start": 100,
        "after_a_third": 210,
        "end": 205,
        "growth": 0.048,
    }
    assert memory_figures([100]) == {}
