"""A run's state from its store: every event applied in order."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any, TypeGuard

from tailor.errors import InputError
from tailor.run.event_applier import apply_stored
from tailor.run.settings import Settings
from tailor.run.state import RunState
from tailor.storage.base import Event, Store, StoreError


def begun_with(first: Event) -> dict[str, Any]:
    """The settings in a run's first event. Raises StoreError where it is no such event."""
    settings = first.body.get("settings")
    if first.kind == "opened" and isinstance(settings, dict):
        classes = settings.get("classes")
        if is_list_of_names(classes):
            return settings
    raise StoreError(
        f"event {first.number} ({first.kind}) is not how a run begins: restore a copy of the store"
    )


def is_list_of_names(value: Any) -> TypeGuard[list[str]]:
    """Whether a value that was read from a store can be a list of classes."""
    if not isinstance(value, list):
        return False
    return all(isinstance(name, str) for name in value)


def rebuild(settings: Settings, store: Store, until: int | None = None) -> RunState:
    """The state of a run after its events, or after those up to number `until`.

    settings must be those the run was begun with; its classes may also be those of today, after
    edits. Raises InputError where they are others, StoreError where an event is damaged.
    """
    events = store.events()
    first = next(events, None)
    if first is None:
        return RunState(settings)
    written = begun_with(first)
    classes_then = tuple(written["classes"])
    # The classes are compared last: they may have been edited since.
    begun = replace(settings, classes=classes_then)
    try:
        begun.check_same(written)
    except (KeyError, TypeError) as error:
        raise StoreError(
            f"event {first.number} (opened) is damaged: {error!r}; restore a copy of the store"
        ) from error
    run_state = RunState(begun)
    for event in chain([first], events):
        if until is not None and event.number > until:
            return run_state
        apply_stored(run_state, event, store)
    _check_classes(settings, classes_then, run_state.task.classes)
    return run_state


def _check_classes(
    settings: Settings, classes_then: tuple[str, ...], classes_now: tuple[str, ...]
) -> None:
    if settings.classes in (classes_then, classes_now):
        return
    edited = ""
    if classes_now != classes_then:
        edited = f", edited since to {classes_now!r}"
    raise InputError(
        f"this run has classes = {classes_then!r}{edited}; now it is {settings.classes!r}: begin "
        "another run"
    )
