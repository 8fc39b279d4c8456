"""Which proxies are believed: X-Forwarded-For and X-Forwarded-Proto count from these alone."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from tailor.errors import InputError


@dataclass(frozen=True)
class Proxies:
    """Addresses and networks of the proxies before the server; () where there is none."""

    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    @classmethod
    def parse(cls, addresses: Sequence[str]) -> Proxies:
        """Of "127.0.0.1", "10.0.0.0/24", "::1". Raises InputError for what is none of these."""
        networks = []
        for address in addresses:
            try:
                network = ipaddress.ip_network(address.strip().strip("[]"))
            except ValueError as error:
                raise InputError(
                    f"--proxy {address}: {error}. Give the IP address from which the proxy "
                    "connects, such as 127.0.0.1, or a network, such as 10.0.0.0/24"
                ) from error
            networks.append(network)
        return cls(tuple(networks))

    def __bool__(self) -> bool:
        return bool(self.networks)

    @property
    def addresses(self) -> list[str]:
        return [str(network) for network in self.networks]

    def include(self, address: str) -> bool:
        """Whether a connection from this address is a proxy's."""
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self.networks)
