"""The chain of checksums through a run's events: what was lost or changed is noticed."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from tailor.storage.base import Event, StoreDamaged

#: (number, time, kind, body as it is stored, data, digest) of an event
StoredRow = tuple[int, float, str, str, bytes | None, bytes]

_DIGEST_BYTES = 16
#: copied for each event, which is quicker than making one
_EMPTY = blake2b(digest_size=_DIGEST_BYTES)
#: number, time, and the lengths of kind, body and data; the last is -1 where there is no data
_pack_header = struct.Struct(">qdqqq").pack


class ChainHead(NamedTuple):
    """How far a chain of events goes.

    number  of the last event
    digest  its checksum, 16 bytes, which depends on all events up to it
    """

    number: int
    digest: bytes


#: what the first event follows
BEGINNING = ChainHead(0, bytes(_DIGEST_BYTES))


def event_digest(
    previous: bytes, number: int, time: float, kind: str, body: str, data: bytes | None
) -> bytes:
    """The checksum of an event (16 bytes) that follows one with the checksum `previous`."""
    kind_bytes = kind.encode()
    body_bytes = body.encode()
    kind_length = len(kind_bytes)
    body_length = len(body_bytes)
    # The lengths come first, so that no two events give the same bytes.
    if data is None:
        header = _pack_header(number, time, kind_length, body_length, -1)
        record = previous + header + kind_bytes + body_bytes
    else:
        header = _pack_header(number, time, kind_length, body_length, len(data))
        record = b"".join((previous, header, kind_bytes, body_bytes, data))
    hasher = _EMPTY.copy()
    hasher.update(record)
    return hasher.digest()


def next_row(
    head: ChainHead, time: float, kind: str, body: str, data: bytes | None
) -> tuple[StoredRow, ChainHead]:
    """The row of an event that follows `head`, and the head of the chain with it."""
    number = head.number + 1
    digest = event_digest(head.digest, number, time, kind, body, data)
    row = (number, time, kind, body, data, digest)
    return row, ChainHead(number, digest)


def verify_rows(head: ChainHead, rows: Iterable[StoredRow], place: object) -> ChainHead:
    """Check that rows follow `head`, without a gap and unchanged -> the head after them.

    place  of the store, for the message

    Raises StoreDamaged, which names the first event that does not.
    """
    number = head.number
    digest = head.digest
    for stored_number, time, kind, body, data, stored_digest in rows:
        number += 1
        if stored_number != number:
            raise StoreDamaged(f"event {number} of {place} is lost; {ADVICE}")
        try:
            digest = event_digest(digest, number, time, kind, body, data)
        except (TypeError, AttributeError, ValueError, struct.error) as error:
            raise _changed(number, kind, place) from error
        if digest != stored_digest:
            raise _changed(number, kind, place)
    return ChainHead(number, digest)


def _changed(number: int, kind: object, place: object) -> StoreDamaged:
    return StoreDamaged(
        f"event {number} ({kind}) of {place} is damaged: it is not what was written; {ADVICE}"
    )


def is_whole(previous: bytes, row: Sequence[Any]) -> bool:
    """Whether a row is what was written after an event with the checksum `previous`."""
    number = row[0]
    try:
        head = ChainHead(number - 1, previous)
        verify_rows(head, [tuple(row)], "")
    except (StoreDamaged, TypeError):
        return False
    return True


#: what to do about damage
ADVICE = (
    "it was left as it is. `tailor check RUN` says what is lost; `tailor restore` brings a backup "
    "back, and `tailor check RUN --salvage NEW` saves what is whole"
)


def ids_digest(ids: Sequence[str]) -> bytes:
    """The checksum of ids in their order, 16 bytes: the data of the event "examples" that counts
    them.
    """
    text = json.dumps(list(ids))
    hasher = blake2b(text.encode(), digest_size=_DIGEST_BYTES)
    return hasher.digest()


def check_ids(ids: Sequence[str], joined: Iterable[Event], place: object) -> None:
    """Check that ids are those that events of kind "examples" counted.

    Raises StoreDamaged where they are others, or more or fewer.
    """
    count = 0
    for event in joined:
        first = event.body.get("first")
        end = count + event.body.get("count", 0)
        counted = ids[count:end]
        if first != count or ids_digest(counted) != event.data:
            raise StoreDamaged(
                f"the ids of examples {count + 1} to {end} of {place} are damaged: they are not "
                f"those of event {event.number}; {ADVICE}"
            )
        count = end
    if count != len(ids):
        raise StoreDamaged(f"{place} has {len(ids)} ids where its events count {count}; {ADVICE}")
