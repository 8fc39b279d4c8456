"""What a network is fed with: rows of a cache, one a pool entry, on the host or on the device."""

from __future__ import annotations

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
RESIDENT = 0.6
#: a training set of at most this many bytes is held in memory
HELD = 2**29
#: what progress bars call it
READING = "reading the pool"


class Source(ABC):
    """Rows for a pool's entries, computed once, kept in a cache, and served by position.

    cache   a folder; without one, a temporary folder that goes when the source goes
    device  where batches are wanted; on a GPU all rows are kept there if they fit
    """

    #: numbers in a batch of rows that a CPU or a GPU takes at once when predicting
    batch_numbers: ClassVar[dict[str, int]] = {"cpu": 2**24, "cuda": 2**26}

    @property
    def piece(self) -> int:
        """Entries that are read, made rows of and kept together. Between two pieces progress is
        told, and whoever waits for it may give up; what was kept stays.
        """
        return PIECE

    def __init__(
        self, pool: Pool, fingerprint: str, dtype: str, cache: Path | None, device: str
    ) -> None:
        self.pool = pool
        self.device = device
        self.fingerprint = fingerprint
        self._temporary = tempfile.TemporaryDirectory(prefix="tailor-") if cache is None else None
        folder = Path(self._temporary.name) if self._temporary is not None else Path(cache or "")
        self.cache = RowCache(folder, fingerprint, dtype)
        self.rows = np.empty(
            0, np.int64
        )  # (N,) the cache's row of each position, -1 where it can't be read
        self.problems: dict[int, str] = {}
        self._data: np.ndarray | None = None
        self._device_data: torch.Tensor | None = None
        self._device_rows: torch.Tensor | None = None

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
        found = [self.rows]
        told = -1

        def tell(done: int) -> None:
            nonlocal told
            if done > told:
                told = done
                progress(done, total, READING)

        try:
            for start in range(len(self.rows), total, CHUNK):
                tell(
                    start
                )  # before the first piece too, which may be long in coming: a network is loaded
                positions = range(start, min(start + CHUNK, total))
                found.append(self.compute(positions, tell))
                tell(positions.stop)
        finally:  # what was done before an interruption stays done
            if len(found) > 1:
                self.rows = np.concatenate(found)
                self._data = self._device_data = self._device_rows = None
        return dict(self.problems)

    @property
    def readable(self) -> np.ndarray:
        """(N,) bool."""
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
        return int(np.clip(numbers // max(1, int(np.prod(self.shape or (1,)))), 16, 16384))

    def resident(self) -> bool:
        """Bring all rows to the GPU, if there is one and they fit; whether they are there."""
        import torch

        if self._device_data is not None:
            return True
        if not self.device.startswith("cuda") or len(self.data) == 0:
            return False
        free, _ = torch.cuda.mem_get_info(self.device)
        if self.data.nbytes > RESIDENT * free:
            return False
        there = torch.empty(self.data.shape, dtype=_dtype(self.data), device=self.device)
        step = max(1, 2**28 // max(1, self.data[0].nbytes))
        for start in range(0, len(there), step):
            part = np.array(self.data[start : start + step])
            there[start : start + len(part)].copy_(torch.from_numpy(part))
        self._device_data = there
        self._device_rows = torch.from_numpy(self.rows).to(self.device)
        return True

    def take(self, positions: torch.Tensor) -> torch.Tensor:
        """positions (n,) int64 on the device, all readable -> a batch (n, ...) on the device."""
        import torch

        if self._device_data is not None and self._device_rows is not None:
            return self.arrange(self._device_data.index_select(0, self._device_rows[positions]))
        rows = torch.from_numpy(self.take_host(positions.cpu().numpy()))
        return self.arrange(rows.to(self.device))

    def loader(self, positions: np.ndarray) -> tuple[Callable[[torch.Tensor], torch.Tensor], bool]:
        """For training on positions (n,), all readable: (index (m,) into them -> a batch, is all on
        the device).

        Where the pool's rows are not on the device, those of a small training set are brought there
        once.
        """
        import torch

        where = torch.from_numpy(np.ascontiguousarray(positions, np.int64)).to(self.device)
        if not self.resident() and len(where) * self.cache.row_bytes <= HELD:
            block = torch.from_numpy(self.take_host(positions)).to(self.device)
            return lambda index: self.arrange(block.index_select(0, index)), True
        return lambda index: self.take(where[index]), self._device_data is not None

    def take_host(self, positions: np.ndarray) -> np.ndarray:
        """positions (n,) int64, all readable -> (n, *shape), a copy in memory."""
        rows = self.rows[positions]
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            return np.array(self.data[rows[0] : rows[-1] + 1])
        return np.asarray(self.data[rows])

    def compute(
        self, positions: range, step: Callable[[int], object] = lambda done: None
    ) -> np.ndarray:
        """(n,) the cache's row of each of these entries, computed where it isn't there yet; -1
        where it can't be.

        step hears after each piece up to which position all is done.
        """
        given = self.pool.content_keys(positions)
        keys: list[bytes]
        if given is None:  # what an entry holds is known only once it has been read
            keys = []
            for piece in _pieces(positions, self.piece):
                examples = self.pool.read(piece)
                own = [_content_key(example) for example in examples]
                missing = np.flatnonzero(self.cache.find(own) < 0).tolist()
                self._keep(
                    [piece[i] for i in missing],
                    [own[i] for i in missing],
                    [examples[i] for i in missing],
                )
                keys += own
                step(piece[-1] + 1)
        else:
            keys = [digest(key) for key in given]
            missing = (positions.start + np.flatnonzero(self.cache.find(keys) < 0)).tolist()
            for piece in _pieces(missing, self.piece):
                self._keep(piece, [keys[p - positions.start] for p in piece], self.pool.read(piece))
                step(piece[-1] + 1)
        rows = self.cache.find(keys)
        bad = [p - positions.start for p in self.problems if positions.start <= p < positions.stop]
        rows[bad] = -1
        return rows

    def _keep(
        self, positions: Sequence[int], keys: Sequence[bytes], examples: Sequence[Any]
    ) -> None:
        """Rows of these entries into the cache; a problem for each that can't be used."""
        good = []
        for position, key, example in zip(positions, keys, examples, strict=True):
            reason = example.reason if isinstance(example, Unreadable) else self.problem(example)
            if reason is None:
                good.append((key, example))
            else:
                self.problems[position] = reason
        if good:
            self.cache.append(
                [key for key, _ in good], self.encode([example for _, example in good])
            )


def _pieces(positions: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (positions[start : start + size] for start in range(0, len(positions), size))


def _content_key(example: Any) -> bytes:
    if isinstance(example, Unreadable):
        return b""
    if isinstance(example, str):
        return digest("text:" + example)
    array = np.ascontiguousarray(example)
    return digest(f"{array.dtype.str}{array.shape}:".encode() + array.tobytes())


def _dtype(array: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(np.empty(0, array.dtype)).dtype
