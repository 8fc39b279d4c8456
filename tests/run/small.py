"""A small pool and a small model that needs no network: enough to run sessions quickly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tailor.models.base import Model, Prediction, quiet
from tailor.pools.base import Pool, Unreadable
from tailor.run.settings import Settings


class Points(Pool):
    """Vectors around the centre of their class; some unreadable; can grow."""

    kind = "vector"

    def __init__(
        self, size: int = 120, classes: int = 3, broken: tuple[int, ...] = (), seed: int = 0
    ) -> None:
        self.classes = classes
        self.broken = set(broken)
        self.seed = seed
        self._ids = [f"p{i:05d}" for i in range(size)]
        self.hidden: list[str] = []

    @property
    def ids(self) -> list[str]:
        return self._ids

    def truth(self, one: str) -> int:
        number = int(one[1:])
        return int(np.random.default_rng((self.seed, number)).choice(self.classes, p=self.shares()))

    def shares(self) -> np.ndarray:
        shares = np.geomspace(1, 0.15, self.classes)
        return shares / shares.sum()

    def vector(self, one: str) -> np.ndarray:
        rng = np.random.default_rng((self.seed, int(one[1:]), 1))
        centre = np.eye(self.classes, 6)[self.truth(one)] * 2
        return (centre + rng.standard_normal(6)).astype(np.float32)

    def read(self, positions):
        return [
            Unreadable("it is broken") if p in self.broken else self.vector(self._ids[p])
            for p in positions
        ]

    def refresh(self) -> int:
        new = self.hidden
        self.hidden = []
        self._ids = self._ids + new
        return len(new)


class Centroids(Model):
    """Softmax of minus the squared distance to each class's mean."""

    can_finetune = True
    can_dropout = True

    def __init__(self, task, pool):
        super().__init__(task, pool)
        self.fits = 0
        self.vectors = np.empty((0, 6), np.float32)

    def prepare(self, progress=quiet):
        found = self.pool.read(range(len(self.pool)))
        self.unreadable = {i: v.reason for i, v in enumerate(found) if isinstance(v, Unreadable)}
        self.vectors = np.stack(
            [np.zeros(6, np.float32) if isinstance(v, Unreadable) else v for v in found]
        )
        return self.unreadable

    def fit(self, positions, labels, *, seed, progress=quiet):
        self.fits += 1
        assert not set(positions.tolist()) & set(self.unreadable)
        total = labels.sum(0)
        self.means = (labels.T @ self.vectors[positions] + 0.01) / np.maximum(total, 1)[:, None]
        self.seen = total > 0

    def predict(self, positions, progress=quiet):
        x = self.vectors[positions]
        scores = -((x[:, None, :] - self.means) ** 2).sum(2)
        scores[:, ~self.seen] = scores.min() - 1
        if self.task.kind == "multi-label":
            return Prediction((1 / (1 + np.exp(-(scores - scores.mean())))).astype(np.float32), x)
        e = np.exp(scores - scores.max(1, keepdims=True))
        return Prediction((e / e.sum(1, keepdims=True)).astype(np.float32), x)

    def finetune(self, targets, epochs, *, seed):
        return np.clip(targets * 0.9 + 0.05, 0, 1)

    def dropout(self, passes, *, seed):
        rng = np.random.default_rng(seed)
        base = self.predict(np.arange(len(self.pool))).probs
        for _ in range(passes):
            p = np.clip(base + rng.normal(0, 0.05, base.shape), 1e-3, 1)
            yield (
                p / p.sum(1, keepdims=True) if self.task.kind == "multi-class" else np.clip(p, 0, 1)
            ).astype(np.float32)

    def save(self, folder: Path):
        (folder / "means.json").write_text(json.dumps(self.means.tolist()))

    def load(self, folder: Path):
        self.means = np.array(json.loads((folder / "means.json").read_text()), np.float32)


def settings(**changes) -> Settings:
    given = {"kind": "multi-class", "classes": ("a", "b", "c"), "batch": 12, "rounds": 6, "seed": 3}
    return Settings(**(given | changes))


def answer(pool: Points, kind: str, one: str):
    true = pool.truth(one)
    if kind == "multi-class":
        return "abc"[true]
    return [c for k, c in enumerate("abc") if k == true or (int(one[1:]) + k) % 5 == 0]
