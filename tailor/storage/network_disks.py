"""Disks of other machines, on which SQLite can't keep writers apart."""

from __future__ import annotations

import os
from pathlib import Path

from tailor.storage.base import StoreError

#: Linux's list of what is mounted: ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS ... - TYPE SOURCE ...
MOUNTS = Path("/proc/self/mountinfo")
#: File systems that other machines share.
NETWORK_TYPES = frozenset(
    (
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.sshfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "smb3",
        "smbfs",
    )
)


def check_local_disk(file: Path) -> None:
    """Raise StoreError where a run's file would lie on a disk of another machine.

    SQLite's write-ahead log needs memory that all its processes share, and locks that hold between
    machines; network disks have neither. Reading there is checked like any reading.
    """
    file_system = file_system_of(file.parent)
    if file_system in NETWORK_TYPES:
        raise StoreError(
            f"{file} is on a network disk ({file_system}), where writers on two machines can't be "
            "kept apart: keep the run's store on a disk of this machine (`store` under [run] in "
            "tailor.toml), or in PostgreSQL; nothing was changed"
        )


def file_system_of(folder: Path, mounts: Path = MOUNTS) -> str:
    """The type of the file system that holds a folder; empty where the system does not tell.

    mounts  the list of what is mounted
    """
    try:
        device = os.stat(folder).st_dev
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    numbers = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) > 2 and fields[2] == numbers:
            return after.split(" ")[0]
    return ""
