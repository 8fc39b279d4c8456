"""Contracts that every arm, selector, pool, model and store keeps. A plugin's author calls them
from a test.

>>> from tailor import MultiClass
>>> from tailor.strategies.margin import Margin
>>> check_strategy(Margin(), MultiClass(3))
>>> check_selector("tailor(forget=0.8)", MultiClass(3))
"""

from __future__ import annotations

from tailor.testing.models_contract import check_model
from tailor.testing.pools_contract import check_pool
from tailor.testing.selectors import (
    SELECTOR_CHECKS,
    check_selector,
    make_contest,
    make_outcomes,
)
from tailor.testing.simulated_pools import SimulatedPool, make_pool, make_view
from tailor.testing.store_contract import STORE_CHECKS, check_store
from tailor.testing.strategies import STRATEGY_CHECKS, check_strategy, take_all

__all__ = [
    "SELECTOR_CHECKS",
    "STORE_CHECKS",
    "STRATEGY_CHECKS",
    "SimulatedPool",
    "check_model",
    "check_pool",
    "check_selector",
    "check_store",
    "check_strategy",
    "make_contest",
    "make_outcomes",
    "make_pool",
    "make_view",
    "take_all",
]
