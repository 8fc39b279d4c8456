"""Images a second: training and predicting, for ResNet-18, EfficientNet-Lite0 and the probe."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.capacity.device import check_device_present, device_name, now
from tailor.models.base import Notice
from tailor.models.cache import key_digest
from tailor.models.finetune import Finetune
from tailor.models.neural import NeuralModel
from tailor.models.probe import Probe
from tailor.task import MultiClass, Task
from tailor_experiments.speed.noise_pools import Noise, NoiseVectors

if TYPE_CHECKING:
    from tailor.models.network_predictor import NetworkPredictor

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
#: (pixels, batch) of the settings that are measured where it has to be quick
QUICK_SETTINGS = ((32, 50), (64, 200))
#: about how many seconds each measurement runs
LONG, SHORT = 3.0, 0.1
#: rows that are trained on, at most: more change nothing in how long a step takes
MOST_TRAINING_ROWS = 5_000
#: of EfficientNet-Lite0, which the probe looks at
FEATURES = 1280


def measure_training(device: str = "cpu", quick: bool = False) -> Iterator[dict[str, Any]]:
    """One row a setting, as soon as it is measured: examples a second in training and in
    predicting.

    The pictures are random bytes, decoded already. On a GPU the time to capture the graph is given
    apart; predicting is measured with the results left on the device, and to the host's memory.
    `quick` is for tests: small and short.
    """
    from tailor.models.inputs import find_device

    device = find_device(device)
    check_device_present(device)
    for network, pixels, gpu_batch, graph in _settings(device, quick):
        batch = _batch_size(
            pixels,
            gpu_batch,
            device,
            quick,
        )
        yield _measure_network(
            network,
            pixels,
            batch,
            graph,
            device,
            quick,
        )
    yield _measure_probe(device, quick)


def _settings(device: str, quick: bool) -> Iterator[tuple[str, int, int, bool]]:
    """Those of SETTINGS that are measured on this device."""
    for setting in SETTINGS:
        _, pixels, gpu_batch, graph = setting
        # A graph is a GPU's.
        if graph and not _is_gpu(device):
            continue
        if quick and (pixels, gpu_batch) not in QUICK_SETTINGS:
            continue
        yield setting


def _is_gpu(device: str) -> bool:
    return device.startswith("cuda")


def _batch_size(
    pixels: int,
    gpu_batch: int,
    device: str,
    quick: bool,
) -> int:
    if quick:
        return 4
    if _is_gpu(device):
        return gpu_batch
    # A CPU would take minutes for a step with more large pictures.
    if pixels > 64:
        return 10
    return 50


def _measure_network(
    network: str,
    pixels: int,
    batch: int,
    graph: bool,
    device: str,
    quick: bool,
) -> dict[str, Any]:
    size = _pool_size(
        pixels,
        batch,
        _is_gpu(device),
        quick,
    )
    pool = Noise(size, (pixels, pixels, 3))
    options = {
        "network": network,
        "size": pixels,
        "batch": batch,
        "graph": graph,
    }
    return {
        "model": network,
        "pixels": pixels,
        "batch": batch,
        **_measure(
            Finetune,
            pool,
            device,
            quick,
            options,
        ),
    }


def _measure_probe(device: str, quick: bool) -> dict[str, Any]:
    size = 2_000 if quick else 50_000
    # Features as a backbone would give them: the probe itself is what is measured.
    vectors = NoiseVectors(size, (FEATURES,))
    return {
        "model": "probe",
        "features": FEATURES,
        "batch": min(1024, size),
        **_measure(
            Probe,
            vectors,
            device,
            quick,
            {},
        ),
    }


def _measure(
    kind: type[Finetune | Probe],
    pool: Noise,
    device: str,
    quick: bool,
    options: dict[str, Any],
) -> dict[str, Any]:
    """The speeds of a model of this kind. options: its own."""
    with tempfile.TemporaryDirectory(prefix="tailor-") as folder, warnings.catch_warnings():
        # What a model has to say of noise is of no interest.
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


def _pool_size(
    pixels: int,
    batch: int,
    cuda: bool,
    quick: bool,
) -> int:
    """So many pictures that predicting them takes some seconds."""
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
    # About 64 MiB at a time: all of a large pool would not fit into memory twice.
    step = max(1, 2**26 // values_a_row)
    for start in range(0, len(pool), step):
        end = min(start + step, len(pool))
        _fill_range(model, pool, range(start, end))
    model.prepare()


def _fill_range(model: NeuralModel, pool: Noise, positions: range) -> None:
    rows = np.stack(pool.read(positions))
    keys = [key_digest(key) for key in pool.content_keys(positions)]
    model.source.cache.append(keys, rows)


def _speeds(model: NeuralModel, device: str, quick: bool) -> dict[str, Any]:
    import torch

    bench = _Bench(model, device, SHORT if quick else LONG)
    trained = _training_speed(bench, quick)
    bench.predict_per_second(to_host=False)  # what is done once is not measured
    return {
        **trained,
        "predict_per_second": _rounded(bench.predict_per_second(to_host=False)),
        "predict_to_host_per_second": _rounded(bench.predict_per_second(to_host=True)),
        "device": device_name(device),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }


class _Bench:
    """A model's network on a device, trained and asked for predictions against the clock.

    seconds  about how long each measurement runs
    """

    def __init__(self, model: NeuralModel, device: str, seconds: float) -> None:
        import torch

        from tailor.models.networks import place

        self.model = model
        self.device = device
        self.seconds = seconds
        self.all_rows = np.arange(len(model.source.rows))
        self.training_rows = self.all_rows[:MOST_TRAINING_ROWS]
        self.targets = _targets(model.task, len(self.training_rows))
        generator = torch.Generator().manual_seed(0)
        # Every pool of noise knows the shape of what it holds.
        assert model.source.shape is not None
        network = model.new_network(generator, model.source.shape)
        self.network = place(network, device)

    @property
    def batch(self) -> int:
        """Examples in a training step."""
        most = min(self.model.recipe.batch, len(self.training_rows))
        # Batch normalisation needs two.
        return max(2, most)

    def train(self, steps: int) -> tuple[float, bool]:
        """Seconds that so many steps take, and whether they were captured as a graph."""
        from tailor.models.losses import make_loss
        from tailor.models.trainer import train

        recipe = replace(self.model.recipe, steps=steps)
        start = now(self.device)
        is_graph = train(
            self.network,
            self.model.source,
            self.training_rows,
            self.targets,
            make_loss(self.model.task, None),
            recipe,
            seed=0,
            device=self.device,
        )
        return now(self.device) - start, is_graph

    def predict_per_second(self, *, to_host: bool) -> float:
        """Examples a second, over the whole pool as often as the time allows."""
        start = now(self.device)
        done = 0
        while done == 0 or now(self.device) - start < self.seconds:
            done += self._predict_once(start, to_host)
        return done / (now(self.device) - start)

    @cached_property
    def _predictor(self) -> NetworkPredictor:
        """Made once, when training is over: it copies the network as it is then."""
        from tailor.models.network_predictor import NetworkPredictor

        return NetworkPredictor(
            self.network,
            self.model.task,
            self.model.source,
            self.device,
        )

    def _predict_once(self, start: float, to_host: bool) -> int:
        """Predict the whole pool, on a CPU until the time is up -> how many examples."""
        done = 0
        for part, logits, features in self._predictor.outputs(self.all_rows):
            done += part.stop - part.start
            if to_host:
                logits.cpu(), features.cpu()
            # On a GPU the clock would have to wait for the work that is under way.
            if self.device == "cpu" and time.perf_counter() - start > self.seconds:
                break
        return done


def _training_speed(bench: _Bench, quick: bool) -> dict[str, Any]:
    """Columns of a row. What is done once in a training is taken off: a long one minus a short."""
    if bench.device == "cpu":
        short = 2
        trial = 2
        most = 4 if quick else 50
    else:
        short = 11  # a graph is not captured for ten steps or fewer
        trial = 200
        most = 5_000
    first, _ = bench.train(short)  # what is done once: moving the pictures, cuDNN's choices
    few, _ = bench.train(short)
    steps = _steps_to_measure(
        bench,
        few,
        short,
        trial,
        most,
    )
    few_again, _ = bench.train(short)
    few = min(few_again, few)
    long, is_graph = bench.train(short + steps)
    # As far as the clock allows.
    training_seconds = max(long / 10, long - few)
    return {
        "loop": "graph" if is_graph else "plain",
        "train_per_second": _rounded(steps * bench.batch / training_seconds),
        "start_seconds": round(few, 3),
        "first_start_seconds": round(first, 3),
    }


def _steps_to_measure(
    bench: _Bench,
    few: float,
    short: int,
    trial: int,
    most: int,
) -> int:
    """So many steps that they take about as long as a measurement should.

    few  the seconds of `short` steps
    """
    some_more, _ = bench.train(short + trial)
    # On a busy machine a step may seem to take no time.
    a_step = max((some_more - few) / trial, 1e-4)
    return int(np.clip(bench.seconds / a_step, trial, most))


def _targets(task: Task, size: int) -> np.ndarray:
    classes = np.arange(size) % task.size
    return np.eye(task.size, dtype=np.float32)[classes]


def _rounded(rate: float) -> float:
    """A rate as it is published: whole where it is large, never 0 where it is small."""
    if rate >= 10:
        return round(rate)
    return float(f"{rate:.3g}")
