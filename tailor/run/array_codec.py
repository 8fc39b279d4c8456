"""Arrays as the bytes of an event: a compressed .npz in memory.

np.savez_compressed writes them; a reader of our own reads them. numpy evaluates the header of an
array as Python source, which CPython 3.11 cannot do in two threads at once, and rounds are prepared
in one thread while answers are taken in others.
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import Literal

import numpy as np

#: how numpy heads an array in an .npz
HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([^']+)', 'fortran_order': (True|False), 'shape': \(([\d, "
    rb"]*)\), \} *\n",
    re.DOTALL,
)


def pack(arrays: dict[str, np.ndarray]) -> bytes:
    """Arrays of numbers by name -> bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(data: bytes | None) -> dict[str, np.ndarray]:
    """The arrays that pack() made bytes of; they may be written to. Nothing: no arrays.

    Raises ValueError or BadZipFile where the bytes are damaged.
    """
    if not data:
        return {}
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for file_name in archive.namelist():
            name = file_name.removesuffix(".npy")
            content = archive.read(file_name)
            arrays[name] = _read_array(content)
    return arrays


def _read_array(data: bytes) -> np.ndarray:
    header = HEADER.match(data)
    if header is None:
        raise ValueError(
            f"an array in the run's record begins with {data[:80]!r}, which is not how numpy "
            "heads one"
        )
    dtype, fortran_order, lengths = header.groups()
    shape = []
    for length in lengths.split(b","):
        # One dimension is written "(3,)": nothing stands after its comma.
        if length.strip():
            shape.append(int(length))
    order: Literal["C", "F"] = "C"
    if fortran_order == b"True":
        order = "F"
    numbers = np.frombuffer(data, dtype.decode(), offset=header.end())
    array = numbers.reshape(shape, order=order)
    # A copy, since what comes from a buffer can't be written to.
    return array.copy()
