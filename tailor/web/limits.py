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
    # from one address as much as so many may do: without users a name costs nothing
    people: float = 10.0
    tries: float = 10.0  # failed ones a minute at signing in, for one name from one address
    tries_in_all: float = 50.0  # and from one address, whatever the names


def client_network(address: str) -> str:
    """What the limits of a client count by: its IPv4 address, or its IPv6 network, since one client
    may use all of its 2**64 addresses.
    """
    try:
        without_zone, _, _ = address.partition("%")
        parsed = ipaddress.ip_address(without_zone)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    network = ipaddress.ip_network((parsed, 64), strict=False)
    return str(network)


class RateLimiter:
    """A bucket of permits for each key, refilled at a steady rate.

    rate   permits a second
    burst  permits in a full bucket
    most   keys that are remembered; the longest unused is forgotten first
    """

    def __init__(
        self,
        rate: float,
        burst: float,
        most: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rate = rate
        self.burst = burst
        self.most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # (permits, when)

    def take(self, key: str) -> float:
        """0 where there was a permit, else the seconds until there is one."""
        with self._lock:
            now = self._clock()
            full_bucket = (self.burst, now)
            permits, since = self._buckets.pop(key, full_bucket)
            permits += (now - since) * self.rate
            permits = min(self.burst, permits)
            wait = 0.0
            if permits >= 1:
                permits -= 1
            else:
                wait = (1 - permits) / self.rate
            # Taken out and put in again, it is the last that will be forgotten.
            self._buckets[key] = (permits, now)
            if len(self._buckets) > self.most:
                self._buckets.popitem(last=False)
            return wait

    def give_back(self, key: str) -> None:
        """Return a permit that was not needed."""
        with self._lock:
            if key not in self._buckets:  # forgotten meanwhile: it would be full
                return
            permits, since = self._buckets[key]
            permits = min(self.burst, permits + 1)
            self._buckets[key] = (permits, since)
