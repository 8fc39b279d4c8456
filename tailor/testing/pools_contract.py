"""The contract that every pool keeps. A plugin's author calls `check_pool` from a test.

>>> import numpy as np
>>> from tailor.pools import open_pool
>>> check_pool(lambda: open_pool(np.eye(4)))
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools import Pool, Unreadable, open_pool

Make = Callable[[], Pool]


def check_pool(make: Make) -> None:
    """make opens one and the same small pool anew each time (at least two entries, one of them
    readable).
    """
    for check in POOL_CHECKS:
        check(make)


def check_ids(make: Make) -> None:
    """Ids are strings that can be stored, each once, as many as the pool is long, and the same when
    opened again.
    """
    pool = make()
    ids = list(pool.ids)
    assert len(ids) == len(pool) >= 2, "the contract needs a pool of at least two entries"
    for one in ids:
        assert isinstance(one, str), f"id {one!r} is not a string"
        assert one, "an id is empty"
        one.encode()
    assert len(set(ids)) == len(ids), "an id is there twice"
    assert list(make().ids) == ids, "opened again, the ids differ"


def check_reading(make: Make) -> None:
    """read gives what `kind` says, for positions in any order and more than once, and the same each
    time.
    """
    pool = make()
    assert pool.kind in ("image", "text", "vector"), f"unknown kind {pool.kind!r}"
    everything = list(range(len(pool)))
    examples = pool.read(everything)
    assert len(examples) == len(pool)
    assert any(not isinstance(e, Unreadable) for e in examples), "nothing could be read"
    for example in examples:
        check_example(pool.kind, example)
    mixed = [*everything[::-1], 0, len(pool) - 1, 0]
    for position, example in zip(mixed, pool.read(mixed)):
        assert same(example, examples[position]), (
            f"position {position} reads differently the second time"
        )
    for position in everything:
        assert same(pool.read([position])[0], examples[position]), (
            f"position {position} alone reads differently"
        )
    as_array: Any = np.array([1, 0])
    assert same(pool.read(as_array)[0], examples[1]), "positions as an array read differently"
    assert pool.read([]) == []
    lengths = {len(e) for e in examples if not isinstance(e, Unreadable)}
    assert pool.kind != "vector" or len(lengths) == 1, f"vectors of several lengths: {lengths}"


def check_example(kind: str, example: Any) -> None:
    if isinstance(example, Unreadable):
        assert isinstance(example.reason, str), "a reason is not text"
        assert example.reason, "Unreadable without a reason"
    elif kind == "text":
        assert isinstance(example, str), f"{type(example)} where a text must be"
    else:
        assert isinstance(example, np.ndarray), f"{type(example)} where an array must be"
        if kind == "image":
            assert example.dtype == np.uint8, f"image of dtype {example.dtype}"
            assert example.ndim == 3, f"image of shape {example.shape}"
            assert example.shape[2] == 3, f"image of shape {example.shape}"
        else:
            assert example.dtype == np.float32, f"vector of dtype {example.dtype}"
            assert example.ndim == 1, f"vector of shape {example.shape}"
            assert np.isfinite(example).all(), "a vector is not finite"


def check_range(make: Make) -> None:
    """A position outside the pool is an InputError, from `read` and from `content_keys`."""
    pool = make()
    asked: list[Callable[[list[int]], Any]] = [pool.read]
    if pool.content_keys([0]) is not None:
        asked.append(pool.content_keys)
    for position in (-1, len(pool), 10**9):
        for ask in asked:
            try:
                ask([0, position])
            except InputError as problem:
                assert str(position) in str(problem), "the message does not give the position"  # noqa: PT017
            else:
                raise AssertionError(
                    f"{ask.__name__}([{position}]) of {len(pool)} entries is no InputError"
                )


def check_owned(make: Make) -> None:
    """What was read belongs to the reader: writing into it changes nothing in the pool."""
    pool = make()
    if pool.kind == "text":
        return
    for position, example in enumerate(pool.read(range(len(pool)))):
        if not isinstance(example, Unreadable):
            before = example.copy()
            example += 1
            assert same(pool.read([position])[0], before), (
                "writing into an example changed the pool"
            )


def check_keys(make: Make) -> None:
    """Content keys, where there are any, are texts; the same for the same content, different for
    different content.
    """
    pool = make()
    again = make()
    positions = list(range(len(pool)))
    keys = pool.content_keys(positions)
    if keys is None:
        return
    assert all(isinstance(k, str) for k in keys)
    assert len(keys) == len(pool)
    assert again.content_keys(positions[::-1]) == keys[::-1], (
        "opened again, the content keys differ"
    )
    examples = pool.read(positions)
    first: dict[str, Any] = {}
    for key, example in zip(keys, examples):
        assert same(first.setdefault(key, example), example), (
            f"content key {key!r} stands for two contents"
        )


def check_refresh(make: Make) -> None:
    """Where nothing was added, refresh finds nothing, and leaves ids as they are."""
    pool = make()
    ids = list(pool.ids)
    assert pool.refresh() == 0
    assert list(pool.ids) == ids


def check_labels(make: Make) -> None:
    """Labels belong to ids of the pool: all class names, or all lists of them."""
    pool = make()
    labels = pool.labels()
    if labels is None:
        return
    assert set(labels) <= set(pool.ids), "a label for an id that is not in the pool"
    kinds = {type(v) for v in labels.values()}
    assert kinds <= {str} or kinds <= {list}, f"labels of several types: {kinds}"
    for value in labels.values():
        assert all(
            isinstance(one, str) and one for one in ([value] if isinstance(value, str) else value)
        )


def check_description(make: Make) -> None:
    """describe gives plain values that open the same pool again, or an InputError that says why
    not.
    """
    pool = make()
    try:
        described = pool.describe()
    except InputError:
        return
    again = open_pool(json.loads(json.dumps(described)))
    assert type(again) is type(pool)
    assert list(again.ids) == list(pool.ids)
    assert again.labels() == pool.labels()
    assert again.describe() == described
    for a, b in zip(again.read(range(len(again))), pool.read(range(len(pool)))):
        assert same(a, b), "opened from its description, the pool reads differently"


def check_set_aside(make: Make) -> None:
    """Parts that could not be opened are named, with the reason."""
    for name, reason in make().set_aside().items():
        assert isinstance(name, str)
        assert isinstance(reason, str)
        assert reason


def same(a: Any, b: Any) -> bool:
    """Whether two examples are equal, arrays by all their values."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)
    return bool(a == b)


POOL_CHECKS: tuple[Callable[[Make], None], ...] = (
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
