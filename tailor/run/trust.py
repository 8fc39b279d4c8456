"""Which runs this user has begun or trusted, and for what: a file each in the user's state folder.

A run that reaches nothing but its own folder and a pool on this machine needs no entry. Any other
is opened where it was begun here, or trusted, for all that it reaches.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from tailor.common.atomic_files import write_atomically
from tailor.errors import NotTrusted
from tailor.models.base import Notice
from tailor.run import config
from tailor.run.reach import Action, Reach
from tailor.run.reaches import setting_reaches


def state_folder() -> Path | None:
    """Where the records lie, as the XDG base directory specification says; None where this user has
    no home.
    """
    configured = os.environ.get("XDG_STATE_HOME", "")
    # The specification ignores a path that is not absolute.
    if os.path.isabs(configured):
        base = Path(configured)
    else:
        try:
            base = Path.home() / ".local" / "state"
        except RuntimeError:
            return None
    return base / "tailor" / "trusted"


def trusted_reaches(folder: Path) -> frozenset[Reach]:
    """What the run or the saved model in a folder is trusted with; nothing where there is no record
    or it is damaged.
    """
    record = _record_file(folder)
    if record is None:
        return frozenset()
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        entries = content["reaches"]
        return frozenset(Reach(Action(action), target) for action, target in entries)
    except (OSError, ValueError, TypeError, KeyError):
        return frozenset()


def untrusted(folder: Path, reaches: Iterable[Reach]) -> list[Reach]:
    """Those of the reaches that a user has to be asked about."""
    asked_about = []
    for reach in reaches:
        if reach.needs_trust:
            asked_about.append(reach)
    # The everyday case: no file is looked for.
    if not asked_about:
        return []
    trusted = trusted_reaches(folder)
    return [reach for reach in asked_about if reach not in trusted]


def remember(folder: Path, reaches: Iterable[Reach]) -> None:
    """Trust a folder with these, and with what it was trusted with before. Warns where that can't
    be written.
    """
    new = []
    for reach in reaches:
        if reach.needs_trust:
            new.append(reach)
    trusted = trusted_reaches(folder)
    if trusted.issuperset(new):
        return
    entries = []
    for reach in sorted(trusted.union(new)):
        entries.append([reach.action, reach.target])
    content = {"folder": str(folder.resolve()), "reaches": entries}
    record = _record_file(folder)
    try:
        if record is None:
            raise FileNotFoundError("this user has no home folder")
        record.parent.mkdir(0o700, parents=True, exist_ok=True)
        # Not forced to the disk: should a power cut take it, the user is asked again.
        write_atomically(record, json.dumps(content, indent=1), private=True, durable=False)
    except OSError as error:
        warnings.warn(
            f"it can't be remembered that {folder} is trusted ({error}): set XDG_STATE_HOME to a "
            "folder that can be written to, or trust it each time",
            Notice,
            stacklevel=2,
        )


def remember_settings(folder: Path) -> None:
    """Trust a run that was begun just now with what its settings reach: the user has named it."""
    settings = config.read(folder)
    remember(folder, setting_reaches(settings))


def forget(folder: Path) -> bool:
    """Trust a folder with nothing any more; returns whether it was trusted with something."""
    record = _record_file(folder)
    if record is None or not record.is_file():
        return False
    record.unlink()
    return True


def check_trusted(folder: Path, reaches: Sequence[Reach], *, trust: bool = False) -> None:
    """Raise NotTrusted unless a folder is trusted with all that it reaches.

    trust  whether the user trusts it as of now; it is remembered
    """
    if trust:
        remember(folder, reaches)
        return
    refused = untrusted(folder, reaches)
    if refused:
        raise NotTrusted(refusal(folder, reaches))


def refusal(folder: Path, reaches: Iterable[Reach]) -> str:
    """Why a folder is not opened, what it would do, and what to do about it."""
    # The folder that we are in has no name of its own.
    if not folder.name:
        folder = folder.resolve()
    lines = [
        f"{folder} came from elsewhere, or has changed since it was trusted. Opened, it would",
        *listed(reaches),
        f"Where that is what you want, `tailor trust {folder}` says so, or --trust with a command "
        "(trust=True in Python).",
    ]
    return "\n".join(lines)


def listed(reaches: Iterable[Reach]) -> list[str]:
    """A line for each, what needs trust first."""
    in_order = sorted(set(reaches), key=lambda reach: (not reach.needs_trust, reach))
    return [f"  - {reach}" for reach in in_order]


def _record_file(folder: Path) -> Path | None:
    """Named by the folder's resolved path: a copy elsewhere is another run."""
    state = state_folder()
    if state is None:
        return None
    path = os.fsencode(folder.resolve())
    return state / f"{hashlib.sha256(path).hexdigest()[:32]}.json"
