"""Events of format 1, which had no checksums: checked as far as they can be before an upgrade."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tailor.storage.base import StoreDamaged


class OldEvent(NamedTuple):
    """An event of format 1.

    first, end  the positions of the examples that an event "examples" counts: from first to end - 1
    """

    number: int
    time: float
    kind: str
    body: str  # as it is stored
    data: bytes | None
    first: int = 0
    end: int = 0


def check_old_events(rows: Iterable[tuple[Any, ...]], ids: int) -> Iterator[OldEvent]:
    """The events in rows (number, time, kind, body, data).

    ids  how many there are

    Raises StoreDamaged where a number is missing, a body is no JSON object, or ids are missing.
    """
    count = 0
    for expected, row in enumerate(rows, 1):
        event = OldEvent(*row)
        if event.number != expected:
            raise StoreDamaged(f"event {expected} is lost: the run was left as it is")
        body = _read_body(event)
        if event.kind == "examples":
            event = event._replace(first=count, end=count + body.get("count", 0))
            if body.get("first") != count:
                raise StoreDamaged(f"event {event.number} (examples) does not follow the last one")
            count = event.end
        yield event
    if count != ids:
        raise StoreDamaged(f"there are {ids} ids where the events count {count}")


def _read_body(event: OldEvent) -> dict[str, Any]:
    try:
        body = json.loads(event.body)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreDamaged(f"event {event.number} is damaged: {error}") from error
    if not isinstance(body, dict) or not isinstance(event.kind, str):
        raise StoreDamaged(f"event {event.number} is damaged: it is not what was written")
    return body
