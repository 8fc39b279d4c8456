"""Runs of every earlier format: refused in words, upgraded after a backup, and continued."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from runs import edit, refused, tailor

from tailor.models.base import Notice
from tailor.run.project import Project
from tailor.run.salvage import salvage
from tailor.run.trust import remember_settings
from tailor.run.upgrading import upgrade_run
from tailor.storage import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreOutdated,
    open_store,
    postgres_schema,
    sqlite_schema,
)
from tailor.storage.writer_lock import take_lock

FORMATS = Path(__file__).parent / "formats"
#: runs of format 1 in SQLite, with what is expected of them
WRITTEN = Path(__file__).parents[1] / "run" / "written_before"
#: of PostgreSQL: the same run as the first of those
OLD_SCHEMAS = {1: "postgres_1.sql"}


def test_a_run_of_every_earlier_format_is_kept():
    assert sqlite_schema.VERSION == postgres_schema.VERSION == 2
    assert sorted(OLD_SCHEMAS) == list(range(1, postgres_schema.VERSION))
    db = sqlite3.connect(WRITTEN / "multiclass" / "run.db")
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.close()


def load_schema(postgres, url, version):
    import psycopg

    name = url.partition("run=")[2]
    bare = url.partition("?")[0]
    with psycopg.connect(bare, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "tailor_{name}"')
        connection.execute(f'SET search_path TO "tailor_{name}"')
        connection.execute((FORMATS / OLD_SCHEMAS[version]).read_text())


@pytest.fixture(params=["sqlite", "postgres"])
def old_run(request, tmp_path, monkeypatch):
    """The folder of a run of format 1."""
    monkeypatch.delenv("TAILOR_STORE", raising=False)
    run = shutil.copytree(WRITTEN / "multiclass", tmp_path / "run")
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres")
        url = postgres.url()
        load_schema(postgres, url, 1)
        (run / "run.db").unlink()
        edit(run, store=url)
        remember_settings(run)  # the address is new in the file
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        yield run


def rows_of(file):
    db = sqlite3.connect(file)
    rows = db.execute("SELECT number, time, kind, body, data FROM events ORDER BY number")
    ids = db.execute("SELECT position, id FROM examples ORDER BY position")
    try:
        return rows.fetchall(), ids.fetchall()
    finally:
        db.close()


def test_every_command_names_the_way_and_changes_nothing(old_run, tmp_path):
    file = old_run / "run.db"
    before = file.read_bytes() if file.exists() else b""
    for words in (("status",), ("ask",), ("export", tmp_path / "x.csv")):
        said = refused(*words, "--run", old_run)
        assert "has format 1, and this tailor works with 2" in said
        assert f"`tailor upgrade {old_run}`" in said
    assert "tailor upgrade" in refused("check", old_run)
    assert (file.read_bytes() if file.exists() else b"") == before


def test_an_old_run_is_upgraded_after_a_backup_and_goes_on(old_run):
    said = tailor("upgrade", old_run)
    assert "Upgraded from format 1 to 2" in said
    backup = old_run / "backup-before-upgrade"
    original = rows_of(WRITTEN / "multiclass" / "run.db")
    assert rows_of(backup / "run.db") == original
    assert "Nothing to do" in tailor("upgrade", old_run)
    assert "127.0.0.1" not in (backup / "tailor.toml").read_text()
    project = Project(old_run)
    with project.store(readonly=True) as store:
        assert store.problems() == []
        upgraded = [(event.number, event.time, event.kind, event.body) for event in store.events()]
    assert upgraded == [(*row[:3], json.loads(row[3])) for row in original[0]]
    expected = json.loads((old_run / "expected.json").read_text())
    session = project.session()
    assert session.ask(20).ids == expected["first"]
    session.tell({name: "cat" for name in expected["first"]})
    assert session.ask(10).ids == expected["second"]
    session.store.close()
    # The backup is a run too: it can be upgraded, and brought back.
    tailor("upgrade", backup)
    tailor("status", "--run", backup)


def test_what_is_interrupted_is_as_it_was(old_run, monkeypatch):
    """A migration that fails half way leaves the format before, and can be done again."""
    for schema in (sqlite_schema, postgres_schema):
        whole = schema.MIGRATIONS[1]

        def fails(db, whole=whole):
            whole(db)
            db.execute("SELECT no_such_thing")

        monkeypatch.setattr(schema, "MIGRATIONS", [schema.MIGRATIONS[0], fails])
    with pytest.raises(StoreError, match="can't upgrade"):
        upgrade_run(old_run)
    with pytest.raises(StoreOutdated):
        Project(old_run)
    monkeypatch.undo()
    monkeypatch.delenv("TAILOR_STORE", raising=False)
    done = upgrade_run(old_run)
    assert (done.before, done.after) == (1, 2)
    assert done.backup.parent.name == "backup-before-upgrade-2"  # the first one is kept
    Project(old_run).run_state()


def test_killed_at_any_moment_of_the_upgrade(tmp_path):
    """kill -9 at each write to the disk in turn: of the old format, or of the new, and whole."""
    child = """
import os, signal, sys
from pathlib import Path
from tailor.run.upgrading import upgrade_run
from tailor.storage import run_head, sqlite_schema, upgrade
left = [int(sys.argv[2])]
def dies(function):
    def wrapped(*args, **options):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return function(*args, **options)
    return wrapped
for owner, name in (
    (upgrade, "_flush"), (upgrade, "_migrate_file"), (upgrade, "newest_event"),
    (upgrade, "sha256_of"), (sqlite_schema, "note_closed"), (run_head.HeadWriter, "write"),
):
    setattr(owner, name, dies(getattr(owner, name)))
upgrade_run(Path(sys.argv[1]))
"""
    endings = set()
    for moment in range(10):
        run = shutil.copytree(WRITTEN / "multiclass", tmp_path / f"run{moment}")
        ended = subprocess.run([sys.executable, "-c", child, str(run), str(moment)])
        upgrade_run(run)
        with open_store(run / "run.db") as store:
            assert store.problems() == []
            assert store.append("pool", {}) > 1
        endings.add(ended.returncode)
        if ended.returncode == 0:
            break
    assert endings == {0, -9}


def test_what_is_damaged_or_in_use_is_not_upgraded(tmp_path):
    old_run = shutil.copytree(WRITTEN / "multiclass", tmp_path / "run")
    lock = take_lock(old_run / "run.db")
    with pytest.raises(StoreBusy):
        upgrade_run(old_run)
    os.close(lock)
    db = sqlite3.connect(old_run / "run.db")
    db.execute("DELETE FROM events WHERE number = 3")
    db.commit()
    db.close()
    before = (old_run / "run.db").read_bytes()
    with pytest.raises(StoreDamaged, match="event 3 is lost"):
        upgrade_run(old_run)
    salvaged = salvage(old_run, tmp_path / "saved")
    assert salvaged.events == 2
    assert salvaged.losses[0].number == 3
    assert len(salvaged.left_out) > 5
    with open_store(tmp_path / "saved" / "run.db") as store:
        assert store.problems() == []
    assert (old_run / "run.db").read_bytes() == before
    assert re.search("has format 1", refused("status", "--run", old_run))
