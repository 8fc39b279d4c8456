"""The state of a run, rebuilt from its events. Nothing changes it but an event."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailor.bandit.base import Fit
from tailor.books import Books
from tailor.loop import Loop
from tailor.reserve import Estimate, class_shares, reserved
from tailor.round import NOBODY
from tailor.settings import Settings
from tailor.store.base import Event, Store, StoreError


def pack(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(data: bytes | None) -> dict[str, np.ndarray]:
    if not data:
        return {}
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays}


@dataclass(frozen=True)
class Story:
    """Why an example was asked for."""

    id: str
    round: int
    slot: int
    arm: str  # the name of an arm, "reserve", "random start" or "(nobody)"
    chance: float  # the probability with which the arm was drawn for a slot
    mean: np.ndarray | None  # (K,) what the arm's posterior expected to find, for selectors that have one
    weights: np.ndarray | None  # (K,) v
    predicted: np.ndarray | None  # (K,) what the model said


#: arms below 0 in an "asked" event
RESERVE, START = -3, -2
NAMES = {RESERVE: "reserve", START: "random start", NOBODY: "(nobody)"}


@dataclass
class RoundRecord:
    """What was fixed when a round was opened."""

    number: int
    size: int
    seed_round: bool
    weights: np.ndarray | None
    chances: np.ndarray | None
    pulled: np.ndarray  # arms in the plan
    beliefs: np.ndarray | None  # (len(pulled), K)
    estimate: Estimate | None
    reserve_slots: np.ndarray  # (size,) bool
    reserve: np.ndarray  # positions for those slots
    start: np.ndarray  # positions of a random start
    asked: int = 0
    event: int = 0


class Journal:
    """Books, reserve and selector of a run, and where it stands."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.task = settings, settings.task
        self.ids: list[str] = []
        self.position: dict[str, int] = {}
        self.loop = Loop(
            self.task,
            Books(self.task, 0),
            families=settings.families or None,
            selector=settings.selector,
            reward=settings.reward,
            rounds=settings.rounds,
            batch=settings.batch,
            seed=settings.seed,
        )
        self.kept = Books(self.task, 0)  # the reserve's answers
        self.reserved = np.empty(0, bool)
        self.aside: dict[int, str] = {}
        self.vanished: list[int] = []  # away from the pool for now
        self.files: dict[str, str] = {}  # whole files of the pool that can't be opened
        self.rounds: list[RoundRecord] = []
        self.stories: dict[int, tuple[int, int, int]] = {}  # position -> (round, slot, arm)
        self.predicted: dict[int, np.ndarray] = {}
        self.who: dict[int, tuple[str | None, float]] = {}  # position -> (annotator, time)

    @property
    def books(self) -> Books:
        return self.loop.books

    @property
    def current(self) -> RoundRecord | None:
        return self.rounds[-1] if self.rounds else None

    # ------------------------------------------------------------------ events

    def apply(self, event: Event, store: Store | None = None) -> None:
        """Take an event in. `store` is needed for ids."""
        take_in = getattr(self, f"_on_{event.kind}", None)
        if take_in is None:
            raise StoreError(f"event {event.number} is a {event.kind!r}, which this tailor does not know: upgrade it")
        try:
            take_in(event, store)
        except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise StoreError(f"event {event.number} ({event.kind}) can't be taken in: {error!r}") from error

    def _on_opened(self, event: Event, store: Store | None) -> None:
        """Settings: known already."""

    def _on_pool(self, event: Event, store: Store | None) -> None:
        """How to open the pool again: for whoever opens it."""

    def _on_vanished(self, event: Event, store: Store | None) -> None:
        self.vanished = event.body["positions"]
        for books in (self.books, self.kept):
            books.set_absent(np.array(self.vanished, np.int64))

    def _on_files(self, event: Event, store: Store | None) -> None:
        self.files = event.body["reasons"]

    def _on_examples(self, event: Event, store: Store | None) -> None:
        assert store is not None
        self.add_ids(store.examples()[event.body["first"] : event.body["first"] + event.body["count"]])

    def add_ids(self, ids: list[str]) -> None:
        self.position.update(zip(ids, range(len(self.ids), len(self.ids) + len(ids))))
        kept = reserved(ids, self.settings.holdout, self.settings.seed)
        first = len(self.ids)
        self.ids += ids
        self.reserved = np.concatenate([self.reserved, kept])
        self.books.grow(len(ids))
        self.kept.grow(len(ids))
        self.books.set_aside(first + np.flatnonzero(kept))

    def _on_aside(self, event: Event, store: Store | None) -> None:
        found = {int(p): reason for p, reason in event.body["reasons"].items()}
        self.aside.update(found)
        where = np.fromiter(found, np.int64, len(found))
        self.books.set_aside(where)
        self.kept.set_aside(where)

    def _on_round(self, event: Event, store: Store | None) -> None:
        """A round that was opened before: the selector learns what it learned then."""
        record = self.record(event)
        if not record.seed_round:
            assert record.weights is not None
            self.loop.relive_round(record.weights, self._fit(event))
        self.rounds.append(record)

    def record(self, event: Event) -> RoundRecord:
        body, arrays = event.body, unpack(event.data)
        return RoundRecord(
            body["number"],
            body["size"],
            body["seed_round"],
            arrays.get("weights"),
            arrays.get("chances"),
            arrays.get("pulled", np.empty(0, np.int64)),
            arrays.get("beliefs"),
            Estimate(**body["estimate"]) if body.get("estimate") else None,
            arrays["reserve_slots"],
            arrays["reserve"],
            arrays["start"],
            event=event.number,
        )

    def _fit(self, event: Event) -> Fit | None:
        arrays = unpack(event.data)
        if "rates" not in arrays:
            return None
        return Fit(
            arrays["correct"], arrays["fit_chances"], arrays["rates"], event.body["pool"], event.body["reward"]
        )

    def _on_asked(self, event: Event, store: Store | None) -> None:
        arrays = unpack(event.data)
        where, slots, arms = arrays["positions"], arrays["slots"], arrays["arms"]
        record = self.rounds[-1]
        record.asked += len(where)
        predicted = arrays.get("predicted")
        rows = predicted.astype(np.float32) if predicted is not None else np.zeros((len(where), self.task.size))
        for position, slot, arm, row in zip(where.tolist(), slots.tolist(), arms.tolist(), rows):
            self.stories[position] = (record.number, slot, arm)
            if predicted is not None:
                self.predicted[position] = row
        reserve = arms == RESERVE
        none = np.full(int(reserve.sum()), NOBODY)
        self.kept.ask(where[reserve], record.number, none, np.ones(len(none)), rows[reserve])
        credited = np.maximum(arms[~reserve], NOBODY)
        chances = np.ones(len(credited))
        if record.chances is not None:
            chances = np.where(credited == NOBODY, 1.0, record.chances[credited])
        self.books.ask(where[~reserve], record.number, credited, chances, rows[~reserve])

    def _on_told(self, event: Event, store: Store | None) -> None:
        where = np.array([p for p, _ in event.body["answers"]], np.int64)
        labels = np.zeros((len(where), self.task.size), np.float32)
        for row, (position, classes) in enumerate(event.body["answers"]):
            labels[row, classes] = 1
            self.who[position] = (event.body.get("by"), event.time)
        reserve = self.is_reserve(where)
        self.kept.tell(where[reserve], labels[reserve])
        if (~reserve).any():
            self.loop.tell(where[~reserve], labels[~reserve])
        skipped = np.array(event.body["skipped"], np.int64)
        reserve = self.is_reserve(skipped)
        self.kept.skip(skipped[reserve])
        self.loop.skip(skipped[~reserve])

    def _on_again(self, event: Event, store: Store | None) -> None:
        where = np.array(event.body["positions"], np.int64)
        reserve = self.is_reserve(where)
        self.kept.offer_again(where[reserve])
        self.loop.offer_again(where[~reserve])

    # ------------------------------------------------------------------ what is known

    def is_reserve(self, positions: np.ndarray) -> np.ndarray:
        """(n,) bool: whether each was asked for the reserve. What is told from outside is not."""
        asked = [self.stories.get(p, (0, 0, NOBODY))[2] == RESERVE for p in positions.tolist()]
        return np.array(asked, bool)

    def story(self, position: int) -> Story | None:
        if position not in self.stories:
            return None
        number, slot, arm = self.stories[position]
        record = self.rounds[number]
        mean = None
        if arm >= 0 and record.beliefs is not None:
            mean = record.beliefs[int(np.searchsorted(record.pulled, arm))].astype(np.float32)
        chance = 1.0 if arm < 0 or record.chances is None else float(record.chances[arm])
        name = NAMES[arm] if arm < 0 else self.loop.arms[arm].name
        return Story(
            self.ids[position], number, slot, name, chance, mean, record.weights, self.predicted.get(position)
        )

    def answered(self) -> int:
        return len(self.books.labelled) + len(self.kept.labelled)

    def summary(self) -> dict[str, Any]:
        """What `tailor status` shows."""
        current = self.current
        return {
            "examples": len(self.ids),
            "answered": self.answered(),
            "reserve": len(self.kept.labelled),
            "waiting": len(self.books.pending) + len(self.kept.pending),
            "skipped": len(self.books.skipped) + len(self.kept.skipped),
            "aside": {self.ids[p]: reason for p, reason in sorted(self.aside.items())}
            | {self.ids[p]: "it has vanished from the pool" for p in self.vanished},
            "shares": class_shares(self.task.classes, self.kept.labels),
            "files": self.files,
            "counts": dict(zip(self.task.classes, (self.books.counts + self.kept.counts).astype(int).tolist())),
            "round": current.number if current else None,
            "estimates": [r.estimate for r in self.rounds if r.estimate],
        }
