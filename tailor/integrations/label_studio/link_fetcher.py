"""Fetching the pictures that tasks link to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tailor.integrations.label_studio.link_guard import DEFAULT_PORTS, LinkGuard, LinkRefused
from tailor.integrations.label_studio.transport import (
    StudioError,
    StudioTransport,
    StudioUnreachable,
    import_httpx,
)

if TYPE_CHECKING:
    import httpx

#: Bytes of a picture.
LARGEST_PICTURE = 100 * 1024 * 1024
#: How often a link may lead on to another.
MOST_REDIRECTS = 10
#: Characters of a link in a message.
LONGEST_SHOWN = 200


class LinkFetcher:
    """Fetches links: from Label Studio with the token, from elsewhere without it.

    allow_links  hosts and networks that are not public and that links may lead to all the same
    """

    def __init__(self, transport: StudioTransport, allow_links: Sequence[str]) -> None:
        httpx = import_httpx()
        self._transport = transport
        # Through httpx.URL, so that it is written as the links that it is compared with.
        studio_url = httpx.URL(transport.url)
        self._guard = LinkGuard(str(studio_url), allow_links)

    def fetch(self, link: str) -> bytes:
        """What a link in a task's data leads to. Every place on the way is checked by a LinkGuard.

        Raises StudioError where it can't be fetched, StudioUnreachable where Label Studio is away.
        """
        httpx = import_httpx()
        shown = repr(link[:LONGEST_SHOWN])
        full_link = link
        if link.startswith("/"):  # as Label Studio writes links to itself
            full_link = self._transport.url + link
        try:
            url = httpx.URL(full_link)
            # Redirects are followed here, not by httpx: the guard looks at each of them.
            for _ in range(MOST_REDIRECTS):
                with self._opened(url) as response:
                    if not response.has_redirect_location:
                        return _content(response, shown)
                    url = url.join(response.headers["location"])
        except (LinkRefused, httpx.InvalidURL) as error:
            raise StudioError(f"{shown} can't be fetched: {error}") from None
        except httpx.HTTPError as error:
            message = f"{shown} can't be fetched: {error}"
            if self._guard.is_studio(str(url)):
                raise StudioUnreachable(message) from None
            raise StudioError(message) from None
        raise StudioError(f"{shown} leads on to another link more than {MOST_REDIRECTS} times")

    @contextlib.contextmanager
    def _opened(self, url: httpx.URL) -> Iterator[httpx.Response]:
        """The response of one place, its content not read yet."""
        httpx = import_httpx()
        with httpx.Client(timeout=self._transport.timeout) as client:
            if self._guard.is_studio(str(url)):
                headers = self._transport.authorization()
                request = client.build_request("GET", url, headers=headers)
                response = client.send(request, stream=True)
            elif url.scheme in DEFAULT_PORTS:
                port = url.port or DEFAULT_PORTS[url.scheme]
                addresses = self._guard.addresses(url.host, port)
                response = _send_to(addresses, client, url)
            else:
                raise LinkRefused("only http, https and Label Studio's own links can")
            yield response


def _send_to(addresses: Sequence[str], client: httpx.Client, url: httpx.URL) -> httpx.Response:
    """The response of the first address that can be connected to.

    The host's name is not looked up again: a second answer could lead elsewhere.
    """
    httpx = import_httpx()
    for number, address in enumerate(addresses):
        request = client.build_request(
            "GET",
            url.copy_with(host=address),
            headers={"Host": url.netloc.decode()},
            extensions={"sni_hostname": url.host},
        )
        try:
            return client.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            is_last = number == len(addresses) - 1
            if is_last:
                raise
    raise LinkRefused(f"{url.host} has no address")


def _content(response: httpx.Response, shown: str) -> bytes:
    if response.status_code != 200:
        raise StudioError(f"{shown} answers {response.status_code}")
    content = bytearray()
    for part in response.iter_bytes():
        content += part
        if len(content) > LARGEST_PICTURE:
            raise StudioError(f"{shown} is larger than {LARGEST_PICTURE >> 20} MiB")
    return bytes(content)
