"""Which addresses the links in tasks may lead to."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import SplitResult, urlsplit

from tailor.errors import InputError, TailorError

IpAddress = IPv4Address | IPv6Address

HOST_NAME = re.compile(r"[\w.-]+")
#: The port of a URL that names none, by its scheme.
DEFAULT_PORTS = {"http": 80, "https": 443}
#: IPv4 addresses behind a translator (RFC 6052): the last four bytes.
TRANSLATED = IPv6Network("64:ff9b::/96")


class LinkRefused(TailorError):
    """A link leads where it must not, or nowhere."""


class LinkGuard:
    """Links may lead to public addresses, to Label Studio itself, and to what the user allows.

    Whoever can write a task could otherwise make this machine fetch what only this machine reaches:
    a router's page, a cloud's metadata. A name is resolved once, and the address that was checked
    is the one to connect to.

    url    Label Studio's
    allow  names of hosts, addresses, and networks in CIDR notation, such as 10.1.0.0/16; InputError
           for anything else

    >>> guard = LinkGuard("http://localhost:8080", allow=["10.1.0.0/16"])
    >>> guard.addresses("10.1.2.3", 80)
    ['10.1.2.3']
    """

    def __init__(self, url: str, allow: Sequence[str] = ()) -> None:
        self._studio = urlsplit(url)
        self._allowed_hosts = set[str]()
        self._allowed_networks = []
        for entry in allow:
            try:
                network = ip_network(entry.strip("[]"), strict=False)
            except ValueError:
                if not HOST_NAME.fullmatch(entry):
                    raise InputError(
                        f"links are allowed from {entry!r}: give a host's name, an address or a "
                        "network, such as images.lan, 10.1.2.3 or 10.1.0.0/16"
                    ) from None
                self._allowed_hosts.add(entry.lower())
            else:
                self._allowed_networks.append(network)

    def is_studio(self, url: str) -> bool:
        """Whether it is a page of Label Studio, which may see the token."""
        server = _server(urlsplit(url))
        return server == _server(self._studio)

    def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host that may be connected to. Raises LinkRefused where there is
        none.
        """
        resolved = resolve(host, port)
        allowed = []
        for address in resolved:
            if self._allows(host, port, address):
                allowed.append(str(address))
        if not allowed:
            raise LinkRefused(
                f"{host} is at {resolved[0]}, which is not public: where its pictures are to be "
                f"had, connect with --allow-links {host}"
            )
        return allowed

    def _allows(
        self,
        host: str,
        port: int,
        address: IpAddress,
    ) -> bool:
        if host.lower() in self._allowed_hosts:
            return True
        for network in self._allowed_networks:
            if address in network:
                return True
        if is_public(address):
            return True
        return self._is_studio_address(port, address)

    def _is_studio_address(self, port: int, address: IpAddress) -> bool:
        """Whether this is Label Studio under another name: localhost and 127.0.0.1, say."""
        _, studio_host, studio_port = _server(self._studio)
        if port != studio_port:
            return False
        return address in resolve(studio_host, port)


def _server(url: SplitResult) -> tuple[str, str, int | None]:
    """(scheme, host, port), however they are written."""
    host = url.hostname or ""
    port = url.port or DEFAULT_PORTS.get(url.scheme)
    return url.scheme, host, port


def resolve(host: str, port: int) -> list[IpAddress]:
    """The addresses of a host, the preferred one first. Raises LinkRefused where it has none."""
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise LinkRefused(f"{host} has no address: {error}") from None
    addresses = []
    for *_, socket_address in entries:
        # With IPv6 more follows: the port, a flow label and a scope.
        text = socket_address[0]
        addresses.append(ip_address(text))
    return addresses


def is_public(address: IpAddress) -> bool:
    """Whether anybody could reach it: it belongs neither to this machine nor to a private network
    nor to one's own cable.
    """
    if isinstance(address, IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour
        if address in TRANSLATED:
            embedded = IPv4Address(address.packed[-4:])
        if embedded is not None:
            return is_public(embedded)
    # Python counts multicast groups as global; who listens may be on one's own cable.
    if address.is_multicast:
        return False
    return address.is_global
