"""Folders as a stranger might send them, and what shows that they did nothing: a socket that must
hear nothing, a plugin and files that must stay untouched.
"""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tailor.run import config

#: groups of entry points under which the plugin offers itself
GROUPS = ("strategies", "selectors", "rewards", "pools", "models", "backbones")


class Listener:
    """A socket of this machine that nobody may connect to."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=50)
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"

    def has_heard(self) -> bool:
        """Whether someone connected: the kernel has taken the connection, accepted or not."""
        try:
            connection, _ = self._socket.accept()
        except BlockingIOError:
            return False
        connection.close()
        return True

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def listener():
    listener = Listener()
    yield listener
    listener.close()


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """What code of a stranger would leave behind.

    written   a file that an imported plugin writes
    precious  a file and a folder of the user's, which must stay as they are
    """
    place = tmp_path / "canary"
    plugin = place / "packages"
    information = plugin / "evil_plugin-1.0.dist-info"
    information.mkdir(parents=True)
    written = place / "written"
    (plugin / "evil_plugin.py").write_text(
        f"open({str(written)!r}, 'w').close()\nclass Evil: pass\n"
    )
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: evil-plugin\nVersion: 1.0\n"
    )
    entries = [f"[tailor.{group}]\nevil = evil_plugin:Evil\n" for group in GROUPS]
    (information / "entry_points.txt").write_text("\n".join(entries))
    monkeypatch.syspath_prepend(str(plugin))
    precious = place / "precious"
    precious.mkdir()
    (precious / "letter.txt").write_text("dear")
    # sklearn.datasets.clear_data_home() would delete it.
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(precious))
    before = contents(precious)
    canary = SimpleNamespace(written=written, precious=precious)
    yield canary
    assert not written.exists(), "a plugin was run"
    assert contents(precious) == before, "a file of the user's was touched"


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): path.read_bytes() for path in files}


def stranger_run(folder: Path, sections: dict | None = None) -> Path:
    """A run that was not begun here: its tailor.toml, and points to label in its own folder."""
    folder.mkdir(parents=True, exist_ok=True)
    points = np.random.default_rng(0).normal(size=(12, 3))
    np.save(folder / "points.npy", points)
    values = {
        "task": {"classes": ["left", "right"]},
        "pool": {"path": "points.npy"},
        "selection": {"batch": 4, "strategies": ["random"], "selector": "tailor"},
    }
    for section, keys in (sections or {}).items():
        values[section] = {**values.get(section, {}), **keys}
    config.write(folder, values)
    return folder
