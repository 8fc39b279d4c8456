"""Whether all that benchmarks/soak.py was told is in the store: events read as they are, and a slow
replay of answers and class lists of its own beside the program's.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from crowd import Acknowledged
from soak_people import SoakLedger

from tailor.run.project import Project
from tailor.run.replay import rebuild
from tailor.storage import Event

Body = dict[str, Any]


class PlainReplay:
    """Answers and classes by the events alone: a dictionary, and one pass over it for each change
    of the classes.
    """

    def __init__(self) -> None:
        self.number = 0
        self.classes: list[str] = []
        self.labels: dict[int, int] = {}  # position -> class
        #: (event, position) -> (who, class name; None: skipped)
        self.answers: dict[tuple[int, int], tuple[str, str | None]] = {}
        self.class_lists: list[tuple[str, ...]] = []
        #: event of a merge -> positions that had the merged class and were not answered since
        self.merged: dict[int, set[int]] = {}

    def apply(self, event: Event) -> None:
        if event.number != self.number + 1:
            raise ValueError(f"event {event.number} follows event {self.number}")
        self.number = event.number
        if event.kind == "opened":
            self.classes = list(event.body["settings"]["classes"])
        elif event.kind == "several":
            for kind, body in event.body["events"]:
                self._apply_part(kind, body)
        else:
            self._apply_part(event.kind, event.body)

    def _apply_part(self, kind: str, body: Body) -> None:
        if kind == "told":
            self._take_answers(body)
        elif kind == "withdrawn":
            for position in body["positions"]:
                self.labels.pop(position, None)
        elif kind == "classes":
            self._change_classes(body)

    def _take_answers(self, body: Body) -> None:
        answered = set(body["skipped"])
        for position in body["skipped"]:
            self.answers[self.number, position] = (body["by"], None)
        for position, (klass,) in body["answers"]:
            self.answers[self.number, position] = (body["by"], self.classes[klass])
            self.labels[position] = klass
            answered.add(position)
        for positions in self.merged.values():
            positions -= answered

    def _change_classes(self, body: Body) -> None:
        names = list(body["classes"])
        place = body["place"]
        if len(names) < len(self.classes):
            (source,) = (
                klass for klass, name in enumerate(self.classes) if names[place[klass]] != name
            )
            self.merged[self.number] = {
                position for position, klass in self.labels.items() if klass == source
            }
        self.labels = {position: place[klass] for position, klass in self.labels.items()}
        if body.get("undoes") is not None:
            (restored,) = set(range(len(names))) - set(place)
            for position in self.merged.pop(body["undoes"]):
                self.labels[position] = restored
        self.classes = names
        self.class_lists.append(tuple(names))


class Checker:
    """Compares a run's store with a ledger, again and again: each call reads what is new."""

    def __init__(self, folder: Path, ledger: SoakLedger) -> None:
        self.project = Project(folder, trust=True)
        self.ledger = ledger
        self.replay = PlainReplay()
        self.checked = 0  # acknowledged answers that were looked up
        self.lost: list[str] = []
        self.position: dict[str, int] = {}

    def check(self) -> None:
        """Look every answer up that was acknowledged before this call."""
        due = self.ledger.acknowledged[self.checked :]
        with self.project.store(readonly=True) as store:
            if not self.position:
                self.position = {id: number for number, id in enumerate(store.examples())}
            for event in store.events(self.replay.number):
                self.replay.apply(event)
        for receipt in due:
            self._look_up(receipt)
        self.checked += len(due)

    def _look_up(self, receipt: Acknowledged) -> None:
        kept = self.replay.answers.get((receipt.event, self.position[receipt.id]))
        if kept != (receipt.who, receipt.label):
            self.lost.append(f"lost: {receipt}; the store says {kept}")

    def finish(self, counted: dict[str, int]) -> dict[str, Any]:
        """The last comparison, with the server's own counts and the program's replay -> figures;
        "wrong" lists every difference in words.
        """
        self.check()
        with self.project.store(readonly=True) as store:
            run_state = rebuild(self.project.settings, store)
        names = self.replay.classes
        by_name = Counter(names[klass] for klass in self.replay.labels.values())
        expected = {name: by_name[name] for name in names}
        wrong = [*self.ledger.trouble, *self.lost]
        if run_state.counts() != expected:
            wrong.append(f"the run's counts are {run_state.counts()}, by hand {expected}")
        if counted != expected:
            wrong.append(f"the server counted {counted}, by hand {expected}")
        for position, klass in self.replay.labels.items():
            row = run_state.label_of(position)
            if row is None or np.flatnonzero(row).tolist() != [klass]:
                wrong.append(f"example {position} should be {names[klass]}, and is {row}")
        unacknowledged = self._unacknowledged()
        untold = [answer for answer in unacknowledged if answer not in self.ledger.sent]
        wrong += [f"nobody said {answer}" for answer in untold]
        wrong += self._class_lists_lost()
        shared = self.ledger.shared()
        again = self.ledger.given_again()
        wrong += [f"{id} was in two hands at once" for id in shared]
        wrong += [f"{id} was given out after it had been answered" for id in again]
        return {
            "acknowledged": len(self.ledger.acknowledged),
            "events": self.replay.number,
            "labels": len(self.replay.labels),
            "stored_unacknowledged": len(unacknowledged),
            "refused_meanwhile": self.ledger.refused,
            "class_changes": len(self.replay.class_lists),
            "lost": len(self.lost),
            "given_twice": len(shared) + len(again),
            "did": dict(self.ledger.did),
            "wrong": wrong,
        }

    def _unacknowledged(self) -> list[tuple[str, str, str | None]]:
        """Answers in the store whose receipt never arrived."""
        told = {(receipt.event, self.position[receipt.id]) for receipt in self.ledger.acknowledged}
        ids = list(self.position)
        return [
            (who, ids[position], label)
            for (event, position), (who, label) in self.replay.answers.items()
            if (event, position) not in told
        ]

    def _class_lists_lost(self) -> list[str]:
        """Changes of the classes that the owner was told of, in order, must be in the store."""
        stored = iter(self.replay.class_lists)
        lost = [f"lost: classes {told}" for told in self.ledger.class_lists if told not in stored]
        if len(self.replay.class_lists) > self.ledger.class_edits_tried:
            lost.append("the classes were changed more often than anybody asked for")
        return lost
