"""Labelling by people, live: one room, any number of annotators."""

from tailor.live.items import Handed, Item, Page, Receipt, Vote
from tailor.live.room import Room

__all__ = ["Handed", "Item", "Page", "Receipt", "Room", "Vote"]
