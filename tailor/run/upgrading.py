"""A run of an earlier format, brought up to date."""

from __future__ import annotations

from pathlib import Path

from tailor.run import config
from tailor.run.copies import copy_settings, fresh_folder
from tailor.run.project import run_name, trusted_store_place
from tailor.run.reaches import STORE
from tailor.storage.upgrade import Upgrade, upgrade


def upgrade_run(folder: Path) -> Upgrade:
    """Bring the store of a run to today's format, after a backup of it as it was, in a folder in
    the run's own. The backup is a run itself, of the earlier format.

    Raises what storage.upgrade.upgrade() does; nothing was changed then.
    """
    settings = config.read(folder)
    backup = fresh_folder(folder, "backup-before-upgrade")
    backup.mkdir()
    try:
        done = upgrade(trusted_store_place(settings), backup / STORE, run=run_name(folder))
    finally:
        # Where nothing was to be done, or it could not be, there is no backup.
        if not (backup / STORE).exists():
            backup.rmdir()
    if done.backup is not None:
        copy_settings(folder, backup)
    return done
