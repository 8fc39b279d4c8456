"""Arrays in .npz files. Rows of an uncompressed one are read by seeking, as in a .npy file."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError, UnknownName
from tailor.pools.npy import NpyRows, check_header, read_header

#: A compressed array can't be read in part: it is taken into memory up to this size, in bytes.
MOST_COMPRESSED = 2**30
#: Names of arrays that are taken for labels when the user names none.
LABEL_ARRAYS = ("y", "label", "labels")
#: In a ZIP file's local header: where the lengths of name and extra field stand (two bytes each),
#: and the length of the fixed part. After all of them the content begins.
_LENGTHS_OFFSET = 26
_HEADER_BYTES = 30
#: The arrays of an archive by name.
Members = dict[str, zipfile.ZipInfo]


@dataclass(frozen=True)
class NpzArrays:
    """The arrays of a pool.

    examples  NpyRows, or an array in memory
    ids       (N,), None where there are none
    labels    (N,) or (N, K), None where there are none
    """

    examples: Any
    ids: Any
    labels: Any


def open_npz(
    path: Path,
    array: str | None,
    ids: Any,
    labels: Any,
) -> NpzArrays:
    """The examples, ids and labels in an .npz file. Only compressed examples are read into memory.

    array   the name of the examples' array; None where there is only one it can be
    ids     as given; None takes the array `ids` where there is one
    labels  as given; a name takes that array, None one of LABEL_ARRAYS where there is one

    Raises InputError where the file is broken or the examples' array is not clear.
    """
    try:
        members = _members(path)
    except (OSError, zipfile.BadZipFile) as problem:
        raise InputError(
            f"{path} is not a whole .npz file ({problem}): save it again with numpy.savez"
        ) from None
    if array is None:
        array = _examples_name(path, members)
    if ids is None and "ids" in members:
        ids = _read_member(path, members, "ids")
    if labels is None:
        labels = _labels_name(members)
    if isinstance(labels, str):
        labels = _read_member(path, members, labels)
    examples = _open_member(path, members, array)
    return NpzArrays(examples, ids, labels)


def _examples_name(path: Path, members: Members) -> str:
    """The only array that can hold the examples. Raises InputError where it is not clear."""
    not_examples = ("ids", *LABEL_ARRAYS)
    candidates = []
    for name in members:
        if name not in not_examples:
            candidates.append(name)
    if len(candidates) != 1:
        listed = ", ".join(members) or "(none)"
        raise InputError(f"{path} holds the arrays {listed}: name the examples' (array=)")
    return candidates[0]


def _labels_name(members: Members) -> str | None:
    for name in LABEL_ARRAYS:
        if name in members:
            return name
    return None


def read_npz(path: Path, name: str) -> np.ndarray:
    """One array of an .npz file, all of it. Raises InputError where it can't be read."""
    members = _members(path)
    return _read_member(path, members, name)


def _members(path: Path) -> Members:
    """The arrays of an .npz file by name."""
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    members = {}
    for entry in entries:
        # Others may lie beside them, such as notes.
        if entry.filename.endswith(".npy"):
            name = entry.filename.removesuffix(".npy")
            members[name] = entry
    return members


def _read_member(path: Path, members: Members, name: str) -> np.ndarray:
    array = _open_member(path, members, name)
    if isinstance(array, NpyRows):
        return array.all()
    return array


def _open_member(path: Path, members: Members, name: str) -> NpyRows | np.ndarray:
    if name not in members:
        raise UnknownName("array", name, members)
    member = members[name]
    if member.compress_type == zipfile.ZIP_STORED:
        start = _content_start(path, member)
        return NpyRows(path, start, member.file_size)
    if member.file_size > MOST_COMPRESSED:
        raise InputError(
            f"array {name!r} of {path} is compressed and {member.file_size} bytes large, the limit "
            f"is {MOST_COMPRESSED}: save it with numpy.save as .npy, of which only the asked rows "
            "are read"
        )
    try:
        return _unpacked(path, member)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as problem:
        raise InputError(
            f"array {name!r} of {path} can't be read ({problem}): save it again"
        ) from None


def _content_start(path: Path, member: zipfile.ZipInfo) -> int:
    """Where the bytes of an uncompressed member begin. Only its local header tells: its extra field
    may differ from that in the archive's directory.
    """
    with open(path, "rb") as file:
        file.seek(member.header_offset + _LENGTHS_OFFSET)
        length_bytes = file.read(4)
    lengths = np.frombuffer(length_bytes, "<u2")
    fixed_end = member.header_offset + _HEADER_BYTES
    return fixed_end + int(lengths.sum())


def _unpacked(path: Path, member: zipfile.ZipInfo) -> np.ndarray:
    with zipfile.ZipFile(path) as archive:
        with archive.open(member) as file:
            shape, _, dtype = read_header(file)
            data_bytes = member.file_size - file.tell()
            check_header(path, shape, dtype, data_bytes)
        # Opened again: a compressed member can't be wound back without unpacking it anew.
        with archive.open(member) as file:
            array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
            return array
