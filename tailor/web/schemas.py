"""What requests may hold. Anything else is refused before it reaches the coordinator."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints


def _encodable(text: str) -> str:
    """JSON can hold halves of surrogate pairs; no store and no page can."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("the text is not valid Unicode") from None
    if "\0" in text:
        raise ValueError("the text holds a NUL character")
    return text


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a class name may not hold control characters")
    return text


Id = Annotated[str, StringConstraints(min_length=1, max_length=4096), AfterValidator(_encodable)]
KnownName = Annotated[
    str, StringConstraints(min_length=1, max_length=1000), AfterValidator(_encodable)
]
NewName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200, strip_whitespace=True),
    AfterValidator(_encodable),
    AfterValidator(_printable),
]
Offset = Annotated[int, Query(ge=0, le=10**9)]
Count = Annotated[int, Query(ge=1, le=200)]


class RequestBody(BaseModel):
    """A request with nothing in it but what is declared."""

    model_config = ConfigDict(extra="forbid")


class SettleBody(RequestBody):
    """An answer: the classes; an empty list for none of them (multi-label); null to skip."""

    id: Id
    label: Annotated[list[KnownName], Field(max_length=10_000)] | None


class AnswerBody(SettleBody):
    """ticket: what came with the example, which says that it was handed to this person.
    unasked: a label that comes from elsewhere, by one who may tell it.
    """

    ticket: Annotated[str, StringConstraints(max_length=100)] | None = None
    unasked: bool = False


class AddClass(RequestBody):
    name: NewName


class RenameClass(RequestBody):
    old: KnownName
    new: NewName


class MergeClasses(RequestBody):
    old: KnownName
    into: KnownName


class UndoMerge(RequestBody):
    """merge: the number of its event."""

    merge: Annotated[int, Field(ge=1, le=2**53)]


class UndoAct(RequestBody):
    """event: the number of the act's event; of: whose act it is."""

    event: Annotated[int, Field(ge=1, le=2**53)]
    of: Annotated[str, StringConstraints(max_length=200), AfterValidator(_encodable)]


class GoalsBody(RequestBody):
    """What a run is to reach: labels in all, labels of every class, an accuracy in (0, 1]."""

    budget: Annotated[int, Field(ge=1, le=10**12)] | None = None
    per_class: Annotated[int, Field(ge=1, le=10**12)] | None = None
    accuracy: Annotated[float, Field(gt=0, le=1)] | None = None


class Problem(BaseModel):
    """Why a request was refused."""

    error: str
