"""Jobs in processes of their own: what they report, and what they say to the log."""

from __future__ import annotations

import logging

import pytest

from tailor.errors import InputError
from tailor_experiments.comparison.parallel import report, run_all
from tailor_experiments.regret.simulation import QUICK_BASE, instance

LOG = "tailor.common.compiled"


def reported(kind):
    if kind == "bad":
        raise InputError("this one is bad")
    report(kind)


def test_reports_come_and_an_error_ends_it():
    assert sorted(run_all(reported, [("one",), ("two",)], 2)) == ["one", "two"]
    with pytest.raises(InputError, match="this one is bad"):
        list(run_all(reported, [("bad",)], 1))


def test_what_is_compiled_in_a_worker_is_told_here(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # as on a machine that never ran it
    caplog.set_level(logging.INFO, LOG)
    assert list(run_all(instance, [(QUICK_BASE, 0, 0)], 1)) == []
    told = [record.getMessage() for record in caplog.records if record.name == LOG]
    assert "compiling dirichlet_plan (once on this machine)" in told
