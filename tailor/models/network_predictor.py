"""What a trained network says of a pool's entries."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from tailor.models.base import Prediction, ProgressCallback, quiet
from tailor.models.folding import fold_batch_norms
from tailor.models.gpu import fast_convolutions, precision
from tailor.models.losses import activate
from tailor.models.networks import Network
from tailor.models.source import Source
from tailor.models.uninformed import uninformed_probability
from tailor.task import Task

#: features of more bytes than this are handed out as a memory map
LARGE_FEATURES = 2**29
#: the fewest rows that a batch on a GPU is filled up to
SMALLEST_CUDA_BATCH = 64


class NetworkPredictor:
    """Predictions of one trained network, with its batch norms folded into its convolutions.

    The copy that predicts is made once: what is done to the network afterwards is not seen.
    """

    def __init__(
        self,
        net: Network,
        task: Task,
        source: Source,
        device: str,
    ) -> None:
        self.net = net
        self.task = task
        self.source = source
        self.device = device
        self._folded = fold_batch_norms(net)

    def predict(self, positions: np.ndarray, progress: ProgressCallback = quiet) -> Prediction:
        """Probabilities and features at positions (n,); uniform and 0 where one can't be read."""
        is_readable = self.source.readable[positions]
        readable = np.flatnonzero(is_readable)
        probs = self._uniform(len(positions))
        features = _zeros(len(positions), self.net.width)
        for part, logits, part_features in self.outputs(positions[readable]):
            rows = readable[part]
            part_probs = activate(self.task, logits)
            probs[rows] = part_probs.cpu().numpy()
            features[rows] = part_features.cpu().numpy()
            progress(part.stop, len(readable), "predicting")
        return Prediction(probs, features)

    def probabilities(
        self,
        positions: np.ndarray,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> np.ndarray:
        """(n, K) float32 at positions (n,), with dropout at this rate where it is above 0."""
        is_readable = self.source.readable[positions]
        readable = np.flatnonzero(is_readable)
        probs = self._uniform(len(positions))
        outputs = self.outputs(positions[readable], dropout, generator)
        for part, logits, _ in outputs:
            rows = readable[part]
            part_probs = activate(self.task, logits)
            probs[rows] = part_probs.cpu().numpy()
        return probs

    @torch.no_grad()
    def outputs(
        self,
        positions: np.ndarray,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """For positions (n,), all readable: (slice of them, logits (m, K), features (m, width)), in
        large batches, on the device, in single precision.
        """
        net = self._folded
        source = self.source
        cuda = self.device.startswith("cuda")
        net.eval()
        source.resident()
        contiguous = np.ascontiguousarray(positions, np.int64)
        device_positions = torch.from_numpy(contiguous).to(self.device)
        for start in range(0, len(positions), source.batch):
            stop = min(start + source.batch, len(positions))
            part = slice(start, stop)
            rows = stop - start
            batch = device_positions[part]
            if cuda:
                batch = _fill_up(batch, source.batch)
            # The context holds no longer than one batch: what runs between two batches is not ours.
            with fast_convolutions(), precision(self.device, net):
                mask = None
                if dropout:
                    mask = self._draw_mask(len(batch), dropout, generator)
                inputs = source.take(batch)
                logits, features = net(inputs, mask)
            # What a batch was filled up with is left out.
            batch_logits = logits[:rows].float()
            batch_features = features[:rows].float()
            yield part, batch_logits, batch_features

    def _draw_mask(
        self,
        rows: int,
        dropout: float,
        generator: torch.Generator | None,
    ) -> Tensor:
        """(rows, width): 0 for a feature that is dropped. The others are larger in its place, so
        that their sum is expected to stay the same.
        """
        keep_rate = 1 - dropout
        mask = torch.empty(rows, self.net.width, device=self.device)
        mask.bernoulli_(keep_rate, generator=generator)
        mask.div_(keep_rate)
        return mask

    def _uniform(self, rows: int) -> np.ndarray:
        shape = (rows, self.task.size)
        probability = uninformed_probability(self.task)
        return np.full(shape, probability, np.float32)


def fits_memory(rows: int, width: int) -> bool:
    """Whether features (rows, width) are held in memory, not in a file."""
    return rows * width * 4 <= LARGE_FEATURES


def _fill_up(positions: Tensor, most: int) -> Tensor:
    """Positions (n,) repeated up to a power of two, at most `most`: cuDNN then meets few shapes."""
    bits = (len(positions) - 1).bit_length()
    power_of_two = 1 << bits
    wanted = max(SMALLEST_CUDA_BATCH, power_of_two)
    size = min(most, wanted)
    repeats = -(-size // len(positions))
    repeated = positions.repeat(repeats)
    return repeated[:size]


def _zeros(rows: int, width: int) -> np.ndarray:
    """Zeros in memory, or a memory map of a file without a name where they are many."""
    if fits_memory(rows, width):
        return np.zeros((rows, width), np.float32)
    return np.memmap(
        tempfile.TemporaryFile(prefix="tailor-"),
        np.float32,
        "w+",
        shape=(rows, width),
    )
