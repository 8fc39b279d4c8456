import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def site(tmp_path):
    """An open page of a small orchard."""
    import sites

    with sites.serving(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    import browsing

    with browsing.browsing() as found:
        yield found
