"""The device that is measured: whether it is there, its name, and a clock that waits for it."""

from __future__ import annotations

import os
import time

from tailor.errors import InputError, UnknownName


def check_device_present(device: str) -> None:
    """Raises UnknownName or InputError where there is no such device here."""
    import torch

    if device.split(":")[0] not in ("cpu", "cuda"):
        raise UnknownName("device", device, ["cpu", "cuda"])
    if device != "cpu" and not torch.cuda.is_available():
        raise InputError(
            f"device {device!r} was asked for, but torch finds no CUDA device here: use cpu"
        )


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


def reset_device_peak(device: str) -> None:
    """Forget earlier peaks."""
    if device != "cpu":
        import torch

        # Makes sure that CUDA is up: without it there is nothing to reset.
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)


def device_peak_mib(device: str) -> float:
    """The most memory that tensors took on the device since reset_device_peak(), in MiB; 0 on a
    CPU.
    """
    if device == "cpu":
        return 0
    import torch

    return float(torch.cuda.max_memory_allocated(device)) / 2**20
