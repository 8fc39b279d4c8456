"""Shared by all tests: threads, what a skip means where everything must be there, and what is said
of skips.
"""

import os
import signal
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest

# Which runs are trusted is kept in the user's state folder: not in that of whoever runs the tests.
_state = tempfile.TemporaryDirectory(prefix="tailor-test-state-")
os.environ["XDG_STATE_HOME"] = _state.name

sys.path.insert(0, str(Path(__file__).parent / "support"))

import parts

# Workers share the cores: one thread each, set before torch and numba load.
if "PYTEST_XDIST_WORKER" in os.environ:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")

# The same examples in every run, so that a green suite stays green. What has not been tried yet is
# looked for with TAILOR_TEST_SEARCH=1: then every run draws its own.
hypothesis.settings.register_profile("fixed", derandomize=True)
hypothesis.settings.register_profile("search", derandomize=False, print_blob=True)
searching = os.environ.get("TAILOR_TEST_SEARCH") == "1"
hypothesis.settings.load_profile("search" if searching else "fixed")

# A shell starts what runs in its background with SIGINT ignored, and children inherit that: without
# this, commands that the tests interrupt would never hear of it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres():
    """A running PostgreSQL, one for all tests: `postgres.url()` is a run of one's own
    (tailor/testing/postgres.py).
    """
    from tailor.testing.postgres import NotInstalled, postgres_server

    parts.need("PostgreSQL")
    try:
        # Without fsync, which only a power cut would tell from with it: what was written survives
        # any stop.
        server = postgres_server("-c fsync=off")
        running = server.__enter__()
    except NotInstalled as error:
        pytest.skip(parts.reason("PostgreSQL", str(error)))
    yield running
    server.__exit__(None, None, None)


@pytest.fixture
def wire(postgres):
    """A line to that server that can be cut or go dead: `wire.url()` is a run of one's own
    (tests/storage/wires.py).
    """
    from wires import Wire

    wire = Wire(postgres)
    yield wire
    wire.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return _nothing_left_out((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """A whole module may be left out too."""
    return _nothing_left_out((yield))


def _nothing_left_out(report):
    if (
        report.skipped
        and os.environ.get("TAILOR_TEST_EVERYTHING")
        and isinstance(report.longrepr, tuple)
    ):
        reason = report.longrepr[2]
        if not any(word in reason for word in parts.UNAVOIDABLE):
            report.outcome = "failed"
            report.longrepr = f"{report.nodeid} was left out, and here nothing may be: {reason}"
    return report


def pytest_terminal_summary(terminalreporter):
    """Which parts were left out, a line each, instead of a line for every test."""
    skipped = terminalreporter.stats.get("skipped", [])
    lines = parts.summary(
        report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)
    )
    if lines:
        terminalreporter.section(
            "left out: nothing is wrong, each line says what would bring it", sep="-"
        )
        for line in lines:
            terminalreporter.write_line(line)
