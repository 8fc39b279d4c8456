"""Pictures decoded once to one size, as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tailor.errors import InputError
from tailor.models.source import Source
from tailor.pools.base import Pool, Unreadable

if TYPE_CHECKING:
    import torch

#: pictures of at most this many pixels a side count as small
SMALL = 64
#: entries of a pool among which the first picture is looked for
SEARCHED = 100


def picture_problem(example: Any) -> str | None:
    """Why this is no picture (H, W, 3) of bytes, if it isn't."""
    array = np.asarray(example)
    has_channels = array.ndim == 3 and array.shape[2] == 3
    has_bytes = array.dtype == np.uint8 and array.size > 0
    if has_channels and has_bytes:
        return None
    return f"not an RGB picture of bytes (H, W, 3): {array.dtype} {array.shape}"


def resize(picture: np.ndarray, size: int) -> np.ndarray:
    """(H, W, 3) uint8 -> (size, size, 3) uint8. The whole picture is kept, its sides may be
    stretched.
    """
    if picture.shape[:2] == (size, size):
        return picture
    import torch
    from torch.nn import functional as F

    # A copy: a picture that was decoded may be read-only, which torch warns of.
    channels_last = torch.from_numpy(np.array(picture))
    channels_first = channels_last.permute(2, 0, 1)
    small = F.interpolate(
        channels_first[None],
        (size, size),
        mode="bilinear",
        antialias=True,
    )
    resized = small[0].permute(1, 2, 0)
    return resized.contiguous().numpy()


def first_picture(pool: Pool) -> np.ndarray | None:
    """The first of the first hundred entries that can be read, (H, W, 3) uint8."""
    count = min(len(pool), SEARCHED)
    for position in range(count):
        (example,) = pool.read([position])
        if isinstance(example, Unreadable):
            continue
        if picture_problem(example) is None:
            return np.asarray(example)
    return None


def natural_size(pool: Pool, small: int | None, large: int) -> int:
    """Pixels a side that suit a pool, by its first picture: `large`, or for small pictures `small`
    (their own size where that is None).
    """
    picture = first_picture(pool)
    if picture is None:
        return large
    longest_side = max(picture.shape[:2])
    if longest_side > SMALL:
        return large
    if small is None:
        return longest_side
    return small


class PixelSource(Source):
    """Bytes (size, size, 3) for each picture; served as (n, 3, size, size) uint8, channels last in
    memory.
    """

    batch_numbers: ClassVar[dict[str, int]] = {"cpu": 2**20, "cuda": 2**25}

    def __init__(
        self,
        pool: Pool,
        size: int,
        cache: Path | None,
        device: str,
    ) -> None:
        if pool.kind != "image":
            raise InputError(
                f"this model needs a pool of images, not of kind {pool.kind!r}: the probe takes "
                "any kind"
            )
        if size < 1:
            raise InputError(f"size is {size}: at least 1 pixel is needed")
        super().__init__(
            pool,
            f"pixels {size} bilinear",
            "uint8",
            cache,
            device,
        )
        self.size = size

    def problem(self, example: Any) -> str | None:
        return picture_problem(example)

    def encode(self, examples: Sequence[Any]) -> np.ndarray:
        pictures = []
        for example in examples:
            picture = np.asarray(example)
            pictures.append(resize(picture, self.size))
        return np.stack(pictures)

    def arrange(self, rows: torch.Tensor) -> torch.Tensor:
        return rows.permute(0, 3, 1, 2)
