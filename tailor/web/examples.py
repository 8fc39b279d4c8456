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

LONGEST_TEXT = 20_000  # characters that are shown
MOST_VALUES = 32  # of a vector that are shown
LOSSLESS = 256  # pixels a side up to which a picture is sent as PNG
MEMORY = 64 * 1024 * 1024  # bytes of encoded pictures kept
# seconds between two looks for entries that are new in the pool; longer where looking takes long
LOOK_AGAIN = 5.0


@dataclass(frozen=True)
class EncodedPicture:
    """An encoded picture."""

    content: bytes
    media_type: str


class PictureCache:
    """The pictures that were encoded last, by id and side. Safe to use from several threads."""

    def __init__(self, memory: int) -> None:
        """memory: bytes of encoded pictures at the most"""
        self._memory = memory
        self._used = 0
        self._lock = threading.Lock()
        self._pictures: OrderedDict[tuple[str, int], EncodedPicture] = OrderedDict()

    def get(self, id: str, side: int) -> EncodedPicture | None:
        key = (id, side)
        with self._lock:
            if key in self._pictures:
                self._pictures.move_to_end(key)
            return self._pictures.get(key)

    def put(self, id: str, side: int, picture: EncodedPicture) -> None:
        key = (id, side)
        with self._lock:
            before = self._pictures.pop(key, None)
            if before is not None:
                self._used -= len(before.content)
            self._pictures[key] = picture
            self._used += len(picture.content)
            while self._used > self._memory and len(self._pictures) > 1:
                _, oldest = self._pictures.popitem(last=False)
                self._used -= len(oldest.content)


class Examples:
    """Examples of a pool in the form in which a page shows them. Safe to use from several
    threads.
    """

    def __init__(self, pool: Pool, memory: int = MEMORY) -> None:
        """memory: bytes of encoded pictures that are kept"""
        self.pool = pool
        self.kind = pool.kind
        self._positions: dict[str, int] = {}
        self._listed_at: float | None = None  # when the pool was last listed
        self._listing_time = 0.0  # seconds that it took
        self._finding = threading.Lock()
        self._reading = threading.Lock()
        self._cache = PictureCache(memory)

    def shown(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """For each id what a page needs to show it: a text, some values, or the mere fact that it
        is a picture.
        """
        if self.kind == "image":
            return [{"kind": "image"}] * len(ids)
        positions = [self._position(id) for id in ids]
        present = [position for position in positions if position is not None]
        with self._reading:
            examples = dict(zip(present, self.pool.read(present)))
        contents = []
        for position in positions:
            if position is None:
                content = _unreadable("not in the pool any more")
            else:
                content = self._shown(examples[position])
            contents.append(content)
        return contents

    def _shown(self, example: Any) -> dict[str, Any]:
        if isinstance(example, Unreadable):
            return _unreadable(example.reason)
        if self.kind == "text":
            # Halves of surrogate pairs can't be sent.
            sendable = example[:LONGEST_TEXT].encode("utf-8", "replace")
            return {
                "kind": "text",
                "text": sendable.decode(),
                "length": len(example),
            }
        values = []
        for value in example[:MOST_VALUES]:
            values.append(round(float(value), 4))
        return {
            "kind": "vector",
            "values": values,
            "length": len(example),
        }

    def picture(self, id: str, side: int) -> EncodedPicture | Unreadable | None:
        """The picture with its longer side at most `side`; None for an id that is not in the pool.

        What is sent was decoded and encoded here, so nothing but pixels gets through: no script in
        an SVG, no HTML under a picture's name, no place in the EXIF.
        """
        if self.kind != "image":
            return None
        cached = self.cached(id, side)
        if cached is not None:
            return cached
        pixels = self._read_pixels(id, side)
        if pixels is None or isinstance(pixels, Unreadable):
            return pixels
        picture = _encode(pixels, side)
        self._cache.put(id, side, picture)
        return picture

    def cached(self, id: str, side: int) -> EncodedPicture | None:
        """As picture(), but at once: only what was encoded before."""
        return self._cache.get(id, side)

    def _read_pixels(self, id: str, side: int) -> Any:
        position = self._position(id)
        if position is None:
            return None
        try:
            file = self.pool.file(position)
        except FileNotFoundError:
            return Unreadable("missing")
        if file is not None:
            # A file of its own is read without the lock: many at once, and no larger than needed.
            if self.pool.max_side is not None:
                side = min(side, self.pool.max_side)
            pixels = decode_image(file, side, checkered=True)
            # Else a small cache has let this copy go, maybe before it was read.
            if os.path.exists(file):
                return pixels
        with self._reading:
            (example,) = self.pool.read([position])
            return example

    def _position(self, id: str) -> int | None:
        position = self._positions.get(id)
        if position is not None or not self._may_list():
            return position
        with self._finding:  # it may be new
            if self._may_list():
                self._list_pool()
        return self._positions.get(id)

    def _list_pool(self) -> None:
        started = time.monotonic()
        with self._reading:
            if self._positions:
                self.pool.refresh()
            self._positions = {id: position for position, id in enumerate(self.pool.ids)}
        self._listed_at = time.monotonic()
        self._listing_time = self._listed_at - started

    def _may_list(self) -> bool:
        """Whoever sends ids that don't exist must not have a million files listed all the time."""
        if self._listed_at is None:
            return True
        slowness = max(1.0, 4 * self._listing_time)
        pause = LOOK_AGAIN * slowness
        return time.monotonic() >= self._listed_at + pause


def _unreadable(reason: str) -> dict[str, Any]:
    return {"kind": "unreadable", "reason": reason}


def _encode(pixels: np.ndarray, side: int) -> EncodedPicture:
    from PIL import Image

    image = Image.fromarray(pixels)
    if max(image.size) > side:
        image.thumbnail((side, side), reducing_gap=2.0)
    buffer = io.BytesIO()
    if max(image.size) <= LOSSLESS:
        image.save(buffer, "PNG", compress_level=1)
        return EncodedPicture(buffer.getvalue(), "image/png")
    image.save(buffer, "JPEG", quality=90)
    return EncodedPicture(buffer.getvalue(), "image/jpeg")
