"""From encoded bytes and raw arrays to what `Pool.read` gives. Nothing here raises for a bad
example.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, TypeVar

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Unreadable

S = TypeVar("S")
T = TypeVar("T")

#: The chequerboard behind what is transparent: squares along the longer side, their least width in
#: pixels, their colour
SQUARES = 40
SMALLEST_SQUARE = 4
SQUARE_COLOUR = (221, 221, 221, 255)

#: files whose pictures may be transparent; of a Parquet file nobody knows what is in it
MAY_BE_TRANSPARENT = (".png", ".gif", ".webp", ".tif", ".tiff", ".bmp", ".parquet")

#: Threads that decode at once, where the user names no number.
THREADS = min(8, os.cpu_count() or 1)


def check_decoding(max_side: int | None, threads: int | None) -> None:
    if max_side is not None and max_side < 1:
        raise InputError(
            f"max_side is {max_side}: it must be at least 1 pixel, or None for the full size"
        )
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}: it must be at least 1")


def in_threads(work: Callable[[S], T], items: Sequence[S], threads: int | None) -> list[T]:
    """work on each item, in order. Image decoders let go of the interpreter lock, so threads do
    help.
    """
    count = min(threads or THREADS, len(items))
    if count <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(count, thread_name_prefix="tailor-read") as pool:
        return list(pool.map(work, items))


def decode_image(
    source: bytes | str | os.PathLike[str] | None,
    max_side: int | None = None,
    *,
    checkered: bool = False,
) -> np.ndarray | Unreadable:
    """An encoded image, as bytes or a path -> RGB uint8 (H, W, 3), turned as its EXIF says.

    What is transparent lets white through, or for the eye a light chequerboard, on which white
    drawings can be seen.
    """
    from PIL import Image, UnidentifiedImageError

    if source is None:
        return Unreadable("missing")
    if isinstance(source, bytes) and not source:
        return Unreadable("empty")
    try:
        if not isinstance(source, bytes) and os.stat(source).st_size == 0:
            return Unreadable("empty")
        # Never by name: PIL then maps some TIFF files into memory, and scrambles those with an
        # orientation.
        with _stream(source) as stream, Image.open(stream) as image:
            limit = Image.MAX_IMAGE_PIXELS
            if limit is not None and image.width * image.height > limit:
                return Unreadable(
                    f"too large: {image.width} x {image.height} pixels, the limit is {limit} in all"
                )
            return rgb(image, max_side, checkered=checkered)
    except FileNotFoundError:
        return Unreadable("missing")
    except UnidentifiedImageError:
        return Unreadable("not an image")
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as problem:
        return Unreadable(f"too large: {problem}")
    except Exception as problem:
        # decoders raise nearly anything on broken bytes: OSError, SyntaxError, struct.error
        return Unreadable(
            f"broken image: {problem}"
            if str(problem)
            else f"broken image: {type(problem).__name__}"
        )


def _stream(source: bytes | str | os.PathLike[str]) -> BinaryIO:
    return io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb")


def rgb(image: Any, max_side: int | None = None, *, checkered: bool = False) -> np.ndarray:
    """A PIL image -> RGB uint8 (H, W, 3), its longer side at most max_side."""
    shrink = max_side is not None and max(image.size) > max_side
    if shrink and image.format == "JPEG":
        image.thumbnail(
            (max_side, max_side), reducing_gap=2.0
        )  # a JPEG is then decoded at 1/2, 1/4 or 1/8
        shrink = False
    image = _to_rgb(_turned(image), checkered)
    if shrink:
        image = image.copy()
        image.thumbnail((max_side, max_side), reducing_gap=2.0)
    return np.array(image, dtype=np.uint8)


def _turned(image: Any) -> Any:
    from PIL import ImageOps

    image.load()
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # a whole picture with broken EXIF: shown as stored
        return image


def _to_rgb(image: Any, checkered: bool = False) -> Any:
    """PIL's own conversion cuts numbers above 255 off, which turns 16-bit and float pictures white
    or black.
    """
    from PIL import Image

    of_numbers = image.mode.startswith(("I", "F"))
    if image.has_transparency_data and not of_numbers:
        return _on_ground(image.convert("RGBA"), checkered)
    if image.mode == "RGB":
        return image
    if not of_numbers:
        return image.convert("RGB")
    values = np.nan_to_num(np.asarray(image, dtype=np.float64))
    top = values.max(initial=0)
    if image.mode.startswith("I"):
        values = values / (257 if top > 255 else 1)
    elif top <= 1:
        values = values * 255
    return Image.fromarray(np.clip(np.rint(values), 0, 255).astype(np.uint8)).convert("RGB")


def _on_ground(image: Any, checkered: bool) -> Any:
    """An RGBA picture without its alpha: on white, or on a chequerboard."""
    from PIL import Image

    ground = Image.new("RGBA", image.size, "white")
    if checkered:
        side = max(SMALLEST_SQUARE, max(image.size) // SQUARES)
        y, x = np.ogrid[: image.height, : image.width]
        dark = (y // side + x // side) % 2 == 1
        ground.paste(SQUARE_COLOUR, mask=Image.fromarray(dark))
    return Image.alpha_composite(ground, image).convert("RGB")


def decoded_as(name: str) -> str:
    """What the content key of pictures in a file says beyond their content: how they are decoded,
    where that could be otherwise. Files that can't be transparent have keys, and features in
    caches, from before it was said.
    """
    return "|on white" if name.lower().endswith(MAY_BE_TRANSPARENT) else ""


def pixels(array: np.ndarray) -> np.ndarray | Unreadable:
    """(H, W), (H, W, 1 or 3) or (1 or 3, H, W), uint8 or floats from 0 to 1 -> RGB uint8 (H, W,
    3).
    """
    if array.size == 0:
        return Unreadable("empty")
    if array.dtype != np.uint8:
        if not np.issubdtype(array.dtype, np.floating):
            return Unreadable(f"image of dtype {array.dtype}: give uint8, or floats from 0 to 1")
        low = float(array.min())
        high = float(array.max())
        if not (low >= 0 and high <= 1):  # false for NaN too
            return Unreadable(
                f"image with values from {low:g} to {high:g}: give uint8, or floats from 0 to 1"
            )
        array = np.rint(array * 255).astype(np.uint8)
    if array.ndim == 3 and array.shape[2] not in (1, 3) and array.shape[0] in (1, 3):
        array = array.transpose(1, 2, 0)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim == 2:
        array = np.repeat(array[:, :, None], 3, axis=2)
    if array.ndim != 3 or array.shape[2] != 3:
        return Unreadable(f"image of shape {array.shape}: give (H, W) or (H, W, 3)")
    return np.array(array, dtype=np.uint8, order="C")


def vector(value: Any, length: int | None = None) -> np.ndarray | Unreadable:
    """A list or array of numbers -> float32 (d,); d must be `length` where that is known."""
    if value is None:
        return Unreadable("missing")
    try:
        with np.errstate(over="ignore"):
            array = np.array(value, dtype=np.float32)
    except (TypeError, ValueError):
        return Unreadable("vector with a missing value, or one that is no number")
    if array.size == 0:
        return Unreadable("empty")
    if array.ndim != 1:
        return Unreadable(f"vector of shape {array.shape}: give (d,)")
    if length is not None and len(array) != length:
        return Unreadable(f"vector of length {len(array)}: the others have {length}")
    if not np.isfinite(array).all():
        return Unreadable("vector with a value that is not finite, or too large for float32")
    return array


def text(value: Any) -> str | Unreadable:
    if value is None:
        return Unreadable("missing")
    if not isinstance(value, str):
        return Unreadable(f"not text but {type(value).__name__}")
    return value if value.strip() else Unreadable("empty")


def label(value: Any, names: Sequence[str] | None) -> Any:
    """A stored label -> class name, or list of names; None where there is none (null, or -1 among
    named classes).
    """
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return [one for one in (label(v, names) for v in value) if one is not None]
    if isinstance(value, str):
        return value or None
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower() if names is None else names[int(value)]
    if isinstance(value, (float, np.floating)) and not float(value).is_integer():
        return None if np.isnan(value) else str(value)
    if not isinstance(value, (int, np.integer, float, np.floating)):
        raise InputError(
            f"label {value!r} is a {type(value).__name__}: labels are class names or whole numbers"
        )
    index = int(value)
    if names is None:
        return str(index)
    if index == -1:
        return None
    if not 0 <= index < len(names):
        raise InputError(
            f"label {index} is outside 0 .. {len(names) - 1}: {len(names)} class names are given"
        )
    return names[index]
