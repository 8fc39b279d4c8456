"""Who may come in: anyone on this machine, anyone with the token, or named users with passwords."""

from __future__ import annotations

import hmac
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from tailor.errors import InputError
from tailor.web.limits import Buckets, Limits, neighbourhood
from tailor.web.sessions import OF_ONE_ADDRESS, OF_ONE_USER, Sessions, csrf_token
from tailor.web.users import Users, check_name

SHORTEST_TOKEN = 16
Mode = Literal["open", "token", "users"]


@dataclass(frozen=True)
class Person:
    """Whoever sends a request."""

    name: str
    cookie: str

    @property
    def csrf(self) -> str:
        return csrf_token(self.cookie)


class TooOften(InputError):
    """Signing in was tried too often."""

    def __init__(self, wait: float) -> None:
        self.wait = max(1, round(wait))
        super().__init__(f"too many tries: wait {self.wait} seconds")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Access:
    """The door of one project.

    host   where the server listens: without users and token only this machine's own address will do
    hosts  further names under which it is called, by a proxy that lets others in: they need users
           or a token too
    token  a shared secret
    name   what a visitor is called who has given no name
    """

    def __init__(
        self,
        folder: Path,
        *,
        host: str = "127.0.0.1",
        token: str | None = None,
        name: str = "me",
        hosts: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.users = Users(folder)
        self.sessions = Sessions(folder)
        self.token = token or None
        self.name = check_name(name)
        self.host = host
        #: of its own for each project, since browsers share cookies between ports
        self.cookie = f"tailor-{sha256(os.fsencode(folder.resolve())).hexdigest()[:12]}"
        # Never by the name alone: then any stranger could lock anyone out.
        self._tries = Buckets(self.limits.tries / 60, self.limits.tries)
        self._tries_in_all = Buckets(self.limits.tries_in_all / 60, self.limits.tries_in_all)
        self._may_be_open = is_loopback(host) and not hosts and not len(self.users)
        if self.token and len(self.token) < SHORTEST_TOKEN:
            raise InputError(
                f"the token has {len(self.token)} characters: at least {SHORTEST_TOKEN} are needed"
            )
        if not self._may_be_open and not self.token and not len(self.users):
            how = f"--allow-host {hosts[0]}" if is_loopback(host) else f"--host {host}"
            raise InputError(
                f"{how} lets others in: add users with `tailor users add NAME`, or give a "
                "--token; without "
                "them the page is for this machine alone (127.0.0.1)"
            )

    @property
    def mode(self) -> Mode:
        if len(self.users):
            # for good: when the last user is removed nobody is let in, instead of everybody
            self._may_be_open = False
            return "users"
        return "token" if self.token else "open" if self._may_be_open else "users"

    def person(self, cookie: str | None) -> Person | None:
        """Who sends this cookie; None for a stranger."""
        found = self.sessions.find(cookie)
        if cookie is None or found is None or found.stamp != self._stamp(found.name):
            return None
        return Person(found.name, cookie)

    def enter(self, address: str) -> str:
        """A session for whoever comes, where that is allowed; the cookie's value."""
        if self.mode != "open":
            raise InputError("sign in first")
        return self._open_session(self.name, address)

    def sign_in(self, name: str, secret: str, address: str) -> str | None:
        """The cookie's value, or None where name and secret don't fit."""
        name = name.strip()
        client = neighbourhood(address)
        mine = f"{client} {name}"
        if wait := self._tries_in_all.take(client):
            raise TooOften(wait)
        if wait := self._tries.take(mine):
            self._tries_in_all.give_back(
                client
            )  # it was no try: the neighbours behind this address are not held up
            raise TooOften(wait)
        if self.mode == "users":
            right = self.users.check(name, secret)
        else:
            name = check_name(name)
            right = self.token is None or hmac.compare_digest(secret.encode(), self.token.encode())
        if not right:
            return None
        self._tries_in_all.give_back(
            client
        )  # only those who fail are slowed: a class may come in at once
        self._tries.give_back(mine)
        return self._open_session(name, address)

    def rename(self, name: str, cookie: str, address: str) -> str:
        """The same browser under another name, in a session that replaces its old one; the new
        cookie's value. Named users keep their names.
        """
        if self.mode == "users":
            raise InputError(
                "names belong to their passwords here: sign out, and in again as someone else"
            )
        return self._open_session(check_name(name), address, instead_of=cookie)

    def _open_session(self, name: str, address: str, instead_of: str | None = None) -> str:
        """Sessions count by user; where anyone may take a colleague's name, by address."""
        is_user = self.mode == "users"
        owner, most = (name, OF_ONE_USER) if is_user else (neighbourhood(address), OF_ONE_ADDRESS)
        return self.sessions.open(name, self._stamp(name) or "", owner, most, instead_of)

    def _stamp(self, name: str) -> str | None:
        if self.mode == "users":
            return self.users.stamp(name)
        return sha256((self.token or "open").encode()).hexdigest()[:16]
