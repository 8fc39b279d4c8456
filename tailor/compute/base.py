"""Where heavy work runs. An engine calls a function many times; what is called is the same
everywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, TypeVar

S = TypeVar("S")
T = TypeVar("T")
#: what one call hands to its function, besides what all calls share
Call = tuple[Any, ...]


class Engine(ABC):
    """Calls function(shared, *call) for every call, here or on other machines.

    A function may be called again with the same arguments, where a machine was lost, so it must
    depend on nothing else and leave nothing behind that a second call would not leave too.

    >>> LocalEngine().map(pow, [(3,), (4,)], shared=2)
    [8, 16]
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many calls run at once, today."""

    @abstractmethod
    def map(
        self,
        function: Callable[..., T],
        calls: Sequence[Call],
        shared: Any = None,
    ) -> list[T]:
        """The results, in the order of the calls. An error in any of them is raised here."""

    @abstractmethod
    def map_with(
        self,
        make: Callable[[], S],
        function: Callable[..., T],
        calls: Sequence[Call],
    ) -> list[T]:
        """As map, with function(make(), *call). make() is costly (it loads a model), and is called
        once in each worker.
        """

    def close(self) -> None:  # noqa: B027  most have nothing to let go of
        """Let go of what the engine holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LocalEngine(Engine):
    """This process: one call after another, each with all its threads."""

    name = "local"
    workers = 1

    def map(
        self,
        function: Callable[..., T],
        calls: Sequence[Call],
        shared: Any = None,
    ) -> list[T]:
        return [function(shared, *call) for call in calls]

    def map_with(
        self,
        make: Callable[[], S],
        function: Callable[..., T],
        calls: Sequence[Call],
    ) -> list[T]:
        # Without a call nothing is made, since make() is costly.
        if not calls:
            return []
        return self.map(function, calls, shared=make())
