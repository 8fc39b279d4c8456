"""What is whole in a damaged run, taken over to another one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tailor.common.atomic_files import write_atomically
from tailor.errors import TailorError
from tailor.run import config
from tailor.run.copies import copy_settings
from tailor.run.event_applier import apply_stored
from tailor.run.events import (
    AnswersTold,
    AnswersWithdrawn,
    EventLost,
    ExamplesSetAside,
    ExamplesVanished,
    FilesSetAside,
    OfferedAgain,
    VoteCast,
)
from tailor.run.export import check_fresh
from tailor.run.project import run_name, trusted_store_place
from tailor.run.reaches import STORE
from tailor.run.replay import begun_with
from tailor.run.settings import Settings
from tailor.run.state import RunState
from tailor.storage import Event, SqliteStore, Store, StoreDamaged
from tailor.storage.move import transfer
from tailor.storage.salvage import (
    Loss,
    WholeParts,
    placeholder_id,
    read_whole_parts,
    with_digests_of,
)

#: Events that may be missing: those after them mean the same without them. After any other, and
#: after one of which not even the kind is known, class numbers or rounds may be others.
MAY_BE_MISSING = frozenset(
    event.kind
    for event in (
        AnswersTold,
        AnswersWithdrawn,
        ExamplesSetAside,
        ExamplesVanished,
        FilesSetAside,
        OfferedAgain,
        VoteCast,
    )
)
#: whole events after the last that could be taken over, one JSON object a line
LEFT_OUT_FILE = "left_out.jsonl"


@dataclass(frozen=True)
class Salvaged:
    """What came of it.

    events    how many events the new run has
    losses    what is not whole, in order
    left_out  whole events that could not be taken over, since what they build on is lost
    """

    events: int
    losses: list[Loss]
    left_out: list[Event]


def salvage(folder: Path, out: Path) -> Salvaged:
    """Write what is whole in a run to another one, in a new folder; the run itself is not changed.

    Events are taken over up to the first loss that others build on; a lost answer before that
    leaves a gap of its own, and nothing else. Each event is taken in as opening the run would.

    Raises InputError where `out` is not new or empty, StoreDamaged where nothing can be saved.
    """
    settings = config.read(folder)
    check_fresh(out)
    parts = read_whole_parts(trusted_store_place(settings), run_name(folder))
    if 1 not in parts.events:
        raise StoreDamaged(
            "the first event of the run is lost, which says how it was begun: bring a backup back"
        )
    run_settings = Settings.from_dict(begun_with(parts.events[1]))
    events = _usable_events(parts)
    out.mkdir(parents=True, exist_ok=True)
    copy_settings(folder, out)
    id_losses = _write(events, parts, run_settings, out / STORE)
    last = events[-1].number
    left_out = []
    for number, event in parts.events.items():
        if number > last:
            left_out.append(event)
    if left_out:
        _write_left_out(out / LEFT_OUT_FILE, left_out)
    losses = sorted([*parts.losses, *id_losses], key=lambda loss: loss.number)
    return Salvaged(len(events), losses, left_out)


def _usable_events(parts: WholeParts) -> list[Event]:
    """Whole events, and markers of lost ones that may be missing, up to a loss that may not be."""
    lost = {loss.number: loss for loss in parts.losses}
    events: list[Event] = []
    for number in range(1, parts.newest + 1):
        if number in parts.events:
            events.append(parts.events[number])
            continue
        kind = lost[number].kind
        if kind not in MAY_BE_MISSING:
            break
        marker = EventLost(kind)
        events.append(Event(number, events[-1].time, marker.kind, marker.body()))
    # Lost events at the end are no gap that has to be kept.
    while events[-1].kind == EventLost.kind:
        events.pop()
    return events


def _write(events: list[Event], parts: WholeParts, settings: Settings, file: Path) -> list[Loss]:
    """Write events to a new store, and shorten the list to those that can be taken in -> what is
    wrong with the ids.
    """
    while True:
        ids = _ids_of(events, parts)
        checked, id_losses = with_digests_of(events, ids)
        with SqliteStore(file) as store:
            transfer(ids, lambda checked=checked: checked, store)  # type: ignore[misc]
            usable = _count_usable(checked, settings, store)
        if usable == len(events):
            return id_losses
        del events[max(usable, 1) :]
        for path in file.parent.glob(f"{file.name}*"):
            path.unlink()


def _ids_of(events: list[Event], parts: WholeParts) -> list[str]:
    """The ids that the events count, with a placeholder for each that is lost."""
    count = 0
    for event in events:
        if event.kind == "examples":
            count += event.body["count"]
    ids = []
    for position in range(count):
        example_id = None
        if position < len(parts.ids):
            example_id = parts.ids[position]
        if example_id is None:
            example_id = placeholder_id(position)
        ids.append(example_id)
    return ids


def _count_usable(events: list[Event], settings: Settings, store: Store) -> int:
    """How many events from the first on can be taken in."""
    run_state = RunState(settings)
    for count, event in enumerate(events):
        try:
            apply_stored(run_state, event, store)
        except TailorError:
            return count
    return len(events)


def _write_left_out(path: Path, events: list[Event]) -> None:
    lines = []
    for event in events:
        row = {
            "number": event.number,
            "time": event.time,
            "kind": event.kind,
            "body": event.body,
        }
        lines.append(json.dumps(row) + "\n")
    write_atomically(path, "".join(lines))
