import sys
from pathlib import Path

import pytest

# A line to PostgreSQL that can go dead, and made-up rows.
for folder in ("storage", "experiments/comparison", "web"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))


@pytest.fixture
def site(tmp_path):
    """An open page of a small orchard."""
    import sites

    with sites.serving(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """A few pictures."""
    from fruit import orchard

    return orchard(tmp_path_factory.mktemp("pool"), 12)


@pytest.fixture
def with_users(tmp_path, pool):
    """A page that lets in nobody but anna."""
    import sites

    from tailor.web.users import Users

    project = sites.begin(tmp_path / "run", pool)
    Users(project.folder).add("anna", "correct horse")
    with sites.serving(tmp_path, project=project, enter=False) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    import browsing

    with browsing.browsing() as found:
        yield found
