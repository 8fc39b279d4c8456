"""Rows on disk: found by content, whole after a crash, clear about a folder that can't be used."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest

from tailor import MultiClass
from tailor.errors import InputError
from tailor.models import cache as cache_module
from tailor.models import make_model
from tailor.models.cache import RowCache, key_digest
from tailor.testing.toy_pools import ToyImages, ToyVectors


def keys(*names):
    return [key_digest(n) for n in names]


def rows(*numbers):
    return np.array([[n, n + 0.5] for n in numbers], np.float32)


def test_rows_come_back_in_another_process_s_cache(tmp_path):
    cache = RowCache(tmp_path, "a", "float32")
    cache.append(keys("x", "y"), rows(1, 2))
    cache.append(keys("y", "z", "z"), rows(9, 3, 4))
    reopened = RowCache(tmp_path, "a", "float32")
    assert reopened.find(keys("z", "x", "nothing", "y")).tolist() == [2, 0, -1, 1]
    np.testing.assert_array_equal(reopened.rows, rows(1, 2, 3))
    assert isinstance(reopened.rows, np.memmap)
    assert len(RowCache(tmp_path, "b", "float32")) == 0


def test_two_that_are_open_at_once_see_each_other_s_rows(tmp_path):
    first = RowCache(tmp_path, "a", "float32")
    second = RowCache(tmp_path, "a", "float32")
    first.append(keys("x"), rows(1))
    second.append(keys("x", "y"), rows(7, 2))
    first.append(keys("z"), rows(3))
    np.testing.assert_array_equal(RowCache(tmp_path, "a", "float32").rows, rows(1, 2, 3))


@pytest.mark.parametrize("cut", ["rows", "keys", "no keys", "meta"])
def test_after_a_crash_every_key_has_its_row(tmp_path, cut):
    whole = RowCache(tmp_path, "a", "float32")
    whole.append(keys("x", "y"), rows(1, 2))
    folder = whole.folder
    if cut == "rows":  # rows were being written
        with open(folder / "rows.bin", "ab") as file:
            file.write(b"\1\2\3")
    elif cut == "keys":
        with open(folder / "rows.bin", "ab") as file:
            file.write(rows(3).tobytes())
        with open(folder / "keys.bin", "ab") as file:
            file.write(key_digest("z")[:5])
    elif cut == "no keys":
        os.remove(folder / "keys.bin")
    else:
        (folder / "meta.json").write_text('{"format": 1, "sha')
    reopened = RowCache(tmp_path, "a", "float32")
    reopened.append(keys("x", "y", "z"), rows(1, 2, 3))
    final = RowCache(tmp_path, "a", "float32")
    np.testing.assert_array_equal(final.rows[final.find(keys("x", "y", "z"))], rows(1, 2, 3))


def _fill_until_killed(folder, stop_at):
    count = 0
    write = cache_module.RowCache._write

    def dying(self, name, offset, data):
        nonlocal count
        count += 1
        if count == stop_at:
            with open(self.folder / name, "ab") as file:
                file.write(data[: len(data) // 2])
            os._exit(9)
        write(self, name, offset, data)

    cache_module.RowCache._write = dying
    cache = RowCache(folder, "a", "float32")
    for n in range(10):
        cache.append(keys(f"{n}", f"{n}b"), rows(n, n + 100))


@pytest.mark.parametrize("stop_at", [1, 2, 3, 8, 13])
def test_killed_while_writing(tmp_path, stop_at):
    process = multiprocessing.get_context("fork").Process(
        target=_fill_until_killed, args=(tmp_path, stop_at)
    )
    process.start()
    process.join()
    assert process.exitcode == 9
    reopened = RowCache(tmp_path, "a", "float32")
    assert (
        len(reopened) == stop_at - 1
    )  # of a pair of keys that was half written, the first is whole
    for n in range(10):
        reopened.append(keys(f"{n}", f"{n}b"), rows(n, n + 100))
    kept_rows = reopened.rows[reopened.find(keys(*(f"{n}" for n in range(10))))]
    np.testing.assert_array_equal(kept_rows, rows(*range(10)))


def test_a_folder_that_cant_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can't be used"):
        RowCache(tmp_path / "file", "a", "float32")


def test_rows_of_another_shape(tmp_path):
    cache = RowCache(tmp_path, "a", "float32")
    cache.append(keys("x"), rows(1))
    with pytest.raises(InputError, match="don't fit the cache"):
        cache.append(keys("y"), np.zeros((1, 5)))


@pytest.mark.parametrize("with_keys", [True, False])
def test_nothing_is_computed_twice(tmp_path, with_keys, monkeypatch):
    """With keys a second run reads nothing; without, it reads but does not compute."""
    from tailor.models.plain_backbones import Given

    computed = []
    embed = Given.embed
    monkeypatch.setattr(Given, "embed", lambda self, e: computed.append(len(e)) or embed(self, e))
    for run in range(2):
        pool = ToyVectors(np.arange(20) % 3, unreadable=(4,), keys=with_keys)
        model = make_model("probe", MultiClass(3), pool, cache=tmp_path, device="cpu")
        before = pool.reads
        assert model.prepare() == {4: "made so"}
        assert sum(computed) == 19
        if run == 1:
            assert pool.reads - before == (1 if with_keys else 20)


def test_equal_content_is_kept_once(tmp_path):
    class Same(ToyVectors):
        def example(self, position, klass):
            return np.full(4, klass, np.float32)

    pool = Same(np.arange(9) % 3, keys=False)
    model = make_model("probe", MultiClass(3), pool, cache=tmp_path, device="cpu")
    model.prepare()
    assert len(model.source.cache) == 3
    assert model.source.rows.tolist() == [0, 1, 2] * 3


def test_without_a_folder_nothing_is_left_behind():
    model = make_model(
        "probe", MultiClass(3), ToyImages(np.arange(6) % 3), backbone="pixels", device="cpu"
    )
    model.prepare()
    folder = Path(model.source._temporary.name)
    assert folder.exists()
    model.source._temporary.cleanup()
    assert not folder.exists()


@pytest.mark.parametrize("with_keys", [True, False])
def test_progress_is_told_piece_by_piece(with_keys):
    pool = ToyImages(np.arange(150) % 3, unreadable=(4,), keys=with_keys)
    model = make_model("probe", MultiClass(3), pool, backbone="pixels", device="cpu")
    steps = []
    model.prepare(lambda *step: steps.append(step))
    assert steps == [(done, 150, "reading the pool") for done in (0, 64, 128, 150)]
    model.prepare(lambda *step: steps.append(step))
    assert len(steps) == 4  # nothing is new


@pytest.mark.parametrize("with_keys", [True, False])
def test_given_up_between_two_pieces_what_was_computed_is_kept(tmp_path, with_keys):
    def give_up(done, total, what):
        if done == 128:
            raise KeyboardInterrupt

    pool = ToyImages(np.arange(150) % 3, keys=with_keys)
    model = make_model(
        "probe", MultiClass(3), pool, backbone="pixels", cache=tmp_path, device="cpu"
    )
    with pytest.raises(KeyboardInterrupt):
        model.prepare(give_up)
    reopened = make_model(
        "probe", MultiClass(3), pool, backbone="pixels", cache=tmp_path, device="cpu"
    )
    assert len(reopened.source.cache) == 128
    assert reopened.prepare() == {}
    assert reopened.source.rows.tolist() == list(range(150))
