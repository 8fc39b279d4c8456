"""Whether all of a run is what was written: its store, its features, its models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tailor.errors import TailorError
from tailor.models.cache import DESCRIPTION, cache_problems
from tailor.models.files import SETTINGS, model_problems
from tailor.run import config
from tailor.run.project import Project, run_name, trusted_store_place
from tailor.run.reaches import CACHE
from tailor.storage import StoreDamaged, StoreMissing, StoreOutdated, describe_place
from tailor.storage import open_even_if_moved as open_store


@dataclass(frozen=True)
class PartChecked:
    """One part of a run.

    name      such as the place of its store
    content   what it holds, in words
    problems  what is wrong with it, in words; empty where it is whole
    """

    name: str
    content: str
    problems: list[str]


def check_run(folder: Path) -> Iterator[PartChecked]:
    """Check every part of a run; nothing is changed, and others may go on working.

    Raises InputError where the folder holds no run, StoreOutdated where its store has an earlier
    format, and StoreUnreachable where the store is away.
    """
    settings = config.read(folder)
    yield _check_store(folder, settings)
    for description in sorted((folder / CACHE).glob(f"*/{DESCRIPTION}")):
        cache = description.parent
        yield PartChecked(str(cache), "features", cache_problems(cache))
    for model_settings in sorted(folder.glob(f"*/{SETTINGS}")):
        model = model_settings.parent
        yield PartChecked(str(model), "a model", model_problems(model))


def _check_store(folder: Path, settings: config.Config) -> PartChecked:
    place = trusted_store_place(settings)
    name = run_name(folder)
    described = describe_place(place, name)
    try:
        with open_store(place, run=name, readonly=True) as store:
            newest = store.last()
            problems = store.problems()
    except StoreMissing:
        return PartChecked(described, "no run was begun yet", [])
    except StoreOutdated as error:
        raise error.of_run(folder) from error
    except StoreDamaged as error:
        return PartChecked(described, "damaged", [str(error)])
    if newest is None:
        count = 0
    else:
        count = newest.number
    if not problems:
        problems = _replay_problems(folder)
    return PartChecked(described, f"{count} events", problems)


def _replay_problems(folder: Path) -> list[str]:
    """Why the run can't be rebuilt from its events, each of which is whole."""
    try:
        Project(folder).run_state()
    except TailorError as error:
        return [str(error)]
    return []
