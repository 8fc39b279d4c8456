"""A finished run of each kind, made once."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from runs import begin, begin_several, tailor


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A folder with a finished run of each kind; tests copy what they change."""
    folder = tmp_path_factory.mktemp("home")
    for run in (begin(folder), begin_several(folder)):
        tailor("run", "--run", run)
    return folder


@pytest.fixture
def copy(home, tmp_path):
    """The finished runs, to be changed."""
    return shutil.copytree(home, tmp_path / "copy")
