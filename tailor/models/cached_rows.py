"""Rows of a cache served by position, on the host or on the device."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tailor.models.cache import RowCache

if TYPE_CHECKING:
    import torch

#: the share of a GPU's free memory that rows may take
RESIDENT_SHARE = 0.6
#: bytes of rows that go to a GPU at a time
TRANSFER = 2**28
#: a training set of at most this many bytes is held in memory
HELD = 2**29
#: the fewest and the most rows that are predicted at once
SMALLEST_BATCH = 16
LARGEST_BATCH = 16384


class CachedRows:
    """Rows of one shape, one for each position of a pool that can be read.

    fingerprint  all that a row depends on besides its entry
    dtype        of the rows in the cache
    cache        a folder; without one, a temporary folder that goes when this object goes
    device       where batches are wanted; on a GPU all rows are kept there if they fit

    rows         (N,) int64: the cache's row of each position, -1 where it can't be read
    """

    #: numbers in a batch of rows that a CPU or a GPU takes at once when predicting
    batch_numbers: ClassVar[dict[str, int]] = {"cpu": 2**24, "cuda": 2**26}

    # Opened, and brought to the device, when they are first wanted.
    _data: np.ndarray | None
    _device_data: torch.Tensor | None
    _device_rows: torch.Tensor | None

    def __init__(
        self,
        fingerprint: str,
        dtype: str,
        cache: Path | None,
        device: str,
    ) -> None:
        self.fingerprint = fingerprint
        self.device = device
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if cache is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="tailor-")
            cache = Path(self._temporary.name)
        self.cache = RowCache(cache, fingerprint, dtype)
        no_rows = np.empty(0, np.int64)
        self.set_rows(no_rows)

    def set_rows(self, rows: np.ndarray) -> None:
        """Serve these rows (N,) of the cache from now on, which may have grown."""
        self.rows = rows
        self._data = None
        self._device_data = None
        self._device_rows = None

    def arrange(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows (n, *shape) as they lie in the cache -> as the network takes them. A view, no
        copy.
        """
        return rows

    @property
    def readable(self) -> np.ndarray:
        """(N,) bool: whether each position has a row."""
        return self.rows >= 0

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of one row; None before the first could be read."""
        return self.cache.shape

    @property
    def data(self) -> np.ndarray:
        """(R, *shape) memory map of the cache."""
        if self._data is None:
            self._data = self.cache.rows
        return self._data

    @property
    def batch(self) -> int:
        """Rows that are predicted at once."""
        device_kind, _, _ = self.device.partition(":")
        numbers = self.batch_numbers[device_kind]
        row_shape = self.shape or (1,)
        row_numbers = math.prod(row_shape)
        rows = numbers // max(1, row_numbers)
        if rows < SMALLEST_BATCH:
            return SMALLEST_BATCH
        return min(rows, LARGEST_BATCH)

    def resident(self) -> bool:
        """Bring all rows to the GPU, if there is one and they fit; whether they are there."""
        import torch

        if self._device_data is not None:
            return True
        if not self.device.startswith("cuda"):
            return False
        if len(self.data) == 0:
            return False
        free, _ = torch.cuda.mem_get_info(self.device)
        room = RESIDENT_SHARE * free
        if self.data.nbytes > room:
            return False
        self._device_data = self._copy_to_device()
        self._device_rows = self._to_device(self.rows)
        return True

    def _to_device(self, array: np.ndarray) -> torch.Tensor:
        import torch

        tensor = torch.from_numpy(array)
        return tensor.to(self.device)

    def _copy_to_device(self) -> torch.Tensor:
        """(R, *shape): all rows of the cache, of which there is one at least."""
        import torch

        device_data = torch.empty(
            self.data.shape, dtype=_torch_dtype(self.data), device=self.device
        )
        # In parts: a second copy of all rows on the host may not fit.
        first_row = self.data[0]
        row_bytes = max(1, first_row.nbytes)
        step = max(1, TRANSFER // row_bytes)
        for start in range(0, len(device_data), step):
            part = slice(start, start + step)
            # The map's pages are not writable, and torch wants memory that is.
            in_memory = np.array(self.data[part])
            host_rows = torch.from_numpy(in_memory)
            device_data[part].copy_(host_rows)
        return device_data

    def take(self, positions: torch.Tensor) -> torch.Tensor:
        """positions (n,) int64 on the device, all readable -> a batch (n, ...) on the device."""
        if self._device_data is not None and self._device_rows is not None:
            device_rows = self._device_rows[positions]
            rows = self._device_data.index_select(0, device_rows)
        else:
            # The rows of the cache lie on the host, and so must what picks among them.
            host_positions = positions.cpu()
            rows = self._bring(host_positions.numpy())
        return self.arrange(rows)

    def _bring(self, positions: np.ndarray) -> torch.Tensor:
        """positions (n,) int64, all readable -> (n, *shape) on the device, read from the cache."""
        host_rows = self.take_host(positions)
        return self._to_device(host_rows)

    def loader(self, positions: np.ndarray) -> tuple[Callable[[torch.Tensor], torch.Tensor], bool]:
        """How training reads its examples at positions (n,), all readable.

        Where the pool's rows are not on the device, those of a small training set are brought there
        once.

        Returns a function, index (m,) into the positions -> a batch (m, ...) on the device; and
        whether all it reads is on the device.
        """
        training_bytes = len(positions) * self.cache.row_bytes
        is_resident = self.resident()
        if not is_resident and training_bytes <= HELD:
            block = self._bring(positions)

            def take_held(index: torch.Tensor) -> torch.Tensor:
                rows = block.index_select(0, index)
                return self.arrange(rows)

            return take_held, True
        # torch shares the memory of an array only where it lies in one piece.
        contiguous = np.ascontiguousarray(positions, np.int64)
        device_positions = self._to_device(contiguous)

        def take(index: torch.Tensor) -> torch.Tensor:
            of_batch = device_positions[index]
            return self.take(of_batch)

        return take, is_resident

    def take_host(self, positions: np.ndarray) -> np.ndarray:
        """positions (n,) int64, all readable -> (n, *shape), a copy in memory."""
        rows = self.rows[positions]
        if not _follow_each_other(rows):
            return np.asarray(self.data[rows])
        # One read of the file.
        first = rows[0]
        stop = rows[-1] + 1
        return np.array(self.data[first:stop])


def _follow_each_other(rows: np.ndarray) -> bool:
    """Whether rows (n,) are a run of numbers: False where there are none."""
    if len(rows) == 0:
        return False
    # The ends tell most of the others apart, without a pass over all.
    span = rows[-1] - rows[0]
    if span != len(rows) - 1:
        return False
    steps = np.diff(rows)
    return bool((steps == 1).all())


def _torch_dtype(array: np.ndarray) -> torch.dtype:
    import torch

    empty = np.empty(0, array.dtype)
    return torch.from_numpy(empty).dtype
