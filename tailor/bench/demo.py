"""The demo: TAILOR and its rivals label the same few digits."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

from tailor.bench.metrics import balanced_accuracy, imbalance_ratio
from tailor.loop import Loop
from tailor.strategies import NARROW
from tailor.task import MultiClass

FAMILIES = NARROW["multi-class"]


@dataclass(frozen=True)
class Contender:
    """A way to choose examples: a selector over families."""

    label: str
    selector: str
    families: tuple[str, ...]


CONTENDERS = (
    Contender("TAILOR", "tailor", tuple(FAMILIES)),
    Contender("random", "random-meta", ("random",)),
    *(Contender(f"{name} alone", "random-meta", (name,)) for name in FAMILIES),
    Contender("random meta", "random-meta", tuple(FAMILIES)),
    Contender("ALBL", "albl", tuple(FAMILIES)),
)


@dataclass(frozen=True)
class Setting:
    classes: int = 4
    batch: int = 20
    rounds: int = 10
    seeds: int = 5


@dataclass(frozen=True)
class Row:
    """The state of one trial after one round."""

    contender: str
    seed: int
    round: int
    labels: int
    accuracy: float  # balanced accuracy on the test set
    rarest: int  # labels in the class with fewest
    imbalance: float  # smallest class over largest, of the labels


@dataclass(frozen=True)
class Digits:
    """scikit-learn's digits as an imbalanced task: classes 0 to K-2 are kept, the rest are merged into one."""

    task: MultiClass
    pool: np.ndarray  # (N, 64) float32 in [0, 1]
    pool_labels: np.ndarray  # (N, K)
    test: np.ndarray
    test_labels: np.ndarray


def load_digits(classes: int) -> Digits:
    from sklearn.datasets import load_digits as load

    data = load()
    kept = classes - 1
    names = [*(str(k) for k in range(kept)), f"{kept}-9"]
    labels = np.eye(classes, dtype=np.float32)[np.minimum(data.target, kept)]
    pixels = (data.data / 16).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(pixels))
    pool, test = order[: len(order) * 3 // 4], order[len(order) * 3 // 4 :]
    return Digits(MultiClass(names), pixels[pool], labels[pool], pixels[test], labels[test])


def trial(contender: Contender, seed: int, setting: Setting) -> list[Row]:
    """One run from a random first batch to the last round. The same seed gives every contender the same first batch
    and the same initial weights, so that differences are paired."""
    digits = load_digits(setting.classes)
    loop = Loop(
        digits.task, len(digits.pool), families=contender.families, selector=contender.selector,
        rounds=setting.rounds, batch=setting.batch, seed=seed,
    )  # fmt: skip
    first = np.random.default_rng(seed).choice(len(digits.pool), setting.batch, replace=False)
    loop.tell(first, digits.pool_labels[first])
    rows = []
    for number in range(setting.rounds + 1):
        books = loop.books
        model = _Network(digits, books.labelled, books.labels, seed)
        counts = books.counts
        accuracy = balanced_accuracy(digits.test_labels, model.predict(digits.test)[0])
        collected = (int(counts.min()), imbalance_ratio(counts))
        rows.append(Row(contender.label, seed, number, len(books.labelled), accuracy, *collected))
        if number < setting.rounds:
            batch = loop.ask(*model.predict(digits.pool))
            loop.tell(batch.indices, digits.pool_labels[batch.indices])
    return rows


class _Network:
    """64 pixels, one hidden layer of 64, a softmax; trained anew from the same start."""

    def __init__(self, digits: Digits, labelled: np.ndarray, labels: np.ndarray, seed: int) -> None:
        import torch

        generator = torch.Generator().manual_seed(seed)
        self._body, self._head = torch.nn.Linear(64, 64), torch.nn.Linear(64, labels.shape[1])
        parameters = [*self._body.parameters(), *self._head.parameters()]
        for p in parameters:
            torch.nn.init.normal_(p, std=0.1, generator=generator)
        optimiser = torch.optim.Adam(parameters, lr=1e-2, weight_decay=1e-4)
        x, y = torch.from_numpy(digits.pool[labelled]), torch.from_numpy(labels)
        for _ in range(100):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(self._head(torch.relu(self._body(x))), y).backward()
            optimiser.step()

    def predict(self, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities (n, K), features (n, 64))"""
        import torch

        with torch.inference_mode():
            features = torch.relu(self._body(torch.from_numpy(pixels)))
            return torch.softmax(self._head(features), 1).numpy(), features.numpy()


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def run(setting: Setting, workers: int) -> Iterator[list[Row]]:
    """The rows of every trial, each as it ends."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        waiting = [
            pool.submit(trial, contender, seed, setting) for seed in range(setting.seeds) for contender in CONTENDERS
        ]
        try:
            for done in as_completed(waiting):
                yield done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
