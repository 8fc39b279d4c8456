import os
import shutil
import sys
from pathlib import Path

import parts
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A running Label Studio with SQLite, one for each worker."""
    from studio_server import NotInstalled, Server, executable, http, prepared

    http()
    try:
        own = executable().resolve().parents[1]
    except NotInstalled as error:
        pytest.skip(parts.reason("Label Studio", str(error)))
    shared = own if os.access(own, os.W_OK) else tmp_path_factory.getbasetemp().parent
    data = prepared(shared / "prepared")
    copy = tmp_path_factory.mktemp("label-studio") / "data"
    shutil.copytree(data, copy)
    running = Server(copy)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def make_project(server):
    """make_project("text", "single", ["a", "b"]): a project of its own."""
    from studio_runs import label_config
    from studio_server import AnnotatedProject

    return lambda shows, choice, classes: AnnotatedProject(
        server, label_config(shows, choice, classes)
    )
