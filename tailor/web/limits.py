"""How much and how often: limits on the size of a request and on the rate of a client."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one client may do."""

    body: int = 64 * 1024  # bytes of a request
    rate: float = 200.0  # requests a second, in the long run
    burst: float = 600.0  # and at once: a grid of pictures is many requests
    people: float = (
        10.0  # from one address as much as so many may do: without users a name costs nothing
    )
    tries: float = 10.0  # failed ones a minute at signing in, for one name from one address
    tries_in_all: float = 50.0  # and from one address, whatever the names


def neighbourhood(address: str) -> str:
    """What one client can call its own: an IPv4 address, or the 2**64 addresses of an IPv6
    network.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))


class Buckets:
    """A bucket of permits for each key, refilled at a steady rate. The longest unused key is
    forgotten first.
    """

    def __init__(
        self,
        rate: float,
        burst: float,
        most: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.rate = rate
        self.burst = burst
        self.most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # key -> (permits, when)

    def take(self, key: str) -> float:
        """0 where there was a permit, else the seconds until there is one."""
        with self._lock:
            now = self._clock()
            left, then = self._left.pop(key, (self.burst, now))
            left = min(self.burst, left + (now - then) * self.rate)
            wait = 0.0 if left >= 1 else (1 - left) / self.rate
            self._left[key] = (left if wait else left - 1, now)
            if len(self._left) > self.most:
                self._left.popitem(last=False)
            return wait

    def give_back(self, key: str) -> None:
        """A permit that was not needed."""
        with self._lock:
            if key in self._left:
                left, then = self._left[key]
                self._left[key] = (min(self.burst, left + 1), then)
