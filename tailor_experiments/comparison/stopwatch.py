"""Where a trial's time and memory go."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tailor.capacity.peak_memory import peak_mib, reset_peak
from tailor.models.base import Model, ProgressCallback
from tailor.pools.base import Pool
from tailor.run.model_runner import ModelRunner
from tailor.task import Task

#: the stages of a model's work
MODEL_STAGES = ("train", "predict", "prepare")


class Stopwatch:
    """Seconds by stage, until they are cleared."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds what is spent in here to a stage; a stage within another counts for both."""
        started = time.perf_counter()
        try:
            yield
        finally:
            _wait_for_gpu()
            # In a finally: what a failed stage took counts too.
            self.seconds[name] += time.perf_counter() - started  # type: ignore[assignment]


class TimedModelRunner(ModelRunner):
    """The model seen from a run, with the time that it takes by MODEL_STAGES."""

    def __init__(
        self,
        watch: Stopwatch,
        pool: Pool,
        model: Model,
        progress: ProgressCallback,
    ) -> None:
        super().__init__(pool, model, progress)
        self._watch = watch

    def prepare(self) -> dict[int, str]:
        with self._watch.stage("prepare"):
            return super().prepare()

    def fit(self, positions: np.ndarray, labels: np.ndarray, seed: int) -> None:
        with self._watch.stage("train"):
            super().fit(positions, labels, seed)

    def predict(self, task: Task, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with self._watch.stage("predict"):
            return super().predict(task, positions)


def _wait_for_gpu() -> None:
    """A GPU works on after a call has returned: its seconds belong to the stage that asked for
    them.
    """
    import torch

    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def peaks() -> dict[str, int]:
    """The most memory that was taken since the last call: columns of a row."""
    columns = {"peak_mib": round(peak_mib()), **_device_peaks()}
    reset_peak()
    return columns


def _device_peaks() -> dict[str, int]:
    """Of a GPU that has been used."""
    import torch

    # Asking an unused GPU would start it, which takes seconds and memory.
    if not torch.cuda.is_initialized():
        return {}
    peak_bytes = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return {"device_peak_mib": round(peak_bytes / 2**20)}
