"""Images a second: training and predicting, for ResNet-18, EfficientNet-Lite0 and the probe."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tailor.capacity.device import check_device, device_name, now
from tailor.models.base import Notice
from tailor.models.cache import digest
from tailor.models.finetune import Finetune
from tailor.models.neural import NeuralModel
from tailor.models.probe import Probe
from tailor.pools.base import Pool
from tailor.task import MultiClass, Task

#: (network, pixels, batch, captured as a graph)
SETTINGS = (
    ("resnet18", 32, 50, False),
    ("resnet18", 32, 50, True),
    ("resnet18", 32, 200, False),
    ("resnet18", 32, 200, True),
    ("resnet18", 224, 50, False),
    ("resnet18", 224, 50, True),
    ("efficientnet-lite0", 64, 200, False),
    ("efficientnet-lite0", 64, 200, True),
    ("efficientnet-lite0", 128, 50, False),
    ("efficientnet-lite0", 128, 50, True),
)
#: about how many seconds each measurement runs
LONG, SHORT = 3.0, 0.1


class Noise(Pool):
    """Random bytes as pictures or numbers as vectors; only the first is ever read, the cache is
    filled beforehand.
    """

    kind = "image"

    def __init__(self, size: int, shape: tuple[int, ...]) -> None:
        self._ids = [str(i) for i in range(size)]
        self.shape = shape

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def read(self, positions: Sequence[int]) -> list[Any]:
        rng = np.random.default_rng(0)
        shape = (len(positions), *self.shape)
        rows = rng.integers(0, 256, shape, np.uint8)
        if self.kind == "image":
            return list(rows)
        return list(rows.astype(np.float32))

    def content_keys(self, positions: Sequence[int]) -> list[str]:
        return [f"noise {position}" for position in positions]


class NoiseVectors(Noise):
    kind = "vector"


def measure_training(device: str = "cpu", quick: bool = False) -> Iterator[dict[str, Any]]:
    """One row a setting, as soon as it is measured: examples a second in training and in
    predicting.

    The pictures are random bytes, decoded already. On a GPU the time to capture the graph is given
    apart; predicting is measured with the results left on the device, and to the host's memory.
    `quick` is for tests: small and short.
    """
    from tailor.models.inputs import find_device

    device = find_device(device)
    check_device(device)
    cuda = device.startswith("cuda")
    for network, pixels, gpu_batch, graph in SETTINGS:
        if graph and not cuda:
            continue
        if quick and (pixels, gpu_batch) not in ((32, 50), (64, 200)):
            continue
        if quick:
            batch = 4
        elif cuda:
            batch = gpu_batch
        else:
            batch = 10 if pixels > 64 else 50
        size = _pool_size(pixels, batch, cuda, quick)
        pool = Noise(size, (pixels, pixels, 3))
        options = {
            "network": network,
            "size": pixels,
            "batch": batch,
            "graph": graph,
        }
        yield {
            "model": network,
            "pixels": pixels,
            "batch": batch,
            **_measure(Finetune, pool, device, quick, options),
        }
    vectors = NoiseVectors(2_000 if quick else 50_000, (1280,))
    batch = min(1024, len(vectors))
    yield {
        "model": "probe",
        "features": 1280,
        "batch": batch,
        **_measure(Probe, vectors, device, quick, {}),
    }


def _measure(
    kind: type[Finetune | Probe],
    pool: Noise,
    device: str,
    quick: bool,
    options: dict[str, Any],
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tailor-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        model = kind(
            MultiClass(10),
            pool,
            device=device,
            cache=folder,
            **options,
        )
        _fill(model, pool)
        return _speeds(model, device, quick)


def _pool_size(pixels: int, batch: int, cuda: bool, quick: bool) -> int:
    if quick:
        return 2 * batch
    if pixels > 64:
        return 4_000 if cuda else 40
    if not cuda:
        return 2_000
    return 200_000 if pixels <= 32 else 50_000


def _fill(model: NeuralModel, pool: Noise) -> None:
    """Rows straight into the model's cache, as if every entry had been read."""
    values_a_row = int(np.prod(pool.shape))
    step = max(1, 2**26 // values_a_row)
    for start in range(0, len(pool), step):
        end = min(start + step, len(pool))
        positions = range(start, end)
        rows = np.stack(pool.read(positions))
        keys = [digest(key) for key in pool.content_keys(positions)]
        model.source.cache.append(keys, rows)
    model.prepare()


def _speeds(model: NeuralModel, device: str, quick: bool) -> dict[str, Any]:
    import torch

    from tailor.models.losses import make_loss
    from tailor.models.network_predictor import NetworkPredictor
    from tailor.models.networks import place
    from tailor.models.trainer import train

    seconds = SHORT if quick else LONG
    everything = np.arange(len(model.source.rows))
    some = everything[: min(len(everything), 5_000)]
    task = model.task
    source = model.source
    targets = _targets(task, len(some))
    assert source.shape is not None
    generator = torch.Generator().manual_seed(0)
    net = place(model.new_network(generator, source.shape), device)

    def run(steps: int) -> tuple[float, bool]:
        recipe = replace(model.recipe, steps=steps)
        start = now(device)
        graph = train(
            net,
            source,
            some,
            targets,
            make_loss(task, None),
            recipe,
            seed=0,
            device=device,
        )
        return now(device) - start, graph

    if device == "cpu":
        short = 2
        trial = 2
        most = 4 if quick else 50
    else:
        short = 11  # a graph is not captured for ten steps or fewer
        trial = 200
        most = 5_000
    first, _ = run(short)  # what is done once: moving the pictures, cuDNN's choices
    few, _ = run(short)
    some_more, _ = run(short + trial)
    # On a busy machine a step may seem to take no time.
    a_step = max((some_more - few) / trial, 1e-4)
    many = int(np.clip(seconds / a_step, trial, most))
    few_again, _ = run(short)
    few = min(few_again, few)
    long, graph = run(short + many)
    batch = max(2, min(model.recipe.batch, len(some)))
    predictor = NetworkPredictor(net, task, source, device)

    def predict(to_host: bool) -> float:
        start = now(device)
        done = 0
        while done == 0 or now(device) - start < seconds:
            for part, logits, features in predictor.outputs(everything):
                done += part.stop - part.start
                if to_host:
                    logits.cpu(), features.cpu()
                if device == "cpu" and time.perf_counter() - start > seconds:
                    break
        return done / (now(device) - start)

    predict(False)  # what is done once is not measured
    # What is done once is taken off, as far as the clock allows.
    training_seconds = max(long / 10, long - few)
    return {
        "loop": "graph" if graph else "plain",
        "train_per_second": _rounded(many * batch / training_seconds),
        "predict_per_second": _rounded(predict(False)),
        "predict_to_host_per_second": _rounded(predict(True)),
        "start_seconds": round(few, 3),
        "first_start_seconds": round(first, 3),
        "device": device_name(device),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }


def _targets(task: Task, size: int) -> np.ndarray:
    classes = np.arange(size) % task.size
    return np.eye(task.size, dtype=np.float32)[classes]


def _rounded(rate: float) -> float:
    """A rate as it is published: whole where it is large, never 0 where it is small."""
    if rate >= 10:
        return round(rate)
    return float(f"{rate:.3g}")
