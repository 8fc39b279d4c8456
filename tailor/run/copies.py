"""Copies of a run: a backup of one that is in use, and the way back."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tailor.common.atomic_files import write_atomically
from tailor.common.toml_tables import as_toml
from tailor.errors import InputError
from tailor.run import config
from tailor.run.export import check_fresh
from tailor.run.project import run_name, trusted_store_place
from tailor.run.reaches import STORE
from tailor.storage import (
    SqliteStore,
    StoreDamaged,
    StoreOutdated,
    describe_place,
    is_begun,
    is_url,
    open_store,
)
from tailor.storage.live_copy import copy_store
from tailor.storage.move import Fingerprint
from tailor.storage.run_head import head_path
from tailor.storage.writer_lock import take_lock

#: a line of tailor.toml that names the store
_STORE_LINE = re.compile(r"^\s*store\s*=.*$", re.MULTILINE)
#: all up to the line of [pool] that names its path, and the value of that
_PATH_LINE = re.compile(
    r"""(^\s*\[pool\][^\[]*?^\s*)path\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*')""", re.MULTILINE
)


@dataclass(frozen=True)
class Restored:
    """What was brought back.

    place     where the store is, without its password
    content   what it holds
    replaced  the folder to which an earlier store was put aside; None where there was none
    """

    place: str
    content: Fingerprint
    replaced: Path | None


def back_up(folder: Path, out: Path) -> Fingerprint:
    """Copy a run, also one that is in use, to a new folder: its answers as they are at this moment,
    in SQLite, and its settings. The copy is a run itself.

    Raises InputError where `out` is not new or empty, StoreError where there is no run to copy or
    it is damaged. Nothing is left in `out` then.
    """
    settings = config.read(folder)
    check_fresh(out)
    is_new = not out.exists()
    with open_store(trusted_store_place(settings), run=run_name(folder), readonly=True) as source:
        try:
            out.mkdir(parents=True, exist_ok=True)
            with SqliteStore(out / STORE) as target:
                content = copy_store(source, target)
            copy_settings(folder, out)
        except BaseException:
            _remove_content(out)
            if is_new:
                out.rmdir()
            raise
    return content


def _remove_content(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def copy_settings(folder: Path, out: Path) -> None:
    """Copy the tailor.toml of a run to a folder that holds its store as a file. It names no other
    store, and no password, there, and the same pool.
    """
    text = (folder / config.FILE).read_text(encoding="utf-8")
    text = _STORE_LINE.sub("# store =", text)
    pool_path = config.read(folder).section("pool")["path"]
    is_address = "://" in pool_path
    if not is_address and not Path(pool_path).is_absolute():
        seen_from_copy = os.path.relpath((folder / pool_path).absolute(), out.resolve())
        line = f"path = {as_toml(seen_from_copy)}"
        text = _PATH_LINE.sub(lambda match: match[1] + line, text, count=1)
    write_atomically(out / config.FILE, text)


def restore(backup: Path, folder: Path, *, replace: bool = False) -> Restored:
    """Bring a backup back to the store that a run's settings name, compared event by event before
    it counts.

    folder   of the run; where it has no settings, it gets those of the backup
    replace  put what is in the store aside first, damaged or not; only a file can be

    Raises InputError where there is no backup, or something is in the store and is not to be
    replaced; StoreBusy where another process writes to it.
    """
    backup_file = backup / STORE
    if not backup_file.is_file():
        raise InputError(f"no {STORE} in {backup}: name the folder that `tailor backup` made")
    with SqliteStore(backup_file, readonly=True) as source:
        # Before anything that is there is touched.
        problems = source.problems()
        if problems:
            raise StoreDamaged(f"the backup is damaged: {problems[0]}")
        if not (folder / config.FILE).is_file():
            folder.mkdir(parents=True, exist_ok=True)
            copy_settings(backup, folder)
        settings = config.read(folder)
        place = trusted_store_place(settings)
        name = run_name(folder)
        replaced = None
        if replace and not is_url(place):
            replaced = _put_aside(Path(place))
        _check_free(place, name)
        with open_store(place, run=name) as target:
            content = copy_store(source, target)
    return Restored(describe_place(place, name), content, replaced)


def _check_free(place: str | Path, name: str) -> None:
    """Raise InputError where there is a run at a place, or what is left of one."""
    what_to_do = "--replace puts it aside first"
    if is_url(place):
        what_to_do = "rename its schema first, or name another with ?run=NAME"
    described = describe_place(place, name)
    try:
        if not is_begun(place, name):
            return
        reason = "holds a run already"
    except StoreOutdated:
        reason = "holds a run of an earlier format"
    except StoreDamaged:
        reason = "holds a damaged run"
    raise InputError(f"{described} {reason}: {what_to_do}; nothing was changed")


def _put_aside(file: Path) -> Path | None:
    """Move a store's files to a new folder beside them -> that folder; None where there is none.

    Raises StoreBusy where another process writes to it.
    """
    real_file = file.resolve()
    log_files = []
    for end in ("-wal", "-shm"):
        log_files.append(real_file.with_name(real_file.name + end))
    paths = [real_file, *log_files, head_path(real_file)]
    present = [path for path in paths if path.exists()]
    if not present:
        return None
    lock = take_lock(real_file)
    try:
        folder = fresh_folder(real_file.parent, f"{real_file.name}.replaced")
        folder.mkdir()
        for path in present:
            shutil.move(path, folder / path.name)
    finally:
        os.close(lock)
    return folder


def fresh_folder(parent: Path, name: str) -> Path:
    """A folder that is not there yet: the name, or with a number after it."""
    folder = parent / name
    number = 1
    while folder.exists():
        number += 1
        folder = parent / f"{name}-{number}"
    return folder
