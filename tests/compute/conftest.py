"""Lets the tests of this folder import the property tests' cases and each other; how Ray runs
here.
"""

import os
import secrets
import sys
from pathlib import Path

import parts
import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "strategies"), str(Path(__file__).parent)]

# Ray reads these when it is imported: token authentication, and the loopback address for every
# node.
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")


@pytest.fixture(scope="session")
def nodes():
    """A cluster that all tests of this folder share: it takes ten seconds to start."""
    parts.need("Ray")
    import losses
    from clusters import Nodes
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(losses)  # the workers can't import from this folder
    found = Nodes(2)
    yield found
    found.stop()


@pytest.fixture(scope="session")
def engine(nodes):
    from tailor.compute.ray_engine import RayEngine

    with RayEngine(nodes.address) as made:
        assert made.workers == 2
        yield made
