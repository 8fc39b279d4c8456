"""What every event of a run can do: be written in a store, and be read from one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

Body = dict[str, Any]


@dataclass(frozen=True)
class RunEvent(ABC):
    """Something that happened in a run."""

    kind: ClassVar[str]

    @abstractmethod
    def body(self) -> Body:
        """Plain JSON, as it stands in the store."""

    def data(self) -> bytes | None:
        """Arrays beside the body, for events that have some."""
        return None

    @classmethod
    @abstractmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        """The event with this body. Raises KeyError, TypeError, ValueError where it is damaged."""
