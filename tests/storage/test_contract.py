"""Both stores keep the contract, and the same operations give the same events in both."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailor.errors import TailorError
from tailor.storage import open_store
from tailor.testing.store_contract import STORE_CHECKS


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_contract(openers, check):
    check(openers)


TEXT = st.text(st.characters(exclude_characters="\0"), max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
APPEND = st.tuples(
    st.just("append"),
    TEXT,
    st.dictionaries(st.text(max_size=5), JSON, max_size=4),
    st.none() | st.binary(max_size=50),
)
ADD = st.tuples(st.just("add_examples"), st.lists(TEXT, max_size=6))
REOPEN = st.tuples(st.just("reopen"))


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(operations=st.lists(APPEND | APPEND | ADD | REOPEN, max_size=12))
def test_the_same_operations_give_the_same_events(tmp_path_factory, postgres, operations):
    results = []
    for place in (tmp_path_factory.mktemp("same") / "run.db", postgres.url()):
        said = []
        store = open_store(place)
        for name, *arguments in operations:
            if name == "reopen":
                store.close()
                store = open_store(place)
                continue
            try:
                said.append(getattr(store, name)(*arguments))
            except (TailorError, ValueError) as error:
                said.append(type(error).__name__)
        events = [(e.number, e.kind, e.body, e.data) for e in store.events()]
        results.append((said, events, store.examples()))
        store.close()
    assert results[0] == results[1]
