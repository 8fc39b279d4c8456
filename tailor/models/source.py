"""What a network is fed with: rows of a cache, one a pool entry, on the host or on the device."""

from __future__ import annotations

import math
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tailor.models.base import ProgressCallback, quiet
from tailor.models.cache import RowCache, digest
from tailor.pools.base import Pool, Unreadable

if TYPE_CHECKING:
    import torch

#: entries that are looked up in the cache at a time
CHUNK = 512
#: pictures that are read and made rows of together, where a source has no reason for another number
PIECE = 64
#: the share of a GPU's free memory that rows may take
RESIDENT_SHARE = 0.6
#: bytes of rows that go to a GPU at a time
TRANSFER = 2**28
#: a training set of at most this many bytes is held in memory
HELD = 2**29
#: the fewest and the most rows that are predicted at once
SMALLEST_BATCH = 16
LARGEST_BATCH = 16384
#: what progress bars call it
READING = "reading the pool"


class Source(ABC):
    """Rows for a pool's entries, computed once, kept in a cache, and served by position.

    fingerprint  all that a row depends on besides its entry
    dtype        of the rows in the cache
    cache        a folder; without one, a temporary folder that goes when the source goes
    device       where batches are wanted; on a GPU all rows are kept there if they fit

    rows         (N,) int64: the cache's row of each position, -1 where it can't be read
    problems     why a position can't be read, for each that can't
    """

    #: numbers in a batch of rows that a CPU or a GPU takes at once when predicting
    batch_numbers: ClassVar[dict[str, int]] = {"cpu": 2**24, "cuda": 2**26}

    def __init__(
        self,
        pool: Pool,
        fingerprint: str,
        dtype: str,
        cache: Path | None,
        device: str,
    ) -> None:
        self.pool = pool
        self.device = device
        self.fingerprint = fingerprint
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if cache is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="tailor-")
            cache = Path(self._temporary.name)
        self.cache = RowCache(cache, fingerprint, dtype)
        self.rows = np.empty(0, np.int64)
        self.problems: dict[int, str] = {}
        self._data: np.ndarray | None = None
        self._device_data: torch.Tensor | None = None
        self._device_rows: torch.Tensor | None = None

    @property
    def piece(self) -> int:
        """Entries that are read, made rows of and kept together. Between two pieces progress is
        told, and whoever waits for it may give up; what was kept stays.
        """
        return PIECE

    @abstractmethod
    def problem(self, example: Any) -> str | None:
        """Why this example can't be used, if it can't."""

    @abstractmethod
    def encode(self, examples: Sequence[Any]) -> np.ndarray:
        """Good examples (n) -> their rows (n, *shape)."""

    def arrange(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows (n, *shape) as they lie in the cache -> as the network takes them. A view, no
        copy.
        """
        return rows

    def prepare(self, progress: ProgressCallback = quiet) -> dict[int, str]:
        """Compute what is new -> every position that can't be read, with the reason."""
        total = len(self.pool)
        parts = [self.rows]
        last_told = -1

        def tell(done: int) -> None:
            nonlocal last_told
            if done > last_told:
                last_told = done
                progress(done, total, READING)

        try:
            for start in range(len(self.rows), total, CHUNK):
                # Before the first piece too, which may be long in coming: a network is loaded.
                tell(start)
                positions = range(start, min(start + CHUNK, total))
                parts.append(self.compute(positions, tell))
                tell(positions.stop)
        finally:  # what was done before an interruption stays done
            if len(parts) > 1:
                self.rows = np.concatenate(parts)
                self._data = None
                self._device_data = None
                self._device_rows = None
        return dict(self.problems)

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
        numbers = self.batch_numbers[self.device.partition(":")[0]]
        row_numbers = math.prod(self.shape or (1,))
        rows = numbers // max(1, row_numbers)
        return min(max(rows, SMALLEST_BATCH), LARGEST_BATCH)

    def resident(self) -> bool:
        """Bring all rows to the GPU, if there is one and they fit; whether they are there."""
        import torch

        if self._device_data is not None:
            return True
        if not self.device.startswith("cuda") or len(self.data) == 0:
            return False
        free, _ = torch.cuda.mem_get_info(self.device)
        if self.data.nbytes > RESIDENT_SHARE * free:
            return False
        device_data = torch.empty(
            self.data.shape,
            dtype=_torch_dtype(self.data),
            device=self.device,
        )
        row_bytes = max(1, self.data[0].nbytes)
        step = max(1, TRANSFER // row_bytes)
        for start in range(0, len(device_data), step):
            part = slice(start, start + step)
            host_rows = torch.from_numpy(np.array(self.data[part]))
            device_data[part].copy_(host_rows)
        self._device_data = device_data
        self._device_rows = torch.from_numpy(self.rows).to(self.device)
        return True

    def take(self, positions: torch.Tensor) -> torch.Tensor:
        """positions (n,) int64 on the device, all readable -> a batch (n, ...) on the device."""
        import torch

        if self._device_data is not None and self._device_rows is not None:
            device_rows = self._device_rows[positions]
            return self.arrange(self._device_data.index_select(0, device_rows))
        host_rows = self.take_host(positions.cpu().numpy())
        return self.arrange(torch.from_numpy(host_rows).to(self.device))

    def loader(self, positions: np.ndarray) -> tuple[Callable[[torch.Tensor], torch.Tensor], bool]:
        """How training reads its examples at positions (n,), all readable.

        Where the pool's rows are not on the device, those of a small training set are brought there
        once.

        Returns a function, index (m,) into the positions -> a batch (m, ...) on the device; and
        whether all it reads is on the device.
        """
        import torch

        contiguous = np.ascontiguousarray(positions, np.int64)
        device_positions = torch.from_numpy(contiguous).to(self.device)
        training_bytes = len(positions) * self.cache.row_bytes
        if not self.resident() and training_bytes <= HELD:
            host_rows = self.take_host(positions)
            block = torch.from_numpy(host_rows).to(self.device)
            return lambda index: self.arrange(block.index_select(0, index)), True
        on_device = self._device_data is not None
        return lambda index: self.take(device_positions[index]), on_device

    def take_host(self, positions: np.ndarray) -> np.ndarray:
        """positions (n,) int64, all readable -> (n, *shape), a copy in memory."""
        rows = self.rows[positions]
        # Rows that follow each other are one read of the file.
        if len(rows) > 0:
            first = rows[0]
            stop = rows[-1] + 1
            if stop - first == len(rows) and (np.diff(rows) == 1).all():
                return np.array(self.data[first:stop])
        return np.asarray(self.data[rows])

    def compute(
        self,
        positions: range,
        step: Callable[[int], object] = lambda done: None,
    ) -> np.ndarray:
        """(n,) the cache's row of each of these entries, computed where it isn't there yet; -1
        where it can't be.

        step hears after each piece up to which position all is done.
        """
        content_keys = self.pool.content_keys(positions)
        if content_keys is None:
            keys = self._compute_unkeyed(positions, step)
        else:
            keys = [digest(key) for key in content_keys]
            is_missing = self.cache.find(keys) < 0
            missing = positions.start + np.flatnonzero(is_missing)
            for piece in _pieces(missing.tolist(), self.piece):
                piece_keys = [keys[position - positions.start] for position in piece]
                self._keep(piece, piece_keys, self.pool.read(piece))
                step(piece[-1] + 1)
        rows = self.cache.find(keys)
        for position in self.problems:
            if positions.start <= position < positions.stop:
                rows[position - positions.start] = -1
        return rows

    def _compute_unkeyed(self, positions: range, step: Callable[[int], object]) -> list[bytes]:
        """Compute entries of a pool that gives no keys: what one holds is known only once it has
        been read. -> their keys.
        """
        keys: list[bytes] = []
        for piece in _pieces(positions, self.piece):
            examples = self.pool.read(piece)
            piece_keys = [_content_key(example) for example in examples]
            is_missing = self.cache.find(piece_keys) < 0
            missing = np.flatnonzero(is_missing).tolist()
            self._keep(
                [piece[row] for row in missing],
                [piece_keys[row] for row in missing],
                [examples[row] for row in missing],
            )
            keys += piece_keys
            step(piece[-1] + 1)
        return keys

    def _keep(
        self,
        positions: Sequence[int],
        keys: Sequence[bytes],
        examples: Sequence[Any],
    ) -> None:
        """Rows of these entries into the cache; a problem for each that can't be used."""
        good_keys = []
        good_examples = []
        for position, key, example in zip(positions, keys, examples, strict=True):
            if isinstance(example, Unreadable):
                reason: str | None = example.reason
            else:
                reason = self.problem(example)
            if reason is None:
                good_keys.append(key)
                good_examples.append(example)
            else:
                self.problems[position] = reason
        if good_keys:
            self.cache.append(good_keys, self.encode(good_examples))


def _pieces(positions: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(positions), size):
        yield positions[start : start + size]


def _content_key(example: Any) -> bytes:
    if isinstance(example, Unreadable):
        return b""
    if isinstance(example, str):
        return digest("text:" + example)
    array = np.ascontiguousarray(example)
    header = f"{array.dtype.str}{array.shape}:".encode()
    return digest(header + array.tobytes())


def _torch_dtype(array: np.ndarray) -> torch.dtype:
    import torch

    return torch.from_numpy(np.empty(0, array.dtype)).dtype
