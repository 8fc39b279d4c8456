from __future__ import annotations

import os

import numpy as np
import parts
import pytest
from pool_samples import class_label, parquet, picture, put

from tailor.errors import InputError
from tailor.pools import Unreadable, open_pool
from tailor.pools.parquet import ParquetPool

IMAGE = [{"bytes": picture(), "path": "a.png"}]


def test_files_added_in_the_middle_are_numbered_last(tmp_path):
    parquet(tmp_path / "a.parquet", {"text": ["a0", "a1"]})
    parquet(tmp_path / "c.parquet", {"text": ["c0"]})
    pool = ParquetPool(tmp_path)
    parquet(tmp_path / "b.parquet", {"text": ["b0", "b1"]})
    assert pool.refresh() == 2
    assert pool.ids == ["0", "1", "2", "3", "4"]
    assert pool.read(range(5)) == ["a0", "a1", "c0", "b0", "b1"]
    again = open_pool(pool.describe())
    assert again.read(range(5)) == pool.read(range(5)), (
        "the description keeps the order, and with it the numbers"
    )
    assert ParquetPool(tmp_path).read([2]) == ["b0"], "without it, files count in order of name"


def test_a_file_that_is_gone_keeps_its_numbers(tmp_path):
    parquet(tmp_path / "a.parquet", {"text": ["a0", "a1"]})
    parquet(tmp_path / "b.parquet", {"text": ["b0"]})
    pool = ParquetPool(tmp_path)
    described = pool.describe()
    (tmp_path / "a.parquet").unlink()
    expected = [Unreadable("missing"), Unreadable("missing"), "b0"]
    assert pool.read([0, 1, 2]) == expected
    again = open_pool(described)
    assert again.read([0, 1, 2]) == expected
    parquet(tmp_path / "a.parquet", {"text": ["a0", "a1"]})
    assert again.read([0, 1, 2]) == ["a0", "a1", "b0"]


def test_rows_that_shift_are_an_error_without_a_key(tmp_path):
    path = parquet(tmp_path / "a.parquet", {"text": ["x", "y"], "id": ["k0", "k1"]})
    numbered = ParquetPool(path, column="text")
    keyed = ParquetPool(path, key="id")
    parquet(path, {"text": ["new", "x", "y"], "id": ["k2", "k0", "k1"]})
    assert all("has changed" in one.reason for one in numbered.read([0, 1]))
    with pytest.raises(InputError, match="had 2 rows and has 3 now"):
        open_pool(numbered.describe())
    assert open_pool(keyed.describe()).ids == ["k2", "k0", "k1"]


def test_one_id_twice_names_both(tmp_path):
    parquet(tmp_path / "a.parquet", {"text": ["x", "y"], "id": [7, 8]})
    pool = ParquetPool(tmp_path, key="id")
    parquet(tmp_path / "b.parquet", {"text": ["z"], "id": [8]})
    with pytest.raises(
        InputError, match=r"id '8' is there twice: row 1 of a.parquet and row 0 of b.parquet"
    ):
        pool.refresh()
    assert pool.ids == ["7", "8"], "nothing has changed"
    with pytest.raises(InputError, match="there twice"):
        ParquetPool(tmp_path, key="id")


def test_a_row_without_key_is_set_aside(tmp_path):
    pool = ParquetPool(
        parquet(tmp_path / "a.parquet", {"text": ["x", "y"], "id": ["k", None]}), key="id"
    )
    assert pool.ids == ["k", "row 1 of a.parquet"]
    assert pool.read([0, 1]) == ["x", Unreadable("no key")]


def test_a_broken_file_is_set_aside_and_taken_in_once_whole(tmp_path):
    parquet(tmp_path / "b.parquet", {"text": ["x"]})
    put(tmp_path / "a.parquet", "PAR1 half written")
    parquet(tmp_path / "c.parquet", {"other": ["x"]})
    pool = ParquetPool(tmp_path)
    assert pool.ids == ["0"]
    assert "not a whole Parquet file" in pool.set_aside()["a.parquet"]
    assert "no column 'text'" in pool.set_aside()["c.parquet"]
    parquet(tmp_path / "a.parquet", {"text": ["y"]})
    assert pool.refresh() == 1
    assert pool.read([0, 1]) == ["x", "y"]
    assert set(pool.set_aside()) == {"c.parquet"}
    put(tmp_path / "d" / "a.parquet", b"")
    with pytest.raises(InputError, match="not a whole Parquet file"):
        ParquetPool(tmp_path / "d" / "a.parquet")


def test_broken_pages_hurt_only_their_rows(tmp_path):
    import pyarrow.parquet as pq

    rows = [f"{i} " * 50 for i in range(200)]
    for name in ("a", "b"):
        columns = {"text": rows, "id": [f"{name}{i}" for i in range(200)], "label": ["x"] * 200}
        parquet(
            tmp_path / f"{name}.parquet",
            columns,
            row_group_size=100,
            use_dictionary=False,
            compression="zstd",
        )
    whole = (tmp_path / "a.parquet").read_bytes()
    put(tmp_path / "a.parquet", whole[:4] + bytes(100) + whole[104:])
    pool = ParquetPool(tmp_path, column="text")
    read = pool.read([0, 150, 250])
    assert "can't be read" in read[0].reason
    assert read[1:] == [rows[150], rows[50]]
    assert set(pool.labels()) == set(pool.ids)
    start = pq.ParquetFile(tmp_path / "b.parquet").metadata.row_group(0).column(1).data_page_offset
    put(tmp_path / "a.parquet", whole[:start] + bytes(100) + whole[start + 100 :])
    pool = ParquetPool(tmp_path, column="text", key="id")
    assert "can't be read" in pool.set_aside()["a.parquet"]
    assert pool.ids[0] == "b0"


@pytest.mark.parametrize("address", ["", pytest.param("file://", marks=parts.needs("addresses"))])
def test_pictures_in_parquet_files_may_be_transparent(tmp_path, address):
    """Their keys say that they are decoded on white: features of an earlier time, on black, are not
    found any more.
    """
    options = {"cache": str(tmp_path / "cache")} if address else {}
    for column, content, how in (("image", IMAGE, "on white"), ("text", ["a text"], "None")):
        path = parquet(tmp_path / f"{column}.parquet", {column: content})
        (key,) = open_pool(f"{address}{path}", **options).content_keys([0])
        assert key.split("|")[-1] == how


def test_content_keys_follow_the_file(tmp_path):
    path = parquet(tmp_path / "a.parquet", {"text": ["x", "y"]})
    pool = ParquetPool(path)
    keys = pool.content_keys([0, 1])
    parquet(path, {"text": ["xx", "yy"]})
    os.utime(path, ns=(1, 1))
    assert not set(pool.content_keys([0, 1])) & set(keys)
    assert pool.read([0, 1]) == ["xx", "yy"]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"img": IMAGE, "caption": ["c"], "label": [1]}, ("img", "image")),
        ({"image": [picture()]}, ("image", "image")),
        ({"x": [[1.0]], "id": ["i"], "labels": [[1]]}, ("x", "vector")),
        ({"title": ["t"], "text": ["x"], "label": ["l"]}, ("text", "text")),
        ({"sentence": ["t"], "label": ["l"]}, ("sentence", "text")),
        ({"image": IMAGE, "other": IMAGE}, "columns image, other could"),
        ({"text": ["a"], "embedding": [[1.0]]}, "columns embedding, text could"),
        ({"title": ["a"], "body": ["b"]}, "columns title, body could"),
        ({"n": [1]}, "no column holds"),
    ],
)
def test_finding_the_column(tmp_path, columns, expected):
    path = parquet(tmp_path / "a.parquet", columns)
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            ParquetPool(path)
    else:
        pool = ParquetPool(path)
        assert (pool.column, pool.kind) == expected


def test_naming_the_columns(tmp_path):
    columns = {"pixels": [[1, 2], [3, 4]], "kind": ["p", "q"], "label": [0, 1], "labels": [[0], []]}
    path = parquet(tmp_path / "a.parquet", columns)
    pool = ParquetPool(path, column="pixels", label="kind")
    np.testing.assert_array_equal(pool.read([1])[0], np.array([3, 4], np.float32))
    assert pool.labels() == {"0": "p", "1": "q"}
    with pytest.raises(InputError, match="did you mean 'pixels'"):
        ParquetPool(path, column="pixel")
    with pytest.raises(InputError, match="of type int64"):
        ParquetPool(path, column="label")
    with pytest.raises(InputError, match="name one of them"):
        ParquetPool(path, column="pixels").labels()


def test_class_names_of_lists_and_plain_metadata(tmp_path):
    columns = {"text": ["x", "y"], "labels": [[1, 0], []]}
    for metadata in (
        {
            "huggingface": '{"info": {"features": {"labels": {"_type": "List", "feature": '
            '{"names": ["a", "b"]}}}}}'
        },
        {"huggingface": '{"info": {"features": {"labels": [{"names": {"1": "b", "0": "a"}}]}}}'},
        {"class_names": '["a", "b"]'},
    ):
        pool = ParquetPool(parquet(tmp_path / "a.parquet", columns, metadata))
        assert pool.labels() == {"0": ["b", "a"], "1": []}
        assert pool.class_names() == ["a", "b"]
    bad = parquet(
        tmp_path / "b.parquet", {"text": ["x"], "label": [2]}, class_label("label", ["a", "b"])
    )
    with pytest.raises(InputError, match=r"label 2 is outside 0 .. 1"):
        ParquetPool(bad).labels()


def test_splits_are_not_mixed_unasked(tmp_path):
    parquet(tmp_path / "data" / "train-00000-of-00001.parquet", {"text": ["x"]})
    parquet(tmp_path / "data" / "test-00000-of-00001.parquet", {"text": ["y"]})
    with pytest.raises(InputError, match="holds the splits test, train"):
        open_pool(tmp_path)
    assert open_pool(tmp_path, split="train").read([0]) == ["x"]
    assert len(open_pool(tmp_path, split="all")) == 2
    with pytest.raises(InputError, match="no split 'dev'"):
        open_pool(tmp_path, split="dev")
    several = open_pool(
        [tmp_path / "data" / f"{s}-00000-of-00001.parquet" for s in ("train", "test")]
    )
    assert several.read([0, 1]) == ["x", "y"]
    assert open_pool(several.describe()).read([0, 1]) == ["x", "y"]


def test_row_groups_in_memory_are_bounded(tmp_path):
    rows = np.random.default_rng(0).normal(size=(1000, 64)).astype(np.float32)
    path = parquet(tmp_path / "a.parquet", {"x": list(rows)}, row_group_size=100)
    positions = np.random.default_rng(1).integers(0, 1000, 300)
    for budget in (0, 60_000, 10**9):
        pool = ParquetPool(path, cache_bytes=budget)
        np.testing.assert_array_equal(np.stack(pool.read(positions)), rows[positions])
        np.testing.assert_array_equal(np.stack(pool.read([999, 0])), rows[[999, 0]])
        assert pool._row_groups.cached_bytes <= budget


def test_a_touched_file_is_still_the_same(tmp_path):
    path = parquet(tmp_path / "a.parquet", {"text": ["x"]})
    pool = ParquetPool(path)
    os.utime(path, ns=(1, 1))
    assert pool.read([0]) == ["x"]
