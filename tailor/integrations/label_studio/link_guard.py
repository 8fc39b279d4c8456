"""Which addresses the links in tasks may lead to."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from tailor.errors import InputError, TailorError

IpAddress = IPv4Address | IPv6Address

HOST = re.compile(r"[\w.-]+")
PORTS = {"http": 80, "https": 443}
#: IPv4 addresses behind a translator (RFC 6052): the last four bytes
TRANSLATED = IPv6Network("64:ff9b::/96")


class LinkRefused(TailorError):
    """A link leads where it must not, or nowhere."""


class LinkGuard:
    """Links may lead to public addresses, to Label Studio itself, and to what the user allows.

    Whoever can write a task could else make this machine fetch what only this machine reaches: a
    router's page, a cloud's metadata. A name is resolved once, and the address that was checked is
    the one to connect to.

    url: Label Studio's. allow: names of hosts, addresses and networks in CIDR notation, such as
    10.1.0.0/16.
    """

    def __init__(self, url: str, allow: Sequence[str] = ()) -> None:
        self._studio = urlsplit(url)
        self._hosts = set[str]()
        self._networks = []
        for one in allow:
            try:
                self._networks.append(ip_network(one.strip("[]"), strict=False))
            except ValueError:
                if not HOST.fullmatch(one):
                    raise InputError(
                        f"links are allowed from {one!r}: give a host's name, an address or a "
                        "network, such as "
                        "images.lan, 10.1.2.3 or 10.1.0.0/16"
                    ) from None
                self._hosts.add(one.lower())

    def is_studio(self, url: str) -> bool:
        """Whether it is a page of Label Studio, which may see the token."""
        return _server(urlsplit(url)) == _server(self._studio)

    def addresses(self, host: str, port: int) -> list[str]:
        """Those of the host that may be connected to; an error where there is none."""
        found = resolve(host, port)
        allowed = [one for one in found if self._allows(host, port, one)]
        if not allowed:
            raise LinkRefused(
                f"{host} is at {found[0]}, which is not public: where its pictures are to be had, "
                f"connect with --allow-links {host}"
            )
        return [str(one) for one in allowed]

    def _allows(self, host: str, port: int, address: IpAddress) -> bool:
        if host.lower() in self._hosts or any(address in network for network in self._networks):
            return True
        return is_public(address) or self._is_studios(port, address)

    def _is_studios(self, port: int, address: IpAddress) -> bool:
        """Label Studio under another name: localhost and 127.0.0.1, say."""
        _, host, own = _server(self._studio)
        return port == own and address in resolve(host, port)


def _server(url: SplitResult) -> tuple[str, str, int | None]:
    """(scheme, host, port), however they are written."""
    return url.scheme, url.hostname or "", url.port or PORTS.get(url.scheme)


def resolve(host: str, port: int) -> list[IpAddress]:
    """The addresses of a host, the preferred one first."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise LinkRefused(f"{host} has no address: {error}") from None
    return [ip_address(entry[4][0]) for entry in found]


def is_public(address: IpAddress) -> bool:
    """Whether anybody could reach it: not of this machine, of a private network or of one's own
    cable.
    """
    if isinstance(address, IPv6Address):
        within = address.ipv4_mapped or address.sixtofour
        if address in TRANSLATED:
            within = IPv4Address(address.packed[-4:])
        if within is not None:
            return is_public(within)
    return address.is_global and not address.is_multicast
