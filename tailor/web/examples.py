"""Examples as the page shows them: found by id in the pool, never by path; pictures are encoded
anew.
"""

from __future__ import annotations

import io
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailor.pools.base import Pool, Unreadable
from tailor.pools.image_decoding import decode_image

#: characters of a text, and values of a vector, that are shown
LONGEST_TEXT, MOST_VALUES = 20_000, 32
LOSSLESS = 256  # pixels a side up to which a picture is sent as PNG
MEMORY = 64 * 1024 * 1024  # bytes of encoded pictures kept
# seconds between two looks for entries that are new in the pool; longer where looking takes long
LOOK_AGAIN = 5.0


@dataclass(frozen=True)
class Picture:
    content: bytes
    kind: str  # of the content, as HTTP names it


class Examples:
    """The pool, read for the eye. Safe to use from several threads."""

    def __init__(self, pool: Pool, memory: int = MEMORY) -> None:
        self.pool = pool
        self.kind = pool.kind
        self._memory = memory
        self._place: dict[str, int] = {}
        self._looked: float | None = None  # when the pool was last listed, and how long that took
        self._took = 0.0
        self._finding = threading.Lock()
        self._reading = threading.Lock()
        self._caching = threading.Lock()
        self._cache: OrderedDict[tuple[str, int], Picture] = OrderedDict()
        self._cached = 0

    def shown(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """For each id what a page needs to show it: a text, some values, or the mere fact that it
        is a picture.
        """
        if self.kind == "image":
            return [{"kind": "image"}] * len(ids)
        places = [self._position(one) for one in ids]
        with self._reading:
            read = iter(self.pool.read([place for place in places if place is not None]))
        return [self._shown(None if place is None else next(read)) for place in places]

    def _shown(self, example: Any) -> dict[str, Any]:
        if example is None or isinstance(example, Unreadable):
            return {
                "kind": "unreadable",
                "reason": "not in the pool any more" if example is None else example.reason,
            }
        if self.kind == "text":
            text = (
                example[:LONGEST_TEXT].encode("utf-8", "replace").decode()
            )  # halves of surrogate pairs can't be sent
            return {"kind": "text", "text": text, "length": len(example)}
        values = [round(float(v), 4) for v in example[:MOST_VALUES]]
        return {"kind": "vector", "values": values, "length": len(example)}

    def picture(self, one: str, side: int) -> Picture | Unreadable | None:
        """The picture with its longer side at most `side`; None for an id that is not in the pool.

        What is sent was decoded and encoded here, so nothing but pixels gets through: no script in
        an SVG, no HTML under a picture's name, no place in the EXIF.
        """
        if self.kind != "image":
            return None
        if known := self.cached(one, side):
            return known
        example = self._read(one, side)
        if example is None or isinstance(example, Unreadable):
            return example
        made = _encode(example, side)
        with self._caching:
            before = self._cache.pop((one, side), None)
            self._cache[one, side] = made
            self._cached += len(made.content) - (len(before.content) if before else 0)
            while self._cached > self._memory and len(self._cache) > 1:
                _, oldest = self._cache.popitem(last=False)
                self._cached -= len(oldest.content)
        return made

    def cached(self, one: str, side: int) -> Picture | None:
        """As picture(), but at once: only what was encoded before."""
        with self._caching:
            if (one, side) in self._cache:
                self._cache.move_to_end((one, side))
            return self._cache.get((one, side))

    def _read(self, one: str, side: int) -> Any:
        position = self._position(one)
        if position is None:
            return None
        try:
            file = self.pool.file(position)
        except FileNotFoundError:
            return Unreadable("missing")
        if file is not None:  # of its own: many at once, and no larger than needed
            sides = [s for s in (side, self.pool.max_side) if s]
            picture = decode_image(file, min(sides, default=None), checkered=True)
            if os.path.exists(
                file
            ):  # else a small cache has let this copy go, maybe before it was read
                return picture
        with self._reading:
            return self.pool.read([position])[0]

    def _position(self, one: str) -> int | None:
        place = self._place.get(one)
        if place is not None or not self._may_look():
            return place
        with self._finding:  # it may be new
            if self._may_look():
                began = time.monotonic()
                with self._reading:
                    if self._place:
                        self.pool.refresh()
                    self._place = {known: at for at, known in enumerate(self.pool.ids)}
                self._looked = time.monotonic()
                self._took = self._looked - began
        return self._place.get(one)

    def _may_look(self) -> bool:
        """Whoever sends ids that don't exist must not have a million files listed all the time."""
        return self._looked is None or time.monotonic() >= self._looked + LOOK_AGAIN * max(
            1.0, 4 * self._took
        )


def _encode(pixels: np.ndarray, side: int) -> Picture:
    from PIL import Image

    image = Image.fromarray(pixels)
    if max(image.size) > side:
        image.thumbnail((side, side), reducing_gap=2.0)
    buffer = io.BytesIO()
    if max(image.size) <= LOSSLESS:
        image.save(buffer, "PNG", compress_level=1)
        return Picture(buffer.getvalue(), "image/png")
    image.save(buffer, "JPEG", quality=90)
    return Picture(buffer.getvalue(), "image/jpeg")
