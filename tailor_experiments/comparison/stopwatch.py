"""Where a trial's time and memory go."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

from tailor.capacity.peak_memory import peak_mib, reset_peak
from tailor.models import Model


class Stopwatch:
    """Seconds spent in a model's methods since the last lap; the model keeps it until release()."""

    METHODS: ClassVar[dict[str, str]] = {"train": "fit", "predict": "predict", "prepare": "prepare"}

    def __init__(self, model: Model) -> None:
        self.seconds: Counter[str] = Counter()
        self.model = model
        self.release()
        for stage, method in self.METHODS.items():
            setattr(model, method, self._timed(stage, getattr(model, method)))

    def release(self) -> None:
        for method in self.METHODS.values():
            self.model.__dict__.pop(method, None)

    def _timed(self, stage: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            with self.stage(stage):
                return method(*args, **options)

        return call

    def stage(self, name: str) -> _Lap:
        return _Lap(self.seconds, name)


class _Lap:
    def __init__(self, seconds: Counter[str], name: str) -> None:
        self.seconds = seconds
        self.name = name

    def __enter__(self) -> None:
        self.started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        _wait_for_gpu()
        self.seconds[self.name] += time.perf_counter() - self.started  # type: ignore[assignment]


def _wait_for_gpu() -> None:
    """A GPU works on after a call has returned: its seconds belong to the stage that asked for
    them.
    """
    import torch

    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def peaks() -> dict[str, int]:
    """Since the row before."""
    import torch

    found = {"peak_mib": round(peak_mib())}
    if torch.cuda.is_initialized():
        found["device_peak_mib"] = round(torch.cuda.max_memory_allocated() / 2**20)
        torch.cuda.reset_peak_memory_stats()
    reset_peak()
    return found
