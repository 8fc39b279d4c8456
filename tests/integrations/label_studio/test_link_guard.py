"""Links in tasks lead to public addresses, to Label Studio, or where the user allows it."""

from __future__ import annotations

import contextlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address

import pytest
from studio_runs import COLOURS, connected_run, settings
from studio_server import TOKEN, http
from test_their_tasks import picture

from tailor.errors import InputError
from tailor.integrations.label_studio.client import Studio
from tailor.integrations.label_studio.link_fetcher import MOST_REDIRECTS
from tailor.integrations.label_studio.link_guard import LinkGuard, LinkRefused, is_public
from tailor.integrations.label_studio.transport import StudioError

STUDIO = "http://127.0.0.1:8080"


class Site:
    """A web server at an address of this machine that remembers what it was asked."""

    def __init__(
        self, address: str, port: int = 0, content: bytes = b"content", location: str | None = None
    ) -> None:
        self.asked: list[dict[str, str]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.asked.append(dict(self.headers))
                self.send_response(302 if location else 200)
                self.send_header("Content-Length", "0" if location else str(len(content)))
                if location:
                    self.send_header("Location", location)
                self.end_headers()
                self.wfile.write(b"" if location else content)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer((address, port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://{address}:{self.port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site():
    """site("127.0.0.1", ...): closed at the end."""
    http()
    with contextlib.ExitStack() as stack:

        def make(*given, **options):
            found = Site(*given, **options)
            stack.callback(found.close)
            return found

        yield make


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%lo",
        "fd00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
    ],
)
def test_these_are_not_public(address):
    assert not is_public(ip_address(address))
    with pytest.raises(LinkRefused, match=r"which is not public: .* --allow-links"):
        LinkGuard("http://studio.test:8080").addresses(address, 80)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::808:808"]
)
def test_these_are(address):
    assert is_public(ip_address(address))
    assert LinkGuard(STUDIO).addresses(address, 80) == [str(ip_address(address))]


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "localhost"])
def test_other_ways_to_write_this_machine(host):
    with pytest.raises(LinkRefused):
        LinkGuard("http://studio.test:8080").addresses(host, 80)


def test_label_studio_itself_under_another_name():
    guard = LinkGuard(STUDIO)
    assert "127.0.0.1" in guard.addresses("localhost", 8080)
    with pytest.raises(LinkRefused):
        guard.addresses("localhost", 8081)
    assert guard.is_studio(STUDIO + "/data/1.png")
    assert not guard.is_studio("http://localhost:8080/data/1.png")  # it may not see the token


@pytest.mark.parametrize(
    ("url", "link"),
    [
        ("http://studio.test:80", "http://studio.test/data/1.png"),
        ("http://studio.test", "http://studio.test:80/data/1.png"),
        ("https://studio.test:443", "https://STUDIO.test/data/1.png"),
        ("HTTPS://Studio.Example.com", "https://studio.example.com/data/1.png"),
        ("http://[::1]:80", "http://[::1]/data/1.png"),
    ],
)
def test_label_studios_address_may_be_written_in_several_ways(url, link):
    assert LinkGuard(url).is_studio(link)
    scheme, _, rest = link.partition("://")
    assert not LinkGuard(url).is_studio(f"{scheme}://other.test/data/1.png")
    assert not LinkGuard(url).is_studio(f"{'http' if scheme == 'https' else 'https'}://{rest}")


@pytest.mark.parametrize(
    "url", ["http://x:80", "https://Studio.Example.com", "http://Bücher.example"]
)
def test_its_own_pictures_are_fetched_with_the_token(url, monkeypatch):
    httpx = http()
    sent = []

    def send(client, request, **_):
        sent.append(request)
        return httpx.Response(200, content=b"a picture", request=request)

    monkeypatch.setattr(httpx.Client, "send", send)
    assert Studio(url, TOKEN, 1).links.fetch("/data/upload/1.png") == b"a picture"
    assert [request.headers["Authorization"] for request in sent] == [f"Token {TOKEN}"]


def test_what_the_user_allows():
    guard = LinkGuard("http://studio.test", ["10.1.0.0/16", "localhost", "::1"])
    assert guard.addresses("10.1.200.3", 80) == ["10.1.200.3"]
    assert "127.0.0.1" in guard.addresses("LOCALHOST", 80)
    assert guard.addresses("::1", 80) == ["::1"]
    for other in ("10.2.0.1", "127.0.0.1"):
        with pytest.raises(LinkRefused):
            guard.addresses(other, 80)
    for odd in ("", "http://10.0.0.1", "10.0.0.0/99", "a b"):
        with pytest.raises(InputError, match="links are allowed from"):
            LinkGuard(STUDIO, [odd])


def test_a_host_without_address():
    with pytest.raises(LinkRefused, match="has no address"):
        LinkGuard(STUDIO).addresses("nowhere.invalid", 80)


def test_a_link_to_this_machine_is_not_followed(site):
    secret = site("127.0.0.1")
    for link in (secret.url, secret.url.replace("127.0.0.1", "localhost")):
        with pytest.raises(StudioError, match="which is not public"):
            Studio(STUDIO, TOKEN, 1).links.fetch(link)
    assert secret.asked == []
    assert Studio(STUDIO, TOKEN, 1, allow_links=["127.0.0.1"]).links.fetch(secret.url) == b"content"
    assert "Authorization" not in secret.asked[0]
    assert secret.asked[0]["Host"] == f"127.0.0.1:{secret.port}"


def test_every_place_that_a_link_leads_through_is_checked(site):
    secret = site("127.0.0.1")
    outside = site("127.0.0.2", location=secret.url)
    studio = site("127.0.0.3", location=outside.url)
    allowed = Studio(studio.url, TOKEN, 1, allow_links=["127.0.0.2"])
    for link in (outside.url, "/data/1.png", studio.url + "/data/1.png"):
        with pytest.raises(StudioError, match=r"127.0.0.1 is at 127.0.0.1, which is not public"):
            allowed.links.fetch(link)
    assert secret.asked == []
    assert len(outside.asked) == 3
    assert not any("Authorization" in asked for asked in outside.asked)
    assert [asked["Authorization"] for asked in studio.asked] == [f"Token {TOKEN}"] * 2


def test_a_link_that_leads_round_in_circles(site):
    outside = site("127.0.0.2", location="/again")
    with pytest.raises(StudioError, match="more than 10 times"):
        Studio(STUDIO, TOKEN, 1, allow_links=["127.0.0.2"]).links.fetch(outside.url)
    assert len(outside.asked) == MOST_REDIRECTS


def test_a_name_that_changes_its_address_meanwhile(site, monkeypatch):
    """It is looked up once, and what was checked is what is connected to."""
    outside = site("127.0.0.2", content=b"a picture")
    secret = site("127.0.0.1", outside.port)
    answers = ["127.0.0.2", "127.0.0.1", "127.0.0.1"]
    real = socket.getaddrinfo

    def lookup(host, *given, **options):
        return real(answers.pop(0) if host == "pictures.test" else host, *given, **options)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    studio = Studio(STUDIO, TOKEN, 1, allow_links=["127.0.0.2"])
    assert studio.links.fetch(f"http://pictures.test:{outside.port}/1.png") == b"a picture"
    assert outside.asked[0]["Host"] == f"pictures.test:{outside.port}"
    assert len(answers) == 2
    with pytest.raises(StudioError, match="not public"):
        studio.links.fetch(f"http://pictures.test:{outside.port}/1.png")
    assert secret.asked == []


@pytest.mark.parametrize(
    "link", ["ftp://example.com/1.png", "1.png", "file:///etc/passwd", "http://[", "http://"]
)
def test_odd_links(link):
    http()
    with pytest.raises(StudioError, match="can't be fetched"):
        Studio(STUDIO, TOKEN, 1).links.fetch(link)


def test_a_project_with_links_to_this_machine(make_project, site, tmp_path):
    project = make_project("image", "multiple", COLOURS)
    secret = site("127.0.0.1", content=picture("red"))
    link = f"{secret.url}/1.png"
    project.load({"image": link}, {"image": link.replace("127.0.0.1", "localhost")})
    messages = []
    with (
        pytest.raises(InputError, match="has no task to label"),
        connected_run(project, tmp_path / "run", settings=settings("image"), messages=messages),
    ):
        pass
    assert secret.asked == []
    assert sum("has no picture" in text and "--allow-links" in text for text in messages) == 2
    with connected_run(
        project, tmp_path / "run", settings=settings("image"), allow_links=["127.0.0.0/8", "::1"]
    ) as connection:
        assert len(connection.sync.session.run_state.ids) == 2
    assert len(secret.asked) == 2
