"""Labelling by people, live: one room, any number of annotators."""

from tailor.annotation.coordinator import Coordinator
from tailor.annotation.items import Handed, Item, Page, Receipt, Vote

__all__ = ["Coordinator", "Handed", "Item", "Page", "Receipt", "Vote"]
