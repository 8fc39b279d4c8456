"""What must not be lost."""

from tailor.store.base import Busy, Event, Store, StoreError
from tailor.store.sqlite import SqliteStore

__all__ = ["Busy", "Event", "SqliteStore", "Store", "StoreError"]
