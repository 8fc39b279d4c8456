"""What every model keeps: shapes, valid probabilities, the same result for the same seed, saving,
odd labels.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.models.base import Model
from tailor.models.targets import Targets
from tailor.pools.base import Pool, Unreadable
from tailor.selection.pool_view import check_probabilities
from tailor.task import MultiClass, Task

#: (task, pool) -> a model that is not trained yet
MakeModel = Callable[[Task, Pool], Model]

WORDS = ("river", "stone", "cloud", "ember", "harbour", "meadow", "lantern", "copper")


class ToyPool(Pool):
    """Made-up examples whose class can be told from their content. Some can't be read; more come
    with refresh().

    classes  (n,) int, the class of each
    bad      positions that can't be read
    later    how many of them appear only with refresh()
    """

    def __init__(
        self, classes: np.ndarray, *, bad: Sequence[int] = (), later: int = 0, keys: bool = True
    ) -> None:
        self.classes = np.asarray(classes)
        self.bad = frozenset(bad)
        self.keys = keys
        self._ids = [f"toy-{i}" for i in range(len(classes) - later)]
        self.reads = 0

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def read(self, positions: Sequence[int]) -> list[Any]:
        self.reads += len(positions)
        return [
            Unreadable("made so") if p in self.bad else self.example(p, int(self.classes[p]))
            for p in positions
        ]

    def example(self, position: int, klass: int) -> Any:
        raise NotImplementedError

    def content_keys(self, positions: Sequence[int]) -> list[str] | None:
        return [f"{self.kind}-{p}-{self.classes[p]}" for p in positions] if self.keys else None

    def refresh(self) -> int:
        new = len(self.classes) - len(self._ids)
        self._ids += [f"toy-{i}" for i in range(len(self._ids), len(self.classes))]
        return new


class ToyVectors(ToyPool):
    kind = "vector"

    def example(self, position: int, klass: int) -> np.ndarray:
        rng = np.random.default_rng(position)
        return (rng.normal(size=8) + 3 * (np.arange(8) == klass)).astype(np.float32)


class ToyImages(ToyPool):
    kind = "image"

    def example(self, position: int, klass: int) -> np.ndarray:
        picture = np.random.default_rng(position).integers(
            0, 60, (16, 16 + position % 2, 3), np.uint8
        )
        picture[4 * (klass % 4) : 4 * (klass % 4) + 4, :, klass % 3] += 180
        return picture


class ToyTexts(ToyPool):
    kind = "text"

    def example(self, position: int, klass: int) -> str:
        rng = np.random.default_rng(position)
        return " ".join([WORDS[klass % len(WORDS)], *rng.choice(WORDS, 2)])


TOYS: dict[str, type[ToyPool]] = {"vector": ToyVectors, "image": ToyImages, "text": ToyTexts}


def toy(task: Task, kind: str, size: int = 40, **options: Any) -> ToyPool:
    """Classes in turn, so that a few examples hold them all."""
    return TOYS[kind](np.arange(size) % task.size, **options)


def toy_labels(task: Task, pool: ToyPool, positions: np.ndarray) -> np.ndarray:
    """(n, K): the class; in a multi-label task the next one too, for every third example."""
    labels = np.eye(task.size, dtype=np.float32)[pool.classes[positions]]
    if not isinstance(task, MultiClass):
        third = np.asarray(positions) % 3 == 0
        labels[third] = np.maximum(labels[third], np.roll(labels[third], 1, axis=1))
    return labels


def check_model(make: MakeModel, task: Task, kind: str = "vector") -> None:
    """Every check, for a model of pools of this kind ("vector", "image" or "text")."""
    for check in MODEL_CHECKS:
        check(make, task, kind)


def _trained(
    make: MakeModel, task: Task, kind: str, seed: int = 3, **options: Any
) -> tuple[Model, ToyPool]:
    pool = toy(task, kind, **options)
    model = make(task, pool)
    model.prepare()
    known = np.array([p for p in range(0, min(len(pool), 24)) if p not in pool.bad])
    model.fit(known, toy_labels(task, pool, known), seed=seed)
    return model, pool


def _valid(task: Task, probs: Any, rows: int) -> np.ndarray:
    import torch

    assert isinstance(probs, np.ndarray), (
        f"probabilities are a {type(probs).__name__}, not an array"
    )
    assert probs.shape == (rows, task.size), (
        f"probabilities have shape {probs.shape}, not {(rows, task.size)}"
    )
    check_probabilities(torch.from_numpy(np.array(probs)), task)
    return probs


def check_shapes(make: MakeModel, task: Task, kind: str) -> None:
    """Any positions, in any order, give their own rows."""
    model, pool = _trained(make, task, kind)
    everything = model.predict(np.arange(len(pool)))
    _valid(task, everything.probs, len(pool))
    assert everything.probs.dtype == everything.features.dtype == np.float32
    assert everything.features.ndim == 2
    assert len(everything.features) == len(pool)
    assert np.isfinite(everything.features).all()
    some = np.array([7, 2, 31])
    part = model.predict(some)
    np.testing.assert_allclose(part.probs, everything.probs[some], atol=1e-4)
    np.testing.assert_allclose(part.features, everything.features[some], atol=1e-2, rtol=1e-3)
    assert model.predict(np.empty(0, np.int64)).probs.shape == (0, task.size)


def check_learns(make: MakeModel, task: Task, kind: str) -> None:
    """The labelled examples are told apart better than by saying the same of all."""
    model, pool = _trained(make, task, kind)
    known = np.arange(24)
    probs = model.predict(known).probs
    labels = toy_labels(task, pool, known)
    assert np.abs(probs - labels).mean() < np.abs(labels.mean(0) - labels).mean()


def check_seed(make: MakeModel, task: Task, kind: str) -> None:
    """The same seed, the same result bit for bit, whatever the global random numbers are."""
    import torch

    first, pool = _trained(make, task, kind)
    torch.rand(5)
    second, _ = _trained(make, task, kind)
    where = np.arange(len(pool))
    a = first.predict(where)
    b = second.predict(where)
    assert a.probs.tobytes() == b.probs.tobytes()
    assert a.features.tobytes() == b.features.tobytes()
    known = np.arange(24)
    first.fit(known, toy_labels(task, pool, known), seed=3)
    assert first.predict(where).probs.tobytes() == a.probs.tobytes(), (
        "a second fit does not start afresh"
    )
    before = torch.random.get_rng_state()
    first.fit(known, toy_labels(task, pool, known), seed=4)
    assert torch.equal(before, torch.random.get_rng_state()), (
        "fit() changed torch's global random numbers"
    )


def check_save(make: MakeModel, task: Task, kind: str) -> None:
    model, pool = _trained(make, task, kind)
    where = np.arange(len(pool))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder))
        names = sorted(p.suffix for p in Path(folder).iterdir())
        assert names == [".json", ".safetensors"], f"save() wrote {names}"
        again = make(task, toy(task, kind))
        again.load(Path(folder))
    np.testing.assert_array_equal(again.predict(where).probs, model.predict(where).probs)


def check_odd_labels(make: MakeModel, task: Task, kind: str) -> None:
    """A class without a label, one class only, and one example only don't break training."""
    pool = toy(task, kind)
    model = make(task, pool)
    model.prepare()
    where = np.arange(len(pool))
    unseen = where[pool.classes != task.size - 1][:10]
    for known in (unseen, where[pool.classes == 0][:5], where[:1]):
        model.fit(known, toy_labels(task, pool, known), seed=0)
        _valid(task, model.predict(where).probs, len(pool))


def check_finetune(make: MakeModel, task: Task, kind: str) -> None:
    model, pool = _trained(make, task, kind)
    where = np.arange(len(pool))
    before = model.predict(where).probs
    tuned = model.finetune(before.copy(), 1, seed=0)
    _valid(task, tuned, len(pool))
    np.testing.assert_array_equal(
        model.predict(where).probs, before, "finetune() changed the model"
    )
    np.testing.assert_array_equal(model.finetune(before.copy(), 1, seed=0), tuned)


def check_dropout(make: MakeModel, task: Task, kind: str) -> None:
    model, pool = _trained(make, task, kind)
    passes = [_valid(task, p, len(pool)) for p in model.dropout(3, seed=1)]
    assert len(passes) == 3
    assert not np.array_equal(passes[0], passes[1]), "two dropout passes are the same"
    for a, b in zip(passes, model.dropout(3, seed=1)):
        np.testing.assert_array_equal(a, b)


def check_in_parts(make: MakeModel, task: Task, kind: str) -> None:
    """tuned() and dropout_at(), where a model has them, say what finetune() and dropout() say."""
    model, pool = _trained(make, task, kind)
    where = np.arange(len(pool))
    before = model.predict(where).probs
    if model.can_finetune_in_parts:
        tuned = model.tuned(Targets(lambda at: before[at], where, task.size), 1, seed=0)
        probs = _valid(task, tuned.predict(where).probs, len(pool))
        np.testing.assert_allclose(probs, model.finetune(before.copy(), 1, seed=0), atol=1e-5)
        np.testing.assert_array_equal(
            model.predict(where).probs, before, "tuned() changed the model"
        )
    if model.can_dropout_in_parts:
        for a, b in zip(model.dropout_at(where, 2, seed=1), model.dropout(2, seed=1), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)
        for some in model.dropout_at(where[3:8], 2, seed=1):
            _valid(task, some, 5)


def check_unreadable(make: MakeModel, task: Task, kind: str) -> None:
    """They are reported, predicted uniformly, and left out of training."""
    model, pool = _trained(make, task, kind, bad=(1, 30))
    assert set(model.prepare()) == {1, 30}
    flat = 1 / task.size if isinstance(task, MultiClass) else 0.5
    np.testing.assert_allclose(model.predict(np.array([1, 30])).probs, flat)
    known = np.arange(6)
    model.fit(known, toy_labels(task, pool, known), seed=0)
    probs = _valid(task, model.predict(np.arange(len(pool))).probs, len(pool))
    np.testing.assert_allclose(_valid(task, model.finetune(probs, 1, seed=0), len(pool))[1], flat)


def check_growth(make: MakeModel, task: Task, kind: str) -> None:
    """What came later is read by prepare(), and nothing is read twice."""
    model, pool = _trained(make, task, kind, later=8, bad=(38,))
    before = pool.reads
    old = model.predict(np.arange(32))
    assert pool.refresh() == 8
    assert set(model.prepare()) == {38}
    assert pool.reads - before == 8, f"{pool.reads - before} examples were read for 8 new ones"
    new = model.predict(np.arange(len(pool)))
    _valid(task, new.probs, 40)
    np.testing.assert_allclose(new.probs[:32], old.probs, atol=1e-4)


MODEL_CHECKS: tuple[Callable[[MakeModel, Task, str], None], ...] = (
    check_shapes,
    check_learns,
    check_seed,
    check_save,
    check_odd_labels,
    check_finetune,
    check_dropout,
    check_in_parts,
    check_unreadable,
    check_growth,
)
