"""A file is the old one or the new one, never a part."""

from __future__ import annotations

import os
import stat

import pytest

from tailor.common.atomic_files import atomic_path, write_atomically


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize(
    ("content", "stored"), [("caf\xe9\n", b"caf\xc3\xa9\n"), (b"\0\1", b"\0\1")]
)
def test_the_whole_content_stands_under_the_name_and_nothing_beside_it(
    tmp_path, content, stored, durable
):
    path = tmp_path / "a.json"
    path.write_text("old, and longer than the new content")
    write_atomically(path, content, durable=durable)
    assert path.read_bytes() == stored
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_block_leaves_the_old_file_and_no_other(tmp_path, error):
    path = tmp_path / "a.json"
    path.write_text("old")

    def write_a_part():
        with atomic_path(path) as temporary:
            temporary.write_text("ne")
            raise error

    with pytest.raises(error):
        write_a_part()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.json"]


def test_the_old_content_stands_until_the_block_ends(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    with atomic_path(path) as temporary:
        assert temporary.parent == tmp_path
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_a_private_file_is_never_open_to_others(tmp_path):
    path = tmp_path / "secret.json"
    path.write_text("old")
    path.chmod(0o644)
    with atomic_path(path, private=True) as temporary:
        assert mode(temporary) == 0o600
    assert mode(path) == 0o600


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o444])
def test_an_existing_file_keeps_its_permissions(tmp_path, permissions):
    path = tmp_path / "labels.csv"
    path.write_text("old")
    path.chmod(permissions)
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        assert mode(temporary) == 0o600
    assert mode(path) == permissions


def test_a_new_file_has_the_permissions_of_any_other(tmp_path):
    (tmp_path / "plain").write_text("")
    write_atomically(tmp_path / "new", "")
    assert mode(tmp_path / "new") == mode(tmp_path / "plain")


@pytest.mark.parametrize("letter", ["a", "\u65e5"])
def test_the_longest_names(tmp_path, letter):
    path = tmp_path / (letter * (255 // len(os.fsencode(letter))))
    write_atomically(path, "content")
    assert path.read_text() == "content"
