"""Several annotators at once over HTTP, at the server that `tailor label` starts: the load
benchmark, small.
"""

from __future__ import annotations

import argparse
import socket
import sys
from pathlib import Path

import pytest
import sites  # noqa: F401  or a skip that says what is missing

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import annotators
from crowd import Acknowledged, Hold, Ledger

from tailor.web.serve import listening


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_nothing_is_lost_and_nobody_gets_what_another_has(tmp_path, store, request):
    server = request.getfixturevalue("postgres") if store == "postgresql" else None
    given = argparse.Namespace(
        people=6, minutes=1.0, least=2, speed=20.0, examples=400, classes=3, batch=20
    )
    row = annotators.measure(tmp_path, given, server)
    assert row["wrong"] == []
    assert row["acknowledged"] >= 6 * 2
    assert row["rounds"] >= 1


def test_the_check_sees_what_is_wrong():
    ledger = Ledger()
    ledger.holds["a"] += [Hold("ann", 1.0, 3.0), Hold("bob", 3.0, 4.0)]  # passed on
    ledger.holds["b"] += [Hold("ann", 1.0, 3.0), Hold("bob", 2.0, 4.0)]
    ledger.holds["c"] += [Hold("ann", 1.0), Hold("ann", 2.0)]  # a reload
    assert ledger.shared() == ["b"]
    assert ledger.passed_on() == 2
    ledger.acknowledged += [Acknowledged("ann", one, "x", 7, at=5.0) for one in "ab"]
    ledger.given["a"] += [("ann", 1.0), ("bob", 4.9)]  # on its way then
    ledger.given["b"].append(("bob", 5.1))
    assert ledger.given_again() == ["b"]


def test_replies_are_sent_at_once():
    """asyncio turns Nagle's algorithm off only where the socket's protocol is named: else a reply
    may take 40 ms.
    """
    with listening("127.0.0.1", 0) as sock:
        assert sock.proto == socket.IPPROTO_TCP
