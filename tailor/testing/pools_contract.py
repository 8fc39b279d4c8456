"""The contract that every pool keeps. A plugin's author calls `check_pool` from a test.

>>> import numpy as np
>>> from tailor.pools import open_pool
>>> check_pool(lambda: open_pool(np.eye(4)))
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools import Pool, Unreadable, open_pool

#: opens one and the same small pool, anew each time
MakePool = Callable[[], Pool]


def check_pool(make: MakePool) -> None:
    """Raises AssertionError where a pool breaks a rule that sessions and models rely on.

    make  opens one and the same small pool anew each time: at least two entries, one of them
          readable
    """
    for check in POOL_CHECKS:
        check(make)


def check_ids(make: MakePool) -> None:
    """Ids are strings that can be stored, each once, as many as the pool is long, and the same when
    opened again.
    """
    pool = make()
    ids = list(pool.ids)
    count = len(ids)
    assert count == len(pool) >= 2, "the contract needs a pool of at least two entries"
    for example_id in ids:
        assert isinstance(example_id, str), f"id {example_id!r} is not a string"
        assert example_id, "an id is empty"
        example_id.encode()  # half of a surrogate pair can't be stored
    assert len(set(ids)) == count, "an id is there twice"
    reopened = make()
    assert list(reopened.ids) == ids, "opened again, the ids differ"


def check_reading(make: MakePool) -> None:
    """read gives what `kind` says, for positions in any order and more than once, and the same each
    time.
    """
    pool = make()
    assert pool.kind in ("image", "text", "vector"), f"unknown kind {pool.kind!r}"
    everything = _positions(pool)
    examples = pool.read(everything)
    assert len(examples) == len(pool)
    readable = []
    for example in examples:
        if not isinstance(example, Unreadable):
            readable.append(example)
    assert readable, "nothing could be read"
    for example in examples:
        check_example(pool.kind, example)
    if pool.kind == "vector":
        lengths = {len(vector) for vector in readable}
        assert len(lengths) == 1, f"vectors of several lengths: {lengths}"
    _check_rereading(pool, examples)


def _positions(pool: Pool) -> list[int]:
    """All positions of a pool, in order."""
    size = len(pool)
    return list(range(size))


def _check_rereading(pool: Pool, examples: Sequence[Any]) -> None:
    """In another order, one by one, and by an array of positions. examples: all of the pool's."""
    everything = _positions(pool)
    # Backwards, as a pool may read in one direction; and again, as it may cache.
    backwards = everything[::-1]
    mixed = [*backwards, 0, everything[-1], 0]
    second_time = pool.read(mixed)
    for position, example in zip(mixed, second_time):
        _require_same(
            example, examples[position], f"position {position} reads differently the second time"
        )
    for position in everything:
        (alone,) = pool.read([position])
        _require_same(alone, examples[position], f"position {position} alone reads differently")
    as_array: Any = np.array([1, 0])
    from_array = pool.read(as_array)
    _require_same(from_array[0], examples[1], "positions as an array read differently")
    assert pool.read([]) == []


def check_example(kind: str, example: Any) -> None:
    """An example is what its pool's kind says, or Unreadable with a reason."""
    if isinstance(example, Unreadable):
        assert isinstance(example.reason, str), "a reason is not text"
        assert example.reason, "Unreadable without a reason"
        return
    example_type = type(example)
    if kind == "text":
        assert isinstance(example, str), f"{example_type} where a text must be"
        return
    assert isinstance(example, np.ndarray), f"{example_type} where an array must be"
    dtype = example.dtype
    shape = example.shape
    if kind == "image":
        assert dtype == np.uint8, f"image of dtype {dtype}"
        assert len(shape) == 3, f"image of shape {shape}"
        assert shape[2] == 3, f"image of shape {shape}"
    else:
        assert dtype == np.float32, f"vector of dtype {dtype}"
        assert len(shape) == 1, f"vector of shape {shape}"
        assert np.isfinite(example).all(), "a vector is not finite"


def check_range(make: MakePool) -> None:
    """A position outside the pool is an InputError, from `read` and from `content_keys`."""
    pool = make()
    size = len(pool)
    methods: list[Callable[[list[int]], Any]] = [pool.read]
    if pool.content_keys([0]) is not None:
        methods.append(pool.content_keys)
    # -1 would be the last entry to a list, and go unnoticed.
    for position in (-1, size, 10**9):
        for method in methods:
            message = _refusal(method, [0, position])
            call = f"{method.__name__}([{position}])"
            assert message is not None, f"{call} of {size} entries is no InputError"
            assert str(position) in message, "the message does not give the position"


def _refusal(method: Callable[[list[int]], Any], positions: list[int]) -> str | None:
    """The message of the InputError that a method raises, None where it raises none."""
    try:
        method(positions)
    except InputError as problem:
        return str(problem)
    return None


def check_owned(make: MakePool) -> None:
    """What was read belongs to the reader: writing into it changes nothing in the pool."""
    pool = make()
    if pool.kind == "text":
        return
    # A range, as callers may hand one in.
    everything = range(len(pool))
    examples = pool.read(everything)
    for position, example in enumerate(examples):
        if isinstance(example, Unreadable):
            continue
        before = example.copy()
        example += 1
        (after,) = pool.read([position])
        _require_same(after, before, "writing into an example changed the pool")


def check_keys(make: MakePool) -> None:
    """Content keys, where there are any, are texts; the same for the same content, different for
    different content.
    """
    pool = make()
    # Made before any key is taken: making it may write the files anew.
    pool_again = make()
    positions = _positions(pool)
    keys = pool.content_keys(positions)
    if keys is None:
        return
    assert len(keys) == len(pool)
    for key in keys:
        assert isinstance(key, str)
    backwards = positions[::-1]
    keys_backwards = pool_again.content_keys(backwards)
    assert keys_backwards == keys[::-1], "opened again, the content keys differ"
    # Equal content may have several keys; one key for two contents would mix features up.
    content_by_key: dict[str, Any] = {}
    examples = pool.read(positions)
    for key, example in zip(keys, examples):
        content = content_by_key.setdefault(key, example)
        _require_same(content, example, f"content key {key!r} stands for two contents")


def check_refresh(make: MakePool) -> None:
    """Where nothing was added, refresh finds nothing, and leaves ids as they are."""
    pool = make()
    ids = list(pool.ids)
    assert pool.refresh() == 0
    assert list(pool.ids) == ids


def check_labels(make: MakePool) -> None:
    """Labels belong to ids of the pool: all class names, or all lists of them."""
    pool = make()
    labels = pool.labels()
    if labels is None:
        return
    assert set(labels) <= set(pool.ids), "a label for an id that is not in the pool"
    types = {type(label) for label in labels.values()}
    are_of_one_type = types <= {str} or types <= {list}
    assert are_of_one_type, f"labels of several types: {types}"
    for label in labels.values():
        if isinstance(label, str):
            class_names = [label]
        else:
            class_names = label
        for class_name in class_names:
            assert isinstance(class_name, str)
            assert class_name


def check_description(make: MakePool) -> None:
    """describe gives plain values that open the same pool again, or an InputError that says why
    not.
    """
    pool = make()
    try:
        described = pool.describe()
    except InputError:
        return
    # Through JSON, as a run keeps it.
    written = json.dumps(described)
    kept = json.loads(written)
    reopened = open_pool(kept)
    assert type(reopened) is type(pool)
    assert list(reopened.ids) == list(pool.ids)
    assert reopened.labels() == pool.labels()
    assert reopened.describe() == described
    everything = range(len(pool))
    originals = pool.read(everything)
    examples = reopened.read(everything)
    for example, original in zip(examples, originals):
        _require_same(example, original, "opened from its description, the pool reads differently")


def check_set_aside(make: MakePool) -> None:
    """Parts that could not be opened are named, with the reason."""
    pool = make()
    set_aside = pool.set_aside()
    for name, reason in set_aside.items():
        assert isinstance(name, str)
        assert isinstance(reason, str)
        assert reason


def _require_same(first: Any, second: Any, message: str) -> None:
    is_same = same(first, second)
    assert is_same, message


def same(first: Any, second: Any) -> bool:
    """Whether two examples are equal, arrays by their type and all their values."""
    first_is_array = isinstance(first, np.ndarray)
    second_is_array = isinstance(second, np.ndarray)
    if first_is_array != second_is_array:
        return False
    if not first_is_array:
        return bool(first == second)
    # array_equal() alone takes arrays of two types for equal.
    if first.dtype != second.dtype:
        return False
    return np.array_equal(first, second)


POOL_CHECKS: tuple[Callable[[MakePool], None], ...] = (
    check_ids,
    check_reading,
    check_range,
    check_owned,
    check_keys,
    check_refresh,
    check_labels,
    check_description,
    check_set_aside,
)
