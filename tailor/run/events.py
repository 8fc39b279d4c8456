"""What can happen in a run, as typed events, and how each is written in a store.

A store keeps an event as a kind, a body of plain JSON and, for arrays, bytes. Version 0.1.0 wrote
the same kinds and keys; keys that it did not write yet are read as None.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from tailor.bandits.base import Fit
from tailor.run.array_codec import pack, unpack
from tailor.run.holdout import HoldoutEstimate

Body = dict[str, Any]


@dataclass(frozen=True)
class RunEvent(ABC):
    """Something that happened in a run."""

    kind: ClassVar[str]

    @abstractmethod
    def body(self) -> Body:
        """Plain JSON, as it stands in the store."""

    def data(self) -> bytes | None:
        """Arrays beside the body, for events that have some."""
        return None

    @classmethod
    @abstractmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        """The event with this body. Raises KeyError, TypeError, ValueError where it is damaged."""


@dataclass(frozen=True)
class RunOpened(RunEvent):
    """The run began with these settings."""

    kind = "opened"
    settings: dict[str, Any]

    def body(self) -> Body:
        return {"settings": self.settings}

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        return cls(body["settings"])


@dataclass(frozen=True)
class PoolDescribed(RunEvent):
    """How the pool can be opened again; None where it can't tell."""

    kind = "pool"
    pool: dict[str, Any] | None

    def body(self) -> Body:
        return {"pool": self.pool}

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        return cls(body.get("pool"))


@dataclass(frozen=True)
class ExamplesAdded(RunEvent):
    """`count` ids joined the run from position `first` on. The store writes this one itself."""

    kind = "examples"
    first: int
    count: int

    def body(self) -> Body:
        return {"first": self.first, "count": self.count}

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        return cls(body["first"], body["count"])


@dataclass(frozen=True)
class ExamplesVanished(RunEvent):
    """These examples, and no others, are away from the pool for now."""

    kind = "vanished"
    positions: list[int]

    def body(self) -> Body:
        return {"positions": self.positions}

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        return cls(body["positions"])


@dataclass(frozen=True)
class ExamplesSetAside(RunEvent):
    """These examples can't be read, with the reason of each."""

    kind = "aside"
    reasons: dict[int, str]

    def body(self) -> Body:
        # In JSON every key is a text.
        reasons = {}
        for position, reason in self.reasons.items():
            reasons[str(position)] = reason
        return {"reasons": reasons}

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        reasons = {}
        for position, reason in body["reasons"].items():
            reasons[int(position)] = reason
        return cls(reasons)


@dataclass(frozen=True)
class FilesSetAside(RunEvent):
    """These files of the pool, and no others, can't be opened, with the reason of each."""

    kind = "files"
    reasons: dict[str, str]

    def body(self) -> Body:
        return {"reasons": self.reasons}

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        return cls(body["reasons"])


@dataclass(frozen=True)
class RoundOpened(RunEvent):
    """A round was planned: everything about it that chance or the model decided."""

    kind = "round"
    number: int
    size: int  # picks that make the batch
    seed_round: bool  # a random start, without a model
    estimate: HoldoutEstimate | None
    as_of: int | None  # the last event that the round's model and plan knew of
    labels: int | None  # how many answers there were then
    holdout_slots: np.ndarray  # (slots,) bool. Beyond `size` there may be picks to spare
    holdout: np.ndarray  # positions for those slots, in order
    start: np.ndarray  # positions of a random start, for the other slots
    weights: np.ndarray | None = None  # (K,) v; this and what follows: not at a random start
    chances: np.ndarray | None = None  # (M,)
    pulled: np.ndarray | None = None  # arms in the plan, ascending
    learned: np.ndarray | None = None  # positions whose answers the selector learned from
    beliefs: np.ndarray | None = None  # (len(pulled), K) float16, of selectors with a posterior
    fit: Fit | None = None  # what the selector was told of the model, if it wants to know

    def body(self) -> Body:
        estimate = None
        if self.estimate is not None:
            estimate = asdict(self.estimate)
        body: Body = {
            "number": self.number,
            "size": self.size,
            "seed_round": self.seed_round,
            "estimate": estimate,
            "as_of": self.as_of,
            "labels": self.labels,
        }
        if self.fit is not None:
            body["pool"] = self.fit.pool
            body["reward"] = self.fit.reward
        return body

    def data(self) -> bytes:
        # the hold-out was called the reserve when the first stores were written
        arrays = {
            "reserve_slots": self.holdout_slots,
            "reserve": self.holdout,
            "start": self.start,
            "weights": self.weights,
            "chances": self.chances,
            "pulled": self.pulled,
            "learned": self.learned,
            "beliefs": self.beliefs,
        }
        if self.fit is not None:
            arrays["correct"] = self.fit.correct
            arrays["fit_chances"] = self.fit.chances
            arrays["rates"] = self.fit.rates
        return pack({name: array for name, array in arrays.items() if array is not None})

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        arrays = unpack(data)
        estimate = None
        if body.get("estimate"):
            estimate = HoldoutEstimate(**body["estimate"])
        fit = None
        if "rates" in arrays:
            fit = Fit(
                correct=arrays["correct"],
                chances=arrays["fit_chances"],
                rates=arrays["rates"],
                pool=body["pool"],
                reward=body["reward"],
            )
        return cls(
            number=body["number"],
            size=body["size"],
            seed_round=body["seed_round"],
            estimate=estimate,
            as_of=body.get("as_of"),
            labels=body.get("labels"),
            holdout_slots=arrays["reserve_slots"],
            holdout=arrays["reserve"],
            start=arrays["start"],
            weights=arrays.get("weights"),
            chances=arrays.get("chances"),
            pulled=arrays.get("pulled"),
            learned=arrays.get("learned"),
            beliefs=arrays.get("beliefs"),
            fit=fit,
        )


@dataclass(frozen=True)
class ExamplesAsked(RunEvent):
    """Picks of a round were handed out, each with its slot and its arm."""

    kind = "asked"
    round: int
    positions: np.ndarray  # (n,)
    slots: np.ndarray  # (n,) int32
    arms: np.ndarray  # (n,) int32; below 0: HOLDOUT, START or NOBODY
    predicted: np.ndarray | None  # (n, K) float16 what the model said; None at a random start

    def body(self) -> Body:
        return {"round": self.round}

    def data(self) -> bytes:
        arrays = {
            "positions": self.positions,
            "slots": self.slots,
            "arms": self.arms,
        }
        if self.predicted is not None:
            arrays["predicted"] = self.predicted
        return pack(arrays)

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        arrays = unpack(data)
        return cls(
            round=body["round"],
            positions=arrays["positions"],
            slots=arrays["slots"],
            arms=arrays["arms"],
            predicted=arrays.get("predicted"),
        )


@dataclass(frozen=True)
class AnswersTold(RunEvent):
    """Labels came, and examples were skipped. A label settles what others vote on."""

    kind = "told"
    answers: Sequence[tuple[int, Sequence[int]]]  # (position, classes)
    skipped: Sequence[int]
    by: str | None = None

    def body(self) -> Body:
        answers = [[position, list(classes)] for position, classes in self.answers]
        return {
            "answers": answers,
            "skipped": list(self.skipped),
            "by": self.by,
        }

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        answers = [(position, classes) for position, classes in body["answers"]]
        return cls(answers, body["skipped"], body.get("by"))


@dataclass(frozen=True)
class VoteCast(RunEvent):
    """One person's answer to an example that `of` people are asked about. classes None: skipped."""

    kind = "vote"
    position: int
    classes: Sequence[int] | None
    by: str
    of: int

    def body(self) -> Body:
        classes = None
        if self.classes is not None:
            classes = list(self.classes)
        return {
            "position": self.position,
            "classes": classes,
            "by": self.by,
            "of": self.of,
        }

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        return cls(
            position=body["position"],
            classes=body["classes"],
            by=body["by"],
            of=body["of"],
        )


@dataclass(frozen=True)
class AnswersWithdrawn(RunEvent):
    """These answers were taken back, as if they had never come."""

    kind = "withdrawn"
    positions: Sequence[int]
    by: str | None = None

    def body(self) -> Body:
        return {"positions": list(self.positions), "by": self.by}

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        return cls(body["positions"], body.get("by"))


@dataclass(frozen=True)
class OfferedAgain(RunEvent):
    """These skipped examples may be asked again."""

    kind = "again"
    positions: Sequence[int]

    def body(self) -> Body:
        return {"positions": list(self.positions)}

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        return cls(body["positions"])


@dataclass(frozen=True)
class ClassesChanged(RunEvent):
    """The class list is another one: the old class k is now the class place[k]."""

    kind = "classes"
    classes: Sequence[str]
    place: Sequence[int]
    by: str | None = None
    undoes: int | None = None  # the event of the merge that is taken back

    def body(self) -> Body:
        body: Body = {
            "classes": list(self.classes),
            "place": list(self.place),
            "by": self.by,
        }
        if self.undoes is not None:
            body["undoes"] = self.undoes
        return body

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        return cls(
            classes=body["classes"],
            place=body["place"],
            by=body.get("by"),
            undoes=body.get("undoes"),
        )


@dataclass(frozen=True)
class SeveralEvents(RunEvent):
    """What came at the same time and was written at once. None of these events has arrays."""

    kind = "several"
    events: Sequence[RunEvent]

    def body(self) -> Body:
        events = [[event.kind, event.body()] for event in self.events]
        return {"events": events}

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        events = []
        for kind, inner_body in body["events"]:
            event = read_event(kind, inner_body, None)
            events.append(event)
        return cls(events)


KINDS: dict[str, type[RunEvent]] = {
    event_type.kind: event_type
    for event_type in (
        RunOpened,
        PoolDescribed,
        ExamplesAdded,
        ExamplesVanished,
        ExamplesSetAside,
        FilesSetAside,
        RoundOpened,
        ExamplesAsked,
        AnswersTold,
        VoteCast,
        AnswersWithdrawn,
        OfferedAgain,
        ClassesChanged,
        SeveralEvents,
    )
}


class UnknownKind(Exception):
    """A kind of event that a later version writes."""

    def __init__(self, kind: object) -> None:
        super().__init__(kind)
        self.kind = kind


def read_event(kind: str, body: Body, data: bytes | None) -> RunEvent:
    """The event of this kind and body. Raises UnknownKind, or what is wrong with the body."""
    event_type = KINDS.get(kind)
    if event_type is None:
        raise UnknownKind(kind)
    return event_type.read(body, data)
