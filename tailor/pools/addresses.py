"""Which addresses a pool may be read from.

fsspec knows many more kinds, some of which run templates or open other files than the one that is
named: what is allowed is listed here.
"""

from __future__ import annotations

import os

from tailor.errors import InputError

#: object storage, over a network
REMOTE_SCHEMES = ("s3", "gs", "gcs", "az", "abfs", "abfss")
#: on this machine, and in this process
LOCAL_SCHEMES = ("file", "memory")
SCHEMES = REMOTE_SCHEMES + LOCAL_SCHEMES
#: between the parts of a chain, in which one file system reads through another
CHAIN = "::"


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether it is an address such as s3://bucket/folder, and no path on this machine."""
    return "://" in str(path)


def is_remote(address: str) -> bool:
    """Whether reading it needs a connection."""
    return is_address(address) and _scheme(address) not in LOCAL_SCHEMES


def check_address(address: str) -> None:
    """Raise InputError unless an address is of a kind that pools are read from.

    >>> check_address("s3://bucket/folder")
    >>> check_address("reference::s3://bucket/file.json")
    Traceback (most recent call last):
    tailor.errors.InputError: 'reference::s3://bucket/file.json' chains file systems with '::': \
name the folder or file itself
    """
    if CHAIN in address:
        raise InputError(
            f"{address!r} chains file systems with '::': name the folder or file itself"
        )
    # A path on this machine is none of fsspec's kinds.
    if is_address(address) and _scheme(address) not in SCHEMES:
        listed = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise InputError(
            f"{_scheme(address)}:// in {address!r} is no address that a pool is read from: those "
            f"are {listed}; for others write a pool of your own (docs/how-to/extending.md)"
        )


def _scheme(address: str) -> str:
    scheme, _, _ = address.partition("://")
    return scheme
