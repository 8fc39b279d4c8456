"""Pools on S3 and Google Cloud Storage, through servers on loopback: shards, the cache, and what
can go wrong.
"""

from __future__ import annotations

import socket

import numpy as np
import pytest
from pool_samples import parquet, picture

from tailor import InputError
from tailor.pools import Unreadable, open_pool
from tailor.testing.pools_contract import check_pool


@pytest.fixture
def opened(bucket, tmp_path):
    """Opens the bucket as a pool."""

    def make(address=None, **options):
        options = {"cache": str(tmp_path / "cache"), "storage": bucket.storage} | options
        return open_pool(address or bucket.address, **options)

    return make


@pytest.fixture
def texts(bucket, tmp_path):
    """Three Parquet shards of four rows each."""
    for n in range(3):
        rows = range(4 * n, 4 * n + 4)
        columns = {"text": [f"text {i}" for i in rows], "label": [i % 2 for i in rows]}
        bucket.put_file(f"part-{n}.parquet", parquet(tmp_path / f"{n}.parquet", columns))
    return bucket


def cached(pool):
    return sorted(p.stat().st_size for p in pool._copies.cache.folder.iterdir())


def test_shards_of_rows(texts, opened):
    check_pool(opened)
    pool = opened()
    assert list(pool.ids) == [str(i) for i in range(12)]
    assert pool.read([11, 0, 5]) == ["text 11", "text 0", "text 5"]
    assert pool.labels()["7"] == "1"
    assert open_pool(pool.describe()).read([3]) == ["text 3"]


def test_pictures(bucket, opened):
    bucket.put("cat/a.png", picture(1))
    bucket.put("dog/b.png", picture(2))
    bucket.put("dog/cut.jpg", picture(3, (64, 64), "JPEG")[:600])
    pool = opened(labels="folder")
    assert list(pool.ids) == ["cat/a.png", "dog/b.png", "dog/cut.jpg"]
    assert pool.labels() == {"cat/a.png": "cat", "dog/b.png": "dog", "dog/cut.jpg": "dog"}
    first, _, cut = pool.read([0, 1, 2])
    assert first.shape == (8, 12, 3)
    assert isinstance(cut, Unreadable)
    check_pool(lambda: opened(labels="folder"))


def test_vectors_in_one_file(bucket, opened, tmp_path):
    points = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    np.save(tmp_path / "points.npy", points)
    bucket.put_file("deep/points.npy", tmp_path / "points.npy")
    pool = opened(f"{bucket.address}/deep/points.npy")
    assert np.array_equal(np.stack(pool.read(range(5))), points)


def test_the_cache_keeps_its_limit(texts, opened):
    size = cached(opened())[0]
    pool = opened(cache_bytes=2 * size + size // 2)
    for position in (0, 4, 8, 1, 5, 9, 0):  # each from another shard than the one before
        assert pool.read([position]) == [f"text {position}"]
        assert sum(cached(pool)) <= pool._copies.cache.limit_bytes
    assert len(cached(pool)) == 2


def test_what_is_cached_is_not_fetched_again(texts, opened, monkeypatch):
    opened()
    pool = opened()
    monkeypatch.setattr(pool._copies.storage.filesystem, "get_file", None)  # any use fails
    assert pool.read([10]) == ["text 10"]


def test_a_file_larger_than_the_cache(texts, opened):
    with pytest.raises(InputError, match="does not fit the cache of 100: raise cache_bytes"):
        opened(cache_bytes=100)


def test_shards_that_appear_later_count_on(texts, opened, tmp_path):
    pool = opened()
    texts.put_file(
        "a-first.parquet", parquet(tmp_path / "new.parquet", {"text": ["new"], "label": [0]})
    )
    assert pool.refresh() == 1
    assert pool.ids[-1] == "12"
    assert pool.read([12, 0]) == ["new", "text 0"]
    again = open_pool(pool.describe())
    assert again.read([12, 0]) == ["new", "text 0"]


def test_a_shard_that_changes_or_goes_is_unreadable(texts, opened, tmp_path):
    pool = opened(cache_bytes=10**7, cache=str(tmp_path / "other"))
    texts.put_file(
        "part-1.parquet", parquet(tmp_path / "n.parquet", {"text": ["else"] * 4, "label": [0] * 4})
    )
    pool.refresh()
    assert pool.read([4]) == [Unreadable("part-1.parquet has changed since it was opened")]
    assert pool.read([0]) == ["text 0"]
    texts.remove("part-2.parquet")
    for copy in pool._copies.cache.folder.iterdir():
        copy.unlink()
    assert pool.read([8]) == [Unreadable("missing")]


def test_a_broken_shard_is_set_aside(texts, opened):
    texts.put("part-9.parquet", b"no parquet")
    pool = opened()
    assert len(pool) == 12
    assert list(pool.set_aside()) == ["part-9.parquet"]


def test_errors_name_the_address(bucket, opened):
    with pytest.raises(InputError, match=f"nothing at {bucket.address}: give an existing bucket"):
        opened()
    nowhere = f"{bucket.scheme}://no-such-bucket"
    with pytest.raises(InputError, match=f"nothing at {nowhere}"):
        opened(nowhere)
    bucket.put("notes.txt", b"no picture")
    with pytest.raises(InputError, match="holds 1 files, none of them an image"):
        opened()


def test_a_server_that_does_not_answer(s3_bucket, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    gone = {
        "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1"}
    }
    storage = (
        s3_bucket.storage
        | gone
        | {"config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 1}}
    )
    with pytest.raises(
        InputError,
        match=f"{s3_bucket.address} can't be reached .* check the address and the network",
    ):
        open_pool(s3_bucket.address, cache=str(tmp_path), storage=storage)


@pytest.mark.parametrize(("address", "extra"), [("s3://x", "cloud"), ("gs://x", "cloud-gs")])
def test_a_missing_library_is_named(address, extra, monkeypatch):
    def missing(*_, **__):
        raise ImportError("no such library")

    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    with pytest.raises(
        InputError,
        match=rf"{address} can't be read \(no such library\): "
        rf".*'tailor-active-learning\[{extra}\]'",
    ):
        open_pool(address)


def test_a_file_that_goes_while_the_pool_is_read_is_left_out(bucket, opened, monkeypatch):
    bucket.put("a.csv", b"text\none\ntwo\n")
    pool = opened()
    bucket.put("b.csv", b"text\nthree\n")
    listed = pool._listed_files()
    bucket.remove("b.csv")
    monkeypatch.setattr(pool, "_listed_files", lambda: listed)
    assert (pool.refresh(), len(pool)) == (0, 2)
    monkeypatch.undo()
    bucket.put("b.csv", b"text\nthree\n")
    assert (pool.refresh(), len(pool)) == (1, 3)


def test_an_unknown_kind_of_address():
    with pytest.raises(InputError, match=r"nosuch:// in 'nosuch://x' is no address that a pool"):
        open_pool("nosuch://x")


def test_a_picture_stays_in_the_cache_while_it_is_read(tmp_path, monkeypatch):
    """Where the cache has room for one, somebody else fetches another just before it is decoded."""
    from tailor.pools import remote

    for name in ("a.png", "b.png"):
        (tmp_path / "photos").mkdir(exist_ok=True)
        (tmp_path / "photos" / name).write_bytes(picture(1))
    size = (tmp_path / "photos" / "a.png").stat().st_size
    pool = open_pool(
        f"file://{tmp_path}/photos", cache=str(tmp_path / "cache"), cache_bytes=size + 1
    )
    decode = remote.decode_image

    def late(path, max_side):
        pool.file(1)
        return decode(path, max_side)

    monkeypatch.setattr(remote, "decode_image", late)
    assert pool.read([0])[0].shape == (8, 12, 3)
    assert sum(cached(pool)) <= size + 1


def test_a_shard_stays_in_the_cache_while_it_is_read(tmp_path, monkeypatch):
    (tmp_path / "rows").mkdir()
    for name in ("a", "b"):
        (tmp_path / "rows" / f"{name}.csv").write_text(f"text\n{name} 0\n{name} 1\n")
    size = (tmp_path / "rows" / "a.csv").stat().st_size
    pool = open_pool(f"file://{tmp_path}/rows", cache=str(tmp_path / "cache"), cache_bytes=size + 1)
    first = pool._copies._open_tables["a.csv"][1]
    read = type(first).read

    def late(self, rows):
        monkeypatch.undo()
        assert pool.read([2]) == ["b 0"]
        return read(self, rows)

    monkeypatch.setattr(type(first), "read", late)
    assert pool.read([0, 1]) == ["a 0", "a 1"]
