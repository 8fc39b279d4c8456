"""Shared by all tests: threads, and what a skip means where everything must be there."""

import os

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # workers share the cores: one thread each, set before torch and numba load
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")

#: reasons to skip that no installation can mend
UNAVOIDABLE = ("CUDA", "root", "other systems")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and os.environ.get("TAILOR_TEST_EVERYTHING") and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if not any(word in reason for word in UNAVOIDABLE):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} was left out, and here nothing may be: {reason}"
    return report
