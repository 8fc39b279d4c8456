"""Decoding pictures into RGB arrays. A picture that can't be decoded gives an Unreadable, never an
exception.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, TypeVar

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Unreadable

S = TypeVar("S")
T = TypeVar("T")
#: The bytes of a picture file, or its path.
EncodedImage = bytes | str | os.PathLike[str]

#: How the names of image files end.
IMAGE_SUFFIXES = frozenset(
    {
        ".jpg",
        ".jpeg",
        ".png",
        ".bmp",
        ".gif",
        ".webp",
        ".tif",
        ".tiff",
        ".ppm",
    }
)
#: Files whose pictures may be transparent; the content of a Parquet file is not known.
MAY_BE_TRANSPARENT = (
    ".png",
    ".gif",
    ".webp",
    ".tif",
    ".tiff",
    ".bmp",
    ".parquet",
)

#: The chequerboard behind transparent parts: squares along the longer side, their least width in
#: pixels, and their colour.
SQUARES = 40
SMALLEST_SQUARE = 4
SQUARE_COLOUR = (221, 221, 221, 255)

#: Threads that decode at once, where the user names no number.
THREADS = min(8, os.cpu_count() or 1)


def check_decoding(max_side: int | None, threads: int | None) -> None:
    """Raises InputError unless both are at least 1, or None."""
    if max_side is not None and max_side < 1:
        raise InputError(
            f"max_side is {max_side}: it must be at least 1 pixel, or None for the full size"
        )
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}: it must be at least 1")


def in_threads(work: Callable[[S], T], items: Sequence[S], threads: int | None) -> list[T]:
    """work(item) for each item, in order. None threads means THREADS.

    Image decoders release the interpreter lock, so threads do decode at the same time.
    """
    wanted = threads or THREADS
    # No more threads than there is work for.
    count = min(wanted, len(items))
    if count <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(count, thread_name_prefix="tailor-read") as executor:
        return list(executor.map(work, items))


def decode_image(
    source: bytes | str | os.PathLike[str] | None,
    max_side: int | None = None,
    *,
    checkered: bool = False,
) -> np.ndarray | Unreadable:
    """An encoded image, as bytes or a path -> RGB uint8 (H, W, 3), turned as its EXIF says.

    max_side   the longer side is shrunk to at most this many pixels
    checkered  transparent parts show a light chequerboard, on which people can see white drawings;
               otherwise they are white
    """
    from PIL import Image, UnidentifiedImageError

    if source is None:
        return Unreadable("missing")
    try:
        if _size(source) == 0:
            return Unreadable("empty")
        # Opened as a stream, never by name: PIL maps some TIFF files into memory by name, and
        # scrambles those with an orientation.
        with _stream(source) as stream, Image.open(stream) as image:
            # Told by the header alone: nothing has been decoded yet.
            problem = _size_problem(image)
            if problem:
                return Unreadable(problem)
            return to_rgb(image, max_side, checkered=checkered)
    except FileNotFoundError:
        return Unreadable("missing")
    except UnidentifiedImageError:
        return Unreadable("not an image")
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        return Unreadable(f"too large: {error}")
    except Exception as error:
        # Decoders raise nearly anything on broken bytes: OSError, SyntaxError, struct.error.
        reason = str(error) or type(error).__name__
        return Unreadable(f"broken image: {reason}")


def _size(source: EncodedImage) -> int:
    """In bytes."""
    if isinstance(source, bytes):
        return len(source)
    return os.stat(source).st_size


def _size_problem(image: Any) -> str:
    """What is wrong with the size of a PIL image that is not decoded yet; "" where nothing is."""
    from PIL import Image

    limit = Image.MAX_IMAGE_PIXELS
    if limit is None:
        return ""
    width, height = image.size
    pixel_count = width * height
    if pixel_count <= limit:
        return ""
    return f"too large: {width} x {height} pixels, the limit is {limit} in all"


def _stream(source: EncodedImage) -> BinaryIO:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    return open(source, "rb")


def to_rgb(image: Any, max_side: int | None = None, *, checkered: bool = False) -> np.ndarray:
    """A PIL image -> RGB uint8 (H, W, 3), its longer side at most max_side."""
    too_large = max_side is not None and max(image.size) > max_side
    box = (max_side, max_side)
    if too_large and image.format == "JPEG":
        # Before anything else is done with it: a JPEG is then decoded at 1/2, 1/4 or 1/8.
        image.thumbnail(box, reducing_gap=2.0)
        too_large = False
    turned = _turned(image)
    image = _converted(turned, checkered)
    if too_large:
        # A copy: the image may be the caller's own.
        image = image.copy()
        image.thumbnail(box, reducing_gap=2.0)
    return np.array(image, dtype=np.uint8)


def _turned(image: Any) -> Any:
    from PIL import ImageOps

    image.load()
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # the picture is whole, its EXIF is broken: shown as stored
        return image


def _converted(image: Any, checkered: bool) -> Any:
    """A PIL image of any mode -> one of mode RGB.

    PIL's own conversion cuts off values above 255, which turns 16-bit and float pictures white or
    black; those are scaled here.
    """
    holds_numbers = image.mode.startswith(("I", "F"))
    if image.has_transparency_data and not holds_numbers:
        transparent = image.convert("RGBA")
        return _on_background(transparent, checkered)
    if image.mode == "RGB":
        return image
    if not holds_numbers:
        return image.convert("RGB")
    return _scaled(image)


def _scaled(image: Any) -> Any:
    """A PIL image of 16-bit, 32-bit or float values -> one of mode RGB."""
    from PIL import Image

    stored = np.asarray(image, dtype=np.float64)
    values = np.nan_to_num(stored)
    largest = values.max(initial=0)
    holds_integers = image.mode.startswith("I")
    if holds_integers:
        if largest > 255:
            # 257 takes the largest 16-bit value, 65535, to 255.
            values = values / 257
    elif largest <= 1:
        values = values * 255
    rounded = np.rint(values)
    in_range = np.clip(rounded, 0, 255)
    grey_levels = in_range.astype(np.uint8)
    grey = Image.fromarray(grey_levels)
    return grey.convert("RGB")


def _on_background(image: Any, checkered: bool) -> Any:
    """An RGBA image -> RGB, laid on white or on a chequerboard."""
    from PIL import Image

    background = Image.new("RGBA", image.size, "white")
    if checkered:
        is_dark = _dark_squares(image.height, image.width)
        mask = Image.fromarray(is_dark)
        background.paste(SQUARE_COLOUR, mask=mask)
    composite = Image.alpha_composite(background, image)
    return composite.convert("RGB")


def _dark_squares(height: int, width: int) -> np.ndarray:
    """(H, W) bool: where a chequerboard of this size is dark."""
    longer_side = max(height, width)
    square_side = max(SMALLEST_SQUARE, longer_side // SQUARES)
    rows = np.arange(height) // square_side
    columns = np.arange(width) // square_side
    # Squares alternate along every row and every column.
    diagonals = rows[:, None] + columns[None, :]
    is_dark: np.ndarray = diagonals % 2 == 1
    return is_dark


def decoding_key(name: str) -> str:
    """What the content key of an image in this file says of how it is decoded.

    It is empty for files that can't be transparent, so that features cached before transparency was
    decided on stay valid.
    """
    if name.lower().endswith(MAY_BE_TRANSPARENT):
        return "|on white"
    return ""


def pixels(array: np.ndarray) -> np.ndarray | Unreadable:
    """(H, W), (H, W, 1 or 3) or (1 or 3, H, W), uint8 or floats from 0 to 1 -> RGB uint8 (H, W, 3).

    Unreadable for any other shape, dtype or range.
    """
    if array.size == 0:
        return Unreadable("empty")
    if array.dtype == np.uint8:
        return _with_three_channels(array)
    if not np.issubdtype(array.dtype, np.floating):
        return Unreadable(f"image of dtype {array.dtype}: give uint8, or floats from 0 to 1")
    low = float(array.min())
    high = float(array.max())
    # Not the opposite of "outside": NaN is neither.
    is_in_range = low >= 0 and high <= 1
    if not is_in_range:
        return Unreadable(
            f"image with values from {low:g} to {high:g}: give uint8, or floats from 0 to 1"
        )
    rounded = np.rint(array * 255)
    levels = rounded.astype(np.uint8)
    return _with_three_channels(levels)


def _with_three_channels(array: np.ndarray) -> np.ndarray | Unreadable:
    """uint8 of the shapes that `pixels` takes -> (H, W, 3)."""
    if array.ndim == 3:
        array = _channels_last(array)
        if array.shape[2] == 1:
            array = array[:, :, 0]
    if array.ndim == 2:
        one_channel = array[:, :, None]
        array = np.repeat(one_channel, 3, axis=2)
    shape = array.shape
    if array.ndim != 3 or shape[2] != 3:
        return Unreadable(f"image of shape {shape}: give (H, W) or (H, W, 3)")
    # A copy of its own: what was read belongs to the reader.
    return np.array(array, dtype=np.uint8, order="C")


def _channels_last(array: np.ndarray) -> np.ndarray:
    """(C, H, W) -> (H, W, C); any other array as it is."""
    channels = (1, 3)
    # Where both ends could be channels, the last dimension is taken for them.
    if array.shape[2] in channels:
        return array
    if array.shape[0] in channels:
        return array.transpose(1, 2, 0)
    return array
