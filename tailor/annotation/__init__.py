"""Labelling by people, live: one coordinator and any number of annotators."""

from tailor.annotation.coordinator import Coordinator
from tailor.annotation.items import (
    Item,
    ItemPage,
    ItemVote,
    NextItems,
    Receipt,
)

__all__ = ["Coordinator", "Item", "ItemPage", "ItemVote", "NextItems", "Receipt"]
