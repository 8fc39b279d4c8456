from __future__ import annotations

import subprocess
import sys

import numpy as np
import parts
import pytest
from pool_samples import Items, parquet, picture, put

from tailor.errors import InputError
from tailor.pools import Unreadable, open_pool
from tailor.pools.base import check_positions


def test_a_pool_is_itself():
    pool = open_pool(np.eye(2))
    assert open_pool(pool) is pool
    with pytest.raises(InputError, match="is open already"):
        open_pool(pool, ids=["a", "b"])


def test_folders(tmp_path):
    put(tmp_path / "i" / "deep" / "er" / "a.png", picture())
    parquet(tmp_path / "p" / "data" / "x.parquet", {"text": ["a"]})
    (tmp_path / "l").mkdir()
    (tmp_path / "l" / "link").symlink_to(tmp_path / "i")
    (tmp_path / "l" / "loop").symlink_to(tmp_path / "l")
    assert open_pool(tmp_path / "i").kind == "image"
    assert open_pool(str(tmp_path / "p")).kind == "text"
    assert open_pool(tmp_path / "l").ids == ["link/deep/er/a.png"]


def test_what_it_refuses(tmp_path):
    (tmp_path / "empty").mkdir()
    put(tmp_path / "notes" / "a.md", "x")
    put(tmp_path / "one.png", picture())
    for given, message in [
        (tmp_path / "empty", "is empty"),
        (tmp_path / "notes", "holds 1 files, none of them an image"),
        (tmp_path / "note", "nothing at .*did you mean 'notes'"),
        (tmp_path / "x" / "y", "nothing at .*existing file or folder"),
        (tmp_path / "notes" / "a.md", r"ends in '.md': known are .parquet"),
        (tmp_path / "one.png", "give the folder that holds them"),
        (3, "can't open a int"),
        ([1, 2], "can't open a list"),
        ([], "can't open a list"),
        ({}, "needs 'path'"),
        (iter([]), "can't open a list_iterator"),
        ([tmp_path / "one.png"], "one image"),
    ]:
        with pytest.raises(InputError, match=message):
            open_pool(given)
    with pytest.raises(InputError, match="did you mean 'parquet'"):
        open_pool(tmp_path, kind="parket")


def test_torch_growth_and_errors():
    items = Items([[1.0, 2.0], [3.0, 4.0]])
    pool = open_pool(items)
    items.items.append([5.0, 6.0])
    assert pool.refresh() == 1
    np.testing.assert_array_equal(pool.read([2])[0], [5, 6])
    del items.items[1:]
    assert pool.read([2]) == [Unreadable("missing")]
    with pytest.raises(InputError, match="is empty"):
        open_pool(Items([]))
    with pytest.raises(InputError, match="values from -1 to 1"):
        open_pool(Items([np.array([[-1.0, 1.0]])]))
    with pytest.raises(InputError, match="there twice"):
        open_pool(Items(["a", "b"]), ids=["x", "x"])


def test_torch_labels_of_several_classes():
    import torch

    pool = open_pool(
        Items([("a", torch.tensor([1, 0, 1])), ("b", torch.tensor([0, 0, 0]))]), classes=list("xyz")
    )
    assert pool.labels() == {"0": ["x", "z"], "1": []}


def test_huggingface_refusals():
    parts.need("Hugging Face datasets")
    import datasets

    whole = datasets.Dataset.from_dict({"text": ["a", "b"], "id": ["x", "x"]})
    with pytest.raises(InputError, match="there twice"):
        open_pool(whole, key="id")
    with pytest.raises(InputError, match="name a split, 'train'"):
        open_pool(datasets.DatasetDict({"train": whole}))
    with pytest.raises(InputError, match="is a stream"):
        open_pool(whole.to_iterable_dataset())


def test_positions():
    assert check_positions(np.array([2, 0, 2]), 3) == [2, 0, 2]
    for bad in (1.5, "1", None):
        with pytest.raises(InputError, match="not a whole number"):
            check_positions([bad], 3)


def test_importing_pools_loads_nothing_heavy():
    script = "import sys, tailor.pools, tailor.testing.pools_contract as _\nprint(*sys.modules)"
    script = script.replace(", tailor.testing.pools_contract as _", "")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert {name.partition(".")[0] for name in done.stdout.split()} & {
        "torch",
        "pyarrow",
        "PIL",
        "datasets",
    } == set()
