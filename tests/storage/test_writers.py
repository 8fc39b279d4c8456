"""Two writers never: whichever way the second one comes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tailor.storage import SqliteStore, StoreBusy, StoreDamaged, StoreError, network_disks
from tailor.storage.network_disks import check_local_disk, file_system_of
from tailor.storage.run_head import head_path

APPEND = """
import sys
from tailor.storage import SqliteStore
with SqliteStore(sys.argv[1]) as store:
    store.append("told", {"by": "the second"})
"""


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    return folder / "run.db"


def second_writer(path):
    """What another process says that tries to write."""
    child = subprocess.run(
        [sys.executable, "-c", APPEND, str(path)], capture_output=True, text=True
    )
    return child.stderr if child.returncode else "it wrote"


def test_by_a_link_to_the_file_or_to_its_folder(path, tmp_path):
    with SqliteStore(path) as store:
        store.append("told", {})
        (tmp_path / "link.db").symlink_to(path)
        (tmp_path / "folder").symlink_to(path.parent)
        for way in (tmp_path / "link.db", tmp_path / "folder" / "run.db"):
            with pytest.raises(StoreBusy):
                SqliteStore(way)
        assert "StoreBusy" in second_writer(tmp_path / "link.db")
        assert store.append("told", {}) == 2
    with SqliteStore(tmp_path / "link.db") as store:  # when it is free, a link is a way
        assert store.append("told", {}) == 3


def test_after_the_lock_file_was_deleted(path):
    with SqliteStore(path) as store:
        store.append("told", {})
        path.with_name("run.db.lock").unlink()
        with pytest.raises(StoreBusy, match="in use by another process"):
            SqliteStore(path)
        assert "StoreBusy" in second_writer(path)
        assert store.append("told", {}) == 2


def test_by_a_hard_link(path, tmp_path):
    """Another name of the same file, elsewhere: it has no head there, or the same one."""
    with SqliteStore(path) as store:
        store.append("told", {})
        os.link(path, tmp_path / "other.db")
        with pytest.raises(StoreDamaged, match=r"other\.db\.head is lost"):
            SqliteStore(tmp_path / "other.db")
        os.link(head_path(path), tmp_path / "other.db.head")
        with pytest.raises(StoreBusy):
            SqliteStore(tmp_path / "other.db")
        assert store.append("told", {}) == 2


def test_after_head_and_lock_were_deleted(path):
    """The second finds no head and stops; the first notices that it may not be alone."""
    with SqliteStore(path) as store:
        store.append("told", {})
        for name in ("run.db.lock", "run.db.head"):
            path.with_name(name).unlink()
        assert "StoreDamaged" in second_writer(path)
        with pytest.raises(StoreError, match="was deleted or replaced"):
            store.append("told", {})


def test_a_file_that_was_replaced_is_not_written_to(path, tmp_path):
    with SqliteStore(tmp_path / "other.db") as other:
        other.append("told", {})
    with SqliteStore(path) as store:
        store.append("told", {})
        os.replace(tmp_path / "other.db", path)
        before = path.read_bytes()
        with pytest.raises(StoreError, match="was deleted or replaced"):
            store.append("told", {})
    assert path.read_bytes() == before


def test_another_program_that_writes_is_noticed(path):
    """By the database's own means: it knows no lock of ours."""
    import sqlite3

    with SqliteStore(path) as store:
        store.append("told", {"n": 1})
        db = sqlite3.connect(path)
        db.execute("INSERT INTO events VALUES (2, 0.0, 'told', '{}', NULL, x'00')")
        db.commit()
        with pytest.raises(StoreError, match="another program wrote to it; open the run again"):
            store.append("told", {"n": 2})
        db.close()
    with pytest.raises(StoreDamaged), SqliteStore(path) as store:
        list(store.events())


NFS = "36 25 {device} / /srv rw,relatime shared:1 - nfs4 server:/export rw,vers=4.2\n"


def test_a_network_disk_is_refused(path, tmp_path, monkeypatch):
    device = os.stat(tmp_path).st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(NFS.format(device=f"{os.major(device)}:{os.minor(device)}"))
    assert file_system_of(tmp_path, mounts) == "nfs4"
    assert file_system_of(tmp_path, tmp_path / "none") == ""
    check_local_disk(path)
    with SqliteStore(path) as store:
        store.append("told", {})
    monkeypatch.setattr(network_disks, "file_system_of", lambda folder: "nfs4")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"network disk \(nfs4\).*PostgreSQL"):
        SqliteStore(path)
    assert path.read_bytes() == before
    with SqliteStore(path, readonly=True) as store:  # what is read is checked as ever
        assert len(list(store.events())) == 1
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.raises(StoreError, match="network disk"):
        SqliteStore(elsewhere / "run.db")
    assert list(elsewhere.iterdir()) == []


def test_a_closed_run_may_be_copied_file_by_file(path, tmp_path):
    with SqliteStore(path) as store:
        store.append("told", {"n": 1})
    shutil.copyfile(path, tmp_path / "copy.db")
    with SqliteStore(tmp_path / "copy.db") as store:
        assert store.append("told", {}) == 2
