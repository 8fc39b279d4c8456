"""The datasets' own pools keep the contract of all pools."""

from __future__ import annotations

import official_files as files
import pytest

from tailor.errors import InputError
from tailor.pools.base import Unreadable
from tailor.testing.pools_contract import POOL_CHECKS
from tailor_experiments.datasets import load
from tailor_experiments.datasets.files import Files, Subset


def write(folder):
    for i in range(5):
        files.picture(folder / "a" / f"{i}.jpg", i * 40)
    (folder / "a" / "3.jpg").write_bytes(b"no picture")
    return open_files(folder)


def open_files(folder):
    return Files(folder, [*(f"a/{i}.jpg" for i in range(5)), "b/gone.jpg"])


@pytest.mark.parametrize("check", POOL_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("part", [False, True])
def test_contract(tmp_path, check, part):
    write(tmp_path)  # once: files written again have another date, and with it other keys

    def make():
        pool = open_files(tmp_path)
        return Subset(pool, [4, 0, 3, 5]) if part else pool

    check(make)


def test_bad_pictures_are_set_aside(tmp_path):
    pool = write(tmp_path)
    assert pool.read([3, 5]) == [Unreadable("not an image"), Unreadable("missing")]
    assert pool.missing() == ["b/gone.jpg"]
    assert Subset(pool, [5, 1]).read([0]) == [Unreadable("missing")]


def test_max_side(tmp_path):
    files.write_coco(tmp_path)
    assert load("coco", tmp_path, max_side=6).pool.read([0])[0].shape == (6, 6, 3)


@pytest.mark.parametrize("name", ["../secret.jpg", "/secret.jpg", "a/../../secret.jpg"])
def test_names_that_lead_elsewhere_are_refused(tmp_path, name):
    with pytest.raises(InputError, match="outside"):
        Files(tmp_path, [name])
