"""Copies of remote files: shared, limited, private, and never at the cost of files that are not
copies.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from tailor import InputError
from tailor.pools.file_cache import FileCache, user_folder


def fetch(path):
    Path(path).write_bytes(b"x" * 40)


def get(cache, key, fetch=fetch, size=40):
    with cache.hold(key, ".bin", size, fetch) as path:
        return path


def test_a_cache_is_shared_and_survives(tmp_path):
    calls = []

    def counted(path):
        calls.append(path)
        fetch(path)

    first = FileCache(tmp_path, 100)
    first_copy = get(first, "a", counted)
    second = FileCache(tmp_path, 100)
    assert get(second, "a", counted) == first_copy
    assert len(calls) == 1
    second_copy = get(second, "b", counted)
    assert get(first, "b", counted) == second_copy  # of the other one, since it was opened
    assert len(calls) == 2
    get(second, "a", counted)
    get(second, "c", counted)  # b goes, the least lately used
    assert second.held_bytes == 80
    assert first_copy.exists()
    assert len(list(tmp_path.iterdir())) == 2

    def fails(path):
        Path(path).write_bytes(b"half")
        raise OSError("cut")

    with pytest.raises(OSError, match="cut"):
        get(second, "d", fails)
    assert all(p.stat().st_size == 40 for p in tmp_path.iterdir())


def test_a_cache_that_was_tidied_up_is_made_again(tmp_path):
    """A folder for temporary files loses what nobody used for a while, folders too."""
    cache = FileCache(tmp_path / "cache", 100)
    (tmp_path / "cache").rmdir()
    assert get(cache, "a", lambda path: Path(path).write_bytes(b"ab"), 2).read_bytes() == b"ab"


def test_files_that_are_not_copies_stay(tmp_path):
    """A folder that was not empty: documents, and pictures whose names are digests too."""
    names = ["thesis.docx", "d41d8cd98f00b204e9800998ecf8427e.jpg", "notes.part"]
    for name in names:
        (tmp_path / name).write_bytes(b"x" * 5000)
    cache = FileCache(tmp_path, 100)
    assert cache.held_bytes == 0
    for key in "abc":
        get(cache, key)
    assert cache.held_bytes == 80
    assert {name for name in names if (tmp_path / name).exists()} == set(names)
    assert FileCache(tmp_path, 50).held_bytes == 40  # its own copies are counted, and go, as before
    assert all((tmp_path / name).stat().st_size == 5000 for name in names)


def test_what_a_killed_process_left_goes_after_a_day(tmp_path):
    name = f"tailor-{'0' * 32}.bin"
    old, young, foreign = (
        tmp_path / n for n in (f"{name}.7.140.part", f"{name}.8.140.part", "film.mp4.7.140.part")
    )
    for path in (old, young, foreign):
        path.write_bytes(b"half")
    two_days_ago = time.time() - 2 * 24 * 3600
    for path in (old, foreign):
        os.utime(path, (two_days_ago, two_days_ago))
    assert FileCache(tmp_path, 100).held_bytes == 0
    assert sorted(tmp_path.iterdir()) == sorted([young, foreign])


def test_what_is_being_read_stays(tmp_path):
    """In this process, and in another one that shares the folder: each has a cache object of its
    own.
    """
    ours = FileCache(tmp_path, 50)
    theirs = FileCache(tmp_path, 50)
    with (
        ours.hold("a", ".bin", 40, fetch) as first_copy,
        ours.hold("b", ".bin", 40, fetch) as second_copy,
    ):
        get(theirs, "a")
        get(theirs, "c")
        assert first_copy.exists()
        assert second_copy.exists()
    assert ours.held_bytes <= 50
    get(theirs, "d")
    assert theirs.held_bytes == 40
    assert not first_copy.exists()


def test_many_readers_of_a_small_cache(tmp_path):
    """Eight threads and room for one copy: each finds what it asked for."""
    cache = FileCache(tmp_path, 50)
    found = []
    start = threading.Barrier(8)

    def read(number):
        start.wait(120)
        for turn in range(50):
            text = f"{number * turn % 11:040d}"
            with cache.hold(
                text, ".txt", 40, lambda path, text=text: Path(path).write_text(text)
            ) as copy:
                found.append(copy.read_text() == text)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == [True] * 400
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) <= 50


def test_the_users_own_cache_is_private(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    cache = FileCache(None, 100)
    assert cache.folder == user_folder() == tmp_path / "own" / "tailor" / "files"
    assert stat.S_IMODE(os.stat(cache.folder).st_mode) == 0o700
    monkeypatch.setenv("HOME", str(tmp_path))
    for unset in ("", "not/absolute"):  # as the specification has it, both count as not set
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert user_folder() == tmp_path / ".cache" / "tailor" / "files"


def test_a_cache_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        InputError, match=r"the cache .*file can't be used: File exists; set `cache` of the pool"
    ):
        FileCache(tmp_path / "file", 100)


def test_without_a_home_copies_last_as_long_as_the_process(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "below"))
    folder = user_folder()
    assert get(FileCache(None, 100), "a").parent == folder == user_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    monkeypatch.delenv("XDG_CACHE_HOME")

    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    assert user_folder() == folder


def test_of_two_that_fetch_the_same_the_later_takes_the_others_copy(tmp_path, monkeypatch):
    theirs = get(FileCache(tmp_path, 100), "a").stat().st_ino
    late = FileCache(tmp_path, 100)
    there = FileCache._open_copy
    looks = [None, None]  # as if the other's came right after each look
    monkeypatch.setattr(
        late, "_open_copy", lambda path: looks.pop() if looks else there(late, path)
    )
    with late.hold("a", ".bin", 40, fetch) as path:
        assert path.stat().st_ino == theirs
        FileCache(tmp_path, 1)  # makes room, but what is read stays
        assert path.exists()
    assert len(list(tmp_path.iterdir())) == 1
