"""The state of a run, rebuilt from its events. Nothing changes it but an event."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from tailor.bandits.base import Fit
from tailor.errors import InputError
from tailor.run import class_merges
from tailor.run.arm_statistics import ArmStatistics
from tailor.run.class_merges import Merge
from tailor.run.consensus import Ballot, Consensus, majority
from tailor.run.holdout import class_shares, sample_by_id
from tailor.run.records import HOLDOUT, NAMES, START, PickRecord, RoundRecord, pack, unpack
from tailor.run.settings import Settings
from tailor.selection.class_edits import ClassEdit
from tailor.selection.label_table import LabelTable
from tailor.selection.learner import Learner
from tailor.selection.round import NOBODY
from tailor.storage.base import Event, Store, StoreError

__all__ = [
    "HOLDOUT",
    "NAMES",
    "START",
    "PickRecord",
    "RoundRecord",
    "RunState",
    "begun_with",
    "pack",
    "rebuild",
    "unpack",
]

#: examples that are looked at together when those that may be asked for are counted
STRETCH = 16_384


class RunState:
    """LabelTable, hold-out and selector of a run, and where it stands."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.task = settings.task
        self.event = 0  # the number of the last event taken in
        self.ids: list[str] = []
        self.position: dict[str, int] = {}
        self.learner = Learner(
            self.task,
            LabelTable(self.task, 0),
            strategies=settings.strategies or None,
            selector=settings.selector,
            reward=settings.reward,
            rounds=settings.rounds,
            batch=settings.batch,
            seed=settings.seed,
        )
        self.holdout_table = LabelTable(self.task, 0)  # the hold-out's answers
        self.in_holdout = np.empty(0, bool)
        self.aside: dict[int, str] = {}
        self.vanished: list[int] = []  # away from the pool for now
        self.files: dict[str, str] = {}  # whole files of the pool that can't be opened
        self.rounds: list[RoundRecord] = []
        self.pick_records: dict[int, tuple[int, int, int]] = {}  # position -> (round, slot, arm)
        self.asked_in: list[list[int]] = []  # for each round: the positions that were asked in it
        self.waiting: dict[int, None] = {}  # asked and neither answered nor skipped
        self.predicted: dict[int, np.ndarray] = {}
        self.who: dict[int, tuple[str | None, float]] = {}  # position -> (annotator, time)
        self.votes = Consensus()
        self.arm_statistics = ArmStatistics(self.task.size)
        self.merges: list[Merge] = []  # that can be taken back, the latest last

    def copy(self) -> RunState:
        """A journal of its own, as this one stands now; no round can be walked in it."""
        twin = copy(self)
        twin.learner, twin.holdout_table = self.learner.copy(), self.holdout_table.copy()
        twin.rounds = [copy(record) for record in self.rounds]
        twin.votes, twin.arm_statistics = self.votes.copy(), self.arm_statistics.copy()
        twin.asked_in = [
            *self.asked_in[:-1],
            *map(list, self.asked_in[-1:]),
        ]  # only the last one grows
        twin.merges = [merge.copy() for merge in self.merges]
        for name in ("aside", "pick_records", "waiting", "predicted", "who"):
            setattr(twin, name, dict(getattr(self, name)))
        return twin

    @property
    def label_table(self) -> LabelTable:
        return self.learner.label_table

    @property
    def current(self) -> RoundRecord | None:
        return self.rounds[-1] if self.rounds else None

    # ------------------------------------------------------------------ events

    def apply(self, event: Event, store: Store | None = None) -> None:
        """Take an event in. `store` is needed for ids."""
        take_in = self._handler(event.number, event.kind)
        try:
            take_in(event, store)
        except StoreError:
            raise
        except (
            Exception
        ) as error:  # what was written can be taken in: this was damaged, in whatever way
            raise StoreError(
                f"event {event.number} ({event.kind}) can't be taken in: {error!r}"
            ) from error
        self.event = event.number

    def _handler(self, number: int, kind: str) -> Callable[[Event, Store | None], None]:
        found: Callable[[Event, Store | None], None] | None = getattr(self, f"_on_{kind}", None)
        if found is None:
            raise StoreError(
                f"event {number} is a {kind!r}, which this tailor does not know: upgrade it"
            )
        return found

    def _on_opened(self, event: Event, store: Store | None) -> None:
        """Settings: known already."""

    def _on_pool(self, event: Event, store: Store | None) -> None:
        """How to open the pool again: for whoever opens it."""

    def _on_vanished(self, event: Event, store: Store | None) -> None:
        self.vanished = event.body["positions"]
        for label_table in (self.label_table, self.holdout_table):
            label_table.set_absent(np.array(self.vanished, np.int64))

    def _on_files(self, event: Event, store: Store | None) -> None:
        self.files = event.body["reasons"]

    def _on_examples(self, event: Event, store: Store | None) -> None:
        assert store is not None
        ids = store.examples()[event.body["first"] : event.body["first"] + event.body["count"]]
        first = len(self.ids)
        holdout = sample_by_id(ids, self.settings.holdout, self.settings.seed)
        # new objects: copies of this journal share the old ones
        self.position = self.position | dict(zip(ids, range(first, first + len(ids))))
        self.ids = self.ids + ids
        self.in_holdout = np.concatenate([self.in_holdout, holdout])
        self.label_table.grow(len(ids))
        self.holdout_table.grow(len(ids))
        self.label_table.set_aside(first + np.flatnonzero(holdout))

    def _on_aside(self, event: Event, store: Store | None) -> None:
        found = {int(p): reason for p, reason in event.body["reasons"].items()}
        self.aside.update(found)
        where = np.fromiter(found, np.int64, len(found))
        self.label_table.set_aside(where)
        self.holdout_table.set_aside(where)

    def _on_round(self, event: Event, store: Store | None) -> None:
        """A round that was opened before, or in a copy of this journal: the selector learns what it
        learned then.
        """
        record = RoundRecord.of(event)
        if not record.seed_round:
            assert record.weights is not None
            arrays = unpack(event.data)
            self.learner.relive_round(
                record.weights, _fit(event.body, arrays), arrays.get("learned")
            )
        self.rounds.append(record)
        self.arm_statistics.new_round()
        self.asked_in.append([])

    def _on_asked(self, event: Event, store: Store | None) -> None:
        arrays = unpack(event.data)
        where = arrays["positions"]
        slots = arrays["slots"]
        arms = arrays["arms"]
        record = self.rounds[-1]
        record.asked += len(where)
        self.asked_in[-1] += where.tolist()
        predicted = arrays.get("predicted")
        rows = (
            predicted.astype(np.float32)
            if predicted is not None
            else np.zeros((len(where), self.task.size))
        )
        for position, slot, arm, row in zip(where.tolist(), slots.tolist(), arms.tolist(), rows):
            self.pick_records[position] = (record.number, slot, arm)
            self.waiting[position] = None
            self.arm_statistics.asked(arm)
            if predicted is not None:
                self.predicted[position] = row
        holdout = arms == HOLDOUT
        none = np.full(int(holdout.sum()), NOBODY)
        self.holdout_table.ask(
            where[holdout], record.number, none, np.ones(len(none)), rows[holdout]
        )
        credited = np.maximum(arms[~holdout], NOBODY)
        chances = np.ones(len(credited))
        if record.chances is not None:
            chances = np.where(credited == NOBODY, 1.0, record.chances[credited])
        self.label_table.ask(where[~holdout], record.number, credited, chances, rows[~holdout])

    # ------------------------------------------------------------------ answers

    def _on_several(self, event: Event, store: Store | None) -> None:
        """What came at the same time and was written at once."""
        for kind, body in event.body["events"]:
            self._handler(event.number, kind)(replace(event, kind=kind, body=body), store)

    def _on_told(self, event: Event, store: Store | None) -> None:
        where = np.array([p for p, _ in event.body["answers"]], np.int64)
        by = event.body.get("by")
        self._label(where, [classes for _, classes in event.body["answers"]])
        for position in where.tolist():
            self.who[position] = (by, event.time)
            self.votes.settle(position)
        self._answered([*where.tolist(), *event.body["skipped"]])
        skipped = np.array(event.body["skipped"], np.int64)
        self._each(skipped, self.holdout_table.skip, self.learner.skip)
        for position in skipped.tolist():
            self.votes.settle(position)

    def _on_vote(self, event: Event, store: Store | None) -> None:
        """Someone's answer to an example that several are asked about. It counts once a majority is
        there.
        """
        body = event.body
        classes = None if body["classes"] is None else tuple(body["classes"])
        self._answered([body["position"]], body["by"])
        self.votes.cast(body["position"], body["by"], Ballot(classes, event.time), body["of"])
        self._decide(body["position"])

    def _decide(self, position: int) -> None:
        """Count the votes, where all are in and nobody has settled the matter."""
        votes = self.votes
        ballots = self.votes.on(position)
        if position in votes.settled:
            return
        if not votes.all_in(position):
            votes.open[position] = None
            return
        where = np.array([position])
        label = majority(self.task, ballots.values())
        votes.open.pop(position, None)
        votes.disputed.pop(position, None)
        if label is not None:
            self._label(where, [list(label)])
            agree = sorted(name for name, ballot in ballots.items() if ballot.classes == label)
            self.who[position] = (
                ", ".join(agree or sorted(ballots)),
                max(ballot.at for ballot in ballots.values()),
            )
            return
        self._unlabel(where)
        if all(ballot.classes is None for ballot in ballots.values()):
            self._each(where, self.holdout_table.skip, self.learner.skip)
        else:
            votes.open[position] = votes.disputed[position] = None

    def _on_withdrawn(self, event: Event, store: Store | None) -> None:
        """Answers that were taken back: as if they had never come."""
        where = np.array(event.body["positions"], np.int64)
        self._answered(where.tolist())
        self._unlabel(where)
        for position in where.tolist():
            self.votes.clear(position)

    def _on_again(self, event: Event, store: Store | None) -> None:
        where = np.array(event.body["positions"], np.int64)
        self._answered(where.tolist())
        self._each(where, self.holdout_table.offer_again, self.learner.offer_again)
        for position in where.tolist():
            self.votes.clear(position)

    def _label(self, where: np.ndarray, classes: list[list[int]]) -> None:
        labels = np.zeros((len(where), self.task.size), np.float32)
        for row, found in enumerate(classes):
            labels[row, found] = 1
        self._count(where, -1)
        holdout = self.is_holdout(where)
        self.holdout_table.tell(where[holdout], labels[holdout])
        if (~holdout).any():
            self.learner.tell(where[~holdout], labels[~holdout])
        self._count(where, 1)
        self._note_waiting(where)

    def _unlabel(self, where: np.ndarray) -> None:
        self._count(where, -1)
        self._each(where, self.holdout_table.withdraw, self.learner.withdraw)
        for position in where.tolist():
            self.who.pop(position, None)

    def _each(
        self, where: np.ndarray, holdout_table: Callable[[Any], Any], learner: Callable[[Any], Any]
    ) -> None:
        """The hold-out's to the one, the others to the other."""
        holdout = self.is_holdout(where)
        holdout_table(where[holdout])
        learner(where[~holdout])
        self._note_waiting(where)

    def _count(self, where: np.ndarray, times: int) -> None:
        for position in where.tolist():
            label = self.label_of(position)
            if label is not None and position in self.pick_records:
                self.arm_statistics.count(self.pick_records[position][2], label, times)

    def _note_waiting(self, where: np.ndarray) -> None:
        for position in where.tolist():
            if self.label_table.is_pending(position) or self.holdout_table.is_pending(position):
                self.waiting[position] = None
            else:
                self.waiting.pop(position, None)

    # ------------------------------------------------------------------ classes

    def _on_classes(self, event: Event, store: Store | None) -> None:
        task = type(self.task)(event.body["classes"])
        change = ClassEdit(self.task, task, tuple(event.body["place"]))
        if event.body.get("undoes") is not None:
            self.unmerge(event.body["undoes"], change)
            return
        merge = class_merges.remember(self, change, event.number, event.body.get("by"))
        self.reclass(change)
        if merge is not None:
            self.merges = [*self.merges, merge][-class_merges.REMEMBERED :]

    def last_merge(self, event: int | None = None) -> Merge:
        """The merge that can be taken back; event: it must be this one."""
        if not self.merges:
            raise InputError("there is no merge of classes to take back")
        latest = self.merges[-1]
        if event is not None and latest.event != event:
            raise InputError(
                "another merge came later or this one is taken back already: the latest is "
                f"{latest.old!r} into "
                f"{latest.into!r}"
            )
        return latest

    def unmerge(self, event: int, change: ClassEdit) -> None:
        """Take the latest merge back: labels, votes, predictions and picks are what they were; what
        came since stays in the class that was left. Later picks of the open round are dropped, as
        with any change.
        """
        merge = self.last_merge(event)
        self.reclass(change)
        class_merges.restore(self, merge)
        self.merges = self.merges[:-1]
        self.arm_statistics.found.clear()
        self._count(np.fromiter(self.pick_records, np.int64, len(self.pick_records)), 1)
        for position in list(self.votes.asked):
            self._decide(position)

    def credit(self, position: int, arm: int) -> None:
        """It was this arm's pick."""
        number, slot, now = self.pick_records[position]
        if arm != now:
            self.arm_statistics.move(now, arm, number == len(self.rounds) - 1)
        self.pick_records[position] = (number, slot, arm)
        self.label_table.credit(position, arm)

    def relabel(self, labels: dict[int, tuple[int, ...]]) -> None:
        """These have other classes, by the same people and at the same time as before."""
        there = {p: classes for p, classes in labels.items() if self.label_of(p) is not None}
        self._label(
            np.fromiter(there, np.int64, len(there)), [list(classes) for classes in there.values()]
        )

    def _answered(self, positions: Iterable[int], by: str | None = None) -> None:
        """What is answered after a merge stays as it is when the merge is taken back."""
        for merge in self.merges:
            merge.since.update((position, by) for position in positions)

    def reclass(self, change: ClassEdit) -> None:
        """From now on the classes are others: all that is known is told in them, as if they had
        been there at first.

        What waits goes on waiting. The rest of an open round is dropped, for its plan was made for
        other classes.
        """
        arms = self.learner.reclass(change)
        self.holdout_table.reclass(change, arms)
        self.task = change.after
        self.settings = replace(self.settings, classes=change.after.classes)
        self.predicted = change.shares_by_key(self.predicted)
        self.pick_records = {
            p: (n, slot, int(arms[a]) if a >= 0 else a)
            for p, (n, slot, a) in self.pick_records.items()
        }
        for record in self.rounds:
            record.reclass(change, arms, len(self.learner.arms))
        if self.current is not None and not change.only_names:
            self.current.size = min(self.current.size, self.current.asked)
        self.votes.reclass(change)
        old = self.arm_statistics
        self.arm_statistics = ArmStatistics(self.task.size)
        for arm, pulls in old.pulls.items():
            self.arm_statistics.pulls[int(arms[arm]) if arm >= 0 else arm] += pulls
        for arm, pulls in old.pulls_now.items():
            self.arm_statistics.pulls_now[int(arms[arm]) if arm >= 0 else arm] += pulls
        self._count(np.fromiter(self.pick_records, np.int64, len(self.pick_records)), 1)
        for position in list(self.votes.asked):
            self._decide(position)

    # ------------------------------------------------------------------ what is known

    def is_holdout(self, positions: np.ndarray) -> np.ndarray:
        """(n,) bool: whether each was asked for the hold-out. What is told from outside is not."""
        asked = [self.pick_records.get(p, (0, 0, NOBODY))[2] == HOLDOUT for p in positions.tolist()]
        return np.array(asked, bool)

    def label_of(self, position: int) -> np.ndarray | None:
        """(K,) the label that counts."""
        for label_table in (self.label_table, self.holdout_table):
            if label_table.has_label(position):
                label: np.ndarray = label_table.labels_of(np.array([position]))[0]
                return label
        return None

    def is_skipped(self, position: int) -> bool:
        return self.label_table.is_skipped(position) or self.holdout_table.is_skipped(position)

    def arm_name(self, arm: int) -> str:
        return NAMES[arm] if arm < 0 else self.learner.arms[arm].name

    def pick_record(self, position: int) -> PickRecord | None:
        if position not in self.pick_records:
            return None
        number, slot, arm = self.pick_records[position]
        record = self.rounds[number]
        return PickRecord(
            self.ids[position],
            number,
            slot,
            self.arm_name(arm),
            record.chance(arm),
            record.belief(arm),
            record.weights,
            self.predicted.get(position),
        )

    def answered(self) -> int:
        return self.label_table.answered + self.holdout_table.answered

    def askable(self, most: int) -> int:
        """How many examples may still be asked for, but no more than `most`: a large pool is not
        gone through.
        """
        found, start = 0, 0
        while found < most and start < len(self.ids):
            part = slice(start, start + STRETCH)
            found += int(
                (self.label_table.untouched_in(part) & self.holdout_table.free_in(part)).sum()
            )
            start += STRETCH
        return max(0, min(found, most))

    def counts(self) -> dict[str, int]:
        """Labels of each class, the hold-out's too."""
        return dict(
            zip(
                self.task.classes,
                (self.label_table.counts + self.holdout_table.counts).astype(int).tolist(),
            )
        )

    def summary(self) -> dict[str, Any]:
        """What `tailor status` shows."""
        current = self.current
        return {
            "examples": len(self.ids),
            "answered": self.answered(),
            "holdout": self.holdout_table.answered,
            "waiting": len(self.waiting),
            "skipped": len(self.label_table.skipped) + len(self.holdout_table.skipped),
            "aside": {self.ids[p]: reason for p, reason in sorted(self.aside.items())}
            | {self.ids[p]: "it has vanished from the pool" for p in self.vanished},
            "shares": class_shares(self.task.classes, self.holdout_table.labels),
            "files": self.files,
            "counts": self.counts(),
            "round": current.number if current else None,
            "estimates": [r.estimate for r in self.rounds if r.estimate],
        }


def _fit(body: dict[str, Any], arrays: dict[str, np.ndarray]) -> Fit | None:
    if "rates" not in arrays:
        return None
    return Fit(
        arrays["correct"], arrays["fit_chances"], arrays["rates"], body["pool"], body["reward"]
    )


def begun_with(first: Event) -> dict[str, Any]:
    """The settings in a run's first event."""
    given: dict[str, Any] | None = first.body.get("settings")
    names = given.get("classes") if isinstance(given, dict) else None
    as_written = (
        first.kind == "opened"
        and isinstance(names, list)
        and all(isinstance(name, str) for name in names)
    )
    if given is None or not as_written:
        raise StoreError(
            f"event {first.number} ({first.kind}) is not how a run begins: restore a copy of the "
            "store"
        )
    return given


def rebuild(settings: Settings, store: Store, until: int | None = None) -> RunState:
    """The state of a run after its events, or those up to `until`.

    settings must be those the run was begun with; its classes may also be those of today, after
    edits.
    """
    events = store.events()
    first = next(events, None)
    if first is None:
        return RunState(settings)
    given = begun_with(first)
    then = tuple(given["classes"])
    begun = replace(settings, classes=then)
    try:
        begun.check_same(given)
    except (KeyError, TypeError) as error:
        raise StoreError(
            f"event {first.number} (opened) is damaged: {error!r}; restore a copy of the store"
        ) from error
    run_state = RunState(begun)
    for event in chain([first], events):
        if until is not None and event.number > until:
            return run_state
        run_state.apply(event, store)
    if settings.classes not in (then, run_state.task.classes):
        now = (
            ""
            if run_state.task.classes == then
            else f", edited since to {run_state.task.classes!r}"
        )
        raise InputError(
            f"this run has classes = {then!r}{now}; now it is {settings.classes!r}: begin "
            "another run"
        )
    return run_state
