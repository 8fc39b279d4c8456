"""The device that is measured: whether it is there, its name, and a clock that waits for it."""

from __future__ import annotations

import os
import time

from tailor.errors import InputError, UnknownName


def check_device(device: str) -> None:
    import torch

    if device.split(":")[0] not in ("cpu", "cuda"):
        raise UnknownName("device", device, ["cpu", "cuda"])
    if device != "cpu" and not torch.cuda.is_available():
        raise InputError(f"device {device!r} was asked for, but torch finds no CUDA device here: use cpu")


def device_name(device: str) -> str:
    """In words, for a report."""
    if device == "cpu":
        return f"cpu, {os.cpu_count()} cores"
    import torch

    return torch.cuda.get_device_name(device)


def now(device: str) -> float:
    """Seconds, once all work on the device is done."""
    if device != "cpu":
        import torch

        torch.cuda.synchronize(device)
    return time.perf_counter()
