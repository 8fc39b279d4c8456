"""What can happen in a run, as typed events, and how each is written in a store.

A store keeps an event as a kind, a body of plain JSON and, for arrays, bytes. Version 0.1.0 wrote
the same kinds and keys; keys that it did not write yet are read as None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from tailor.run.event_base import Body
from tailor.run.event_base import RunEvent as RunEvent
from tailor.run.goals import GoalsSet
from tailor.run.round_events import ExamplesAsked, RoundOpened


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
class AnswersTold(RunEvent):
    """Labels came, and examples were skipped. A label settles what others vote on."""

    kind = "told"
    answers: Sequence[tuple[int, Sequence[int]]]  # (position, classes)
    skipped: Sequence[int]
    by: str | None = None

    def body(self) -> Body:
        answers = []
        for position, classes in self.answers:
            answers.append([position, list(classes)])
        return {
            "answers": answers,
            "skipped": list(self.skipped),
            "by": self.by,
        }

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        answers = []
        for position, classes in body["answers"]:
            answers.append((position, classes))
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
    undoes: int | None = None  # the event of the change of classes that is taken back

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
class ActUndone(RunEvent):
    """What a person had settled, overwritten or told unasked is taken back: the answers are what
    they were before. act: the number of the event; of: whose act in it.
    """

    kind = "undone"
    act: int
    of: str
    by: str | None = None

    def body(self) -> Body:
        return {"act": self.act, "of": self.of, "by": self.by}

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        return cls(body["act"], body["of"], body.get("by"))


@dataclass(frozen=True)
class EventLost(RunEvent):
    """In the place of an event that was damaged and could not be saved: nothing changes."""

    kind = "lost"
    lost_kind: str

    def body(self) -> Body:
        return {"kind": self.lost_kind}

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        return cls(body["kind"])


@dataclass(frozen=True)
class SeveralEvents(RunEvent):
    """What came at the same time and was written at once. None of these events has arrays."""

    kind = "several"
    events: Sequence[RunEvent]

    def body(self) -> Body:
        events = []
        for event in self.events:
            events.append([event.kind, event.body()])
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
        ActUndone,
        EventLost,
        GoalsSet,
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
