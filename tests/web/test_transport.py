"""TLS of its own, and proxies: only those that are listed are believed."""

from __future__ import annotations

import contextlib
import shutil
import ssl
import subprocess
import threading
import time

import parts
import pytest
import sites
from signing_in import TOKEN

parts.need("labelling page")
import httpx

from tailor.errors import InputError
from tailor.web.connections import Connections, Patience
from tailor.web.proxies import Proxies
from tailor.web.serve import listening, make_server, url
from tailor.web.sign_in_log import SignInLog
from tailor.web.tls import tls_files

LONG = 60  # seconds, for slow machines


@contextlib.contextmanager
def running(project, *, proxies=(), tls=None):
    """The pages of a project behind a real socket, with a token."""
    with listening("127.0.0.1", 0) as sock:
        coordinator = sites.Coordinator(project)
        access = sites.Access(project.folder, token=TOKEN, proxies=proxies)
        server = make_server(
            sites.create_app(project, coordinator, access),
            proxies=Proxies.parse(proxies),
            tls=tls,
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        end = time.monotonic() + LONG
        while not server.started:
            assert time.monotonic() < end
            time.sleep(0.01)
        try:
            yield url("127.0.0.1", sock.getsockname()[1], is_encrypted=tls is not None)
        finally:
            server.should_exit = True
            thread.join(LONG)


@pytest.fixture
def project(tmp_path, pool):
    return sites.begin(tmp_path / "run", pool)


FORGED = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Proto": "https",
    "X-Real-IP": "203.0.113.8",
    "Forwarded": "for=203.0.113.7;proto=https",
    "X-Forwarded-Host": "evil.example",
}


def sign_in(address: str, headers: dict[str, str]) -> httpx.Response:
    form = {"name": "anna", "secret": TOKEN}
    return httpx.post(f"{address}/login", data=form, headers=headers, timeout=LONG)


@pytest.mark.parametrize(
    ("proxies", "seen", "is_secure"),
    [
        ((), "127.0.0.1", False),
        (("10.0.0.0/8",), "127.0.0.1", False),
        (("127.0.0.1",), "203.0.113.9", True),
        (("10.0.0.1", "127.0.0.0/8"), "203.0.113.9", True),
    ],
)
def test_what_a_proxy_says_counts_where_it_is_listed(project, proxies, seen, is_secure):
    with running(project, proxies=proxies) as address:
        answer = sign_in(address, FORGED)
    assert answer.status_code == 303
    assert ("secure" in answer.headers["set-cookie"].lower()) is is_secure
    assert SignInLog(project.folder).latest(1)[0].address == seen


def test_what_a_visitor_adds_before_a_proxy_is_not_believed(project):
    """The proxy appends where the request came from: what stands before it is the visitor's."""
    forged = {"X-Forwarded-For": "198.51.100.1, 203.0.113.9"}
    with running(project, proxies=("127.0.0.1",)) as address:
        sign_in(address, forged)
    assert SignInLog(project.folder).latest(1)[0].address == "203.0.113.9"


@pytest.mark.parametrize("address", ["proxy.example.org", "10.0.0.1/8", "", "127.0.0.1:80"])
def test_a_proxy_is_listed_by_its_address(address):
    with pytest.raises(InputError, match=r"--proxy .* Give the IP address"):
        Proxies.parse([address])


def test_a_proxy_lets_others_in_who_need_users_or_a_token(tmp_path):
    with pytest.raises(InputError, match=r"--proxy 127.0.0.1 lets others in"):
        sites.Access(tmp_path, proxies=["127.0.0.1"])


class FakeTransport:
    def is_closing(self):
        return False


class BusyConnection:
    """One that is being answered: it gives way to nobody."""

    transport = FakeTransport()
    is_waiting = False
    has_begun = False
    waiting_since = 0.0


def test_only_a_listed_proxy_has_any_number_of_connections():
    patience = Patience(connections=9, of_address=1, proxies=Proxies.parse(["10.0.0.1"]))
    connections = Connections(patience)
    assert all(connections.admit(BusyConnection(), "10.0.0.1") for _ in range(3))
    assert connections.admit(BusyConnection(), "10.0.0.2")
    assert not connections.admit(BusyConnection(), "10.0.0.2")


# ---------------------------------------------------------------------- TLS


def make_certificate(folder, *, passphrase: str = ""):
    """(certificate, key) for 127.0.0.1, signed by itself."""
    if shutil.which("openssl") is None:
        pytest.skip(parts.reason("labelling page", "install the command openssl"))
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    words += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    words += ["-keyout", str(key), "-out", str(certificate)]
    words += ["-passout", f"pass:{passphrase}"] if passphrase else ["-nodes"]
    subprocess.run(words, check=True, capture_output=True, timeout=LONG)
    return certificate, key


def test_a_real_handshake_with_a_certificate_of_ones_own(project, tmp_path):
    certificate, key = make_certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=str(certificate))
    with running(project, tls=tls_files(certificate, key)) as address:
        assert address.startswith("https://127.0.0.1:")
        with httpx.Client(base_url=address, verify=trusting, timeout=LONG) as client:
            answer = client.post("/login", data={"name": "anna", "secret": TOKEN})
            assert answer.status_code == 303
            assert "secure" in answer.headers["set-cookie"].lower()
            assert client.get("/api/session").json()["name"] == "anna"
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            httpx.get(f"{address}/login", timeout=LONG)
        with pytest.raises(httpx.TransportError):  # no word of it in the clear
            httpx.get(f"{address.replace('https', 'http')}/login", timeout=LONG)


def test_files_that_can_not_be_used_are_told_at_once(tmp_path):
    certificate, key = make_certificate(tmp_path)
    assert tls_files(None, None) is None
    with pytest.raises(InputError, match="belong together"):
        tls_files(certificate, None)
    with pytest.raises(InputError, match=r"--tls-key .*nowhere: there is no such file"):
        tls_files(certificate, tmp_path / "nowhere")
    other = tmp_path / "other"
    other.mkdir()
    _, other_key = make_certificate(other)
    with pytest.raises(InputError, match="can't be used for TLS"):
        tls_files(certificate, other_key)
    with pytest.raises(InputError, match="can't be used for TLS"):
        tls_files(key, key)
    _, locked = make_certificate(other, passphrase="open sesame")
    with pytest.raises(InputError, match="locked by a passphrase"):
        tls_files(other / "certificate.pem", locked)
