"""A place for a store, of each kind."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

from tailor.storage import open_store

for folder in ("run", "cli", "storage"):  # their small pools, runs and stories are used here too
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))


@pytest.fixture(params=["sqlite", "postgres"])
def new_place(request, tmp_path):
    """Gives a new, empty place each time: a path, or a URL."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres").url
    numbers = itertools.count()
    return lambda: tmp_path / f"{next(numbers)}.db"


@pytest.fixture
def place(new_place):
    return new_place()


@pytest.fixture
def openers(new_place):
    """As the contract wants them."""

    def opener():
        one = new_place()
        return lambda readonly=False: open_store(one, readonly=readonly)

    return opener
