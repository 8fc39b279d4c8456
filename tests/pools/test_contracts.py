"""Every registered pool keeps the contract, found by name."""

from __future__ import annotations

import pytest
from pool_samples import SAMPLES

from tailor.pools import Unreadable, open_pool, registry
from tailor.testing.pools_contract import POOL_CHECKS, check_pool

CASES = [(kind, name) for kind, makers in SAMPLES.items() for name in makers]


def test_every_pool_has_a_sample():
    assert set(SAMPLES) >= set(registry.builtin)


@pytest.mark.parametrize("check", POOL_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_contract(kind, name, check, tmp_path):
    given, options = SAMPLES[kind][name](tmp_path)
    assert type(open_pool(given, **options)) is registry.find(kind), (
        "open_pool finds the kind by itself"
    )
    check(lambda: open_pool(given, **options))


#: position -> part of the reason
BROKEN = {
    "image_folder": {2: "broken image", 3: "empty"},
    "parquet_images": {4: "not an image", 5: "missing"},
    "parquet_vectors": {
        1: "missing",
        2: "not finite",
        3: "empty",
        5: "length 1: the others have 2",
        7: "missing",
        8: "not finite",
        9: "empty",
        11: "length",
    },
    "parquet_texts": {1: "missing", 2: "empty"},
    "npy_vectors": {2: "not finite"},
    "csv_texts": {2: "broken line 5", 4: "empty", 5: "no key"},
    "jsonl_texts": {1: "broken line 2", 2: "not text", 3: "broken line 5"},
    "torch_images": {3: "the disk is gone", 4: "text among"},
    "hf_images": {3: "not an image"},
    "hf_texts": {1: "missing"},
    "hf_vectors": {1: "missing", 2: "length 1"},
    "remote_pictures": {1: "broken image"},
}


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_exactly_the_broken_entries_are_set_aside(kind, name, tmp_path):
    given, options = SAMPLES[kind][name](tmp_path)
    pool = open_pool(given, **options)
    reasons = {
        p: e.reason for p, e in enumerate(pool.read(range(len(pool)))) if isinstance(e, Unreadable)
    }
    assert set(reasons) == set(BROKEN.get(name, {}))
    for position, reason in reasons.items():
        assert BROKEN[name][position] in reason


LABELS = {
    "image_folder": {"cat/a.png": "cat", "dog/b.JPG": "dog", "dog/cut.jpg": "dog"},
    "parquet_images": {"0": "cat", "1": "dog", "2": "dog", "5": "cat"},
    "parquet_vectors": {
        f"{p}-{i}": v for p in range(2) for i, v in ((0, ["a"]), (1, []), (3, ["a"]), (4, []))
    },
    "npz_images": {"a": "0", "b": "1", "c": "0", "d": "1", "e": "0"},
    "array_in_memory": {one: [str(k)] for k, one in enumerate("abcde")},
    "csv_texts": {"a": "x", "c": "y", "d": "x", "line 8": "x"},
    "jsonl_texts": {"0": ["a", "b"], "4": []},
    "torch_images": {"0": "cat", "1": "dog", "2": "cat", "4": "cat"},
    "torch_vectors": {"0": "0", "1": "1", "2": "1", "3": "0"},
    "hf_images": {"0": "cat", "1": "dog", "3": "dog"},
    "hf_texts": {"x": "p", "y": "q", "z": "p"},
    "remote_parquet": {"x": "0", "y": "1", "z": "1"},
    "remote_pictures": {"cat/a.png": "cat", "dog/cut.jpg": "dog"},
}


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_labels(kind, name, tmp_path):
    given, options = SAMPLES[kind][name](tmp_path)
    assert open_pool(given, **options).labels() == LABELS.get(name)


def test_the_contract_notices_a_bad_pool(tmp_path):
    given, options = SAMPLES["arrays"]["array_in_memory"](tmp_path)

    def shuffled():
        pool = open_pool(given, **options)
        pool.read = lambda positions: [given[0]] * len(positions)  # (H, W), not an RGB image
        return pool

    with pytest.raises(AssertionError, match="image of shape"):
        check_pool(shuffled)
