"""Who is let in: anyone on this machine, anyone with the token, or named users with passwords."""

from __future__ import annotations

import hmac
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from tailor.annotation.roles import OWNER, Right, may
from tailor.errors import InputError
from tailor.web.limits import Limits, RateLimiter, client_network
from tailor.web.sessions import OF_ONE_ADDRESS, OF_ONE_USER, Sessions, csrf_token
from tailor.web.sign_in_log import SignInLog
from tailor.web.users import Users, check_name

SHORTEST_TOKEN = 16
Mode = Literal["open", "token", "users"]


@dataclass(frozen=True)
class Visitor:
    """Whoever sends a request, signed in under a name."""

    name: str
    cookie: str  # the value of the session's cookie
    role: str = OWNER

    @property
    def csrf(self) -> str:
        """What changes must send along; see sessions.csrf_token."""
        return csrf_token(self.cookie)

    def may(self, right: Right | str) -> bool:
        """Whether this visitor's role has the right, or the right of this name."""
        if not isinstance(right, Right):
            right = Right[right]
        return may(self.role, right)


class TooManyTries(InputError):
    """Signing in was tried too often; `wait` seconds until the next try."""

    def __init__(self, wait: float) -> None:
        self.wait = max(1, round(wait))
        super().__init__(f"too many tries: wait {self.wait} seconds")


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
        return address.is_loopback
    except ValueError:
        return False


def _per_minute(tries: float) -> RateLimiter:
    return RateLimiter(rate=tries / 60, burst=tries)


class Access:
    """Sign-in to one project.

    host     where the server listens: without users and token only this machine's own address will
             do
    hosts    further names under which it is called, by a proxy that lets others in: they need users
             or a token too
    proxies  addresses of proxies before it: whoever they let in needs users or a token too
    token    a shared secret
    name     what a visitor is called who has given no name
    """

    def __init__(
        self,
        folder: Path,
        *,
        host: str = "127.0.0.1",
        token: str | None = None,
        name: str = "me",
        hosts: Sequence[str] = (),
        proxies: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.users = Users(folder)
        self.sessions = Sessions(folder)
        self.sign_in_log = SignInLog(folder)
        self.token = token or None
        self.name = check_name(name)
        self.host = host
        # Of its own for each project, since browsers share cookies between ports.
        folder_hash = sha256(os.fsencode(folder.resolve())).hexdigest()
        self.cookie_name = f"tailor-{folder_hash[:12]}"
        # Never by the name alone: then any stranger could lock anyone out.
        self._tries_by_name = _per_minute(self.limits.tries)
        self._tries_by_address = _per_minute(self.limits.tries_in_all)
        has_users = len(self.users) > 0
        is_local = is_loopback(host) and not hosts and not proxies
        self._may_be_open = is_local and not has_users
        self._check_token()
        if not is_local and not has_users and not self.token:
            option = f"--host {host}"
            if is_loopback(host):
                if hosts:
                    option = f"--allow-host {hosts[0]}"
                else:
                    option = f"--proxy {proxies[0]}"
            raise InputError(
                f"{option} lets others in: add users with `tailor users add NAME`, or give a "
                "--token; without them the page is for this machine alone (127.0.0.1)"
            )

    def _check_token(self) -> None:
        if self.token is None:
            return
        length = len(self.token)
        if length < SHORTEST_TOKEN:
            raise InputError(
                f"the token has {length} characters: at least {SHORTEST_TOKEN} are needed"
            )

    @property
    def mode(self) -> Mode:
        """How visitors sign in now; users may be added while the server runs."""
        if len(self.users):
            # For good: when the last user is removed nobody is let in, instead of everybody.
            self._may_be_open = False
            return "users"
        if self.token:
            return "token"
        if self._may_be_open:
            return "open"
        return "users"

    def visitor(self, cookie: str | None) -> Visitor | None:
        """Who sends this cookie; None for a stranger."""
        session = self.sessions.find(cookie)
        if cookie is None or session is None:
            return None
        if session.stamp != self._stamp(session.name):
            return None
        role = self._role(session.name)
        if role is None:  # removed this very moment
            return None
        return Visitor(session.name, cookie, role)

    def _role(self, name: str) -> str | None:
        """Looked up with every request, so that a new one counts at once. Without users everybody
        is owner: names are free, and whoever is let in is trusted with all.
        """
        if self.mode == "users":
            return self.users.role(name)
        return OWNER

    def enter(self, address: str) -> str:
        """Open a session for whoever comes, where that is allowed; returns the cookie's value."""
        if self.mode != "open":
            raise InputError("sign in first")
        return self._open_session(self.name, address)

    def sign_in(self, name: str, secret: str, address: str) -> str | None:
        """The cookie's value, or None where name and secret don't fit; raises TooManyTries."""
        name = name.strip()
        if self.mode != "users":
            name = check_name(name)
        is_right = self._try_secret(name, secret, address)
        if not is_right:
            self._log("wrong password or token", name, address)
            return None
        cookie = self._open_session(name, address)
        self._log("signed in", name, address)
        return cookie

    def sign_out(self, visitor: Visitor, address: str) -> None:
        self.sessions.close(visitor.cookie)
        self._log("signed out", visitor.name, address)

    def change_password(self, visitor: Visitor, old: str, new: str, address: str) -> str | None:
        """A user's new password, which ends all his sessions but the one that replaces this one:
        its cookie's value, or None where the old password is not right. Raises TooManyTries.
        """
        if self.mode != "users":
            raise InputError("there are no passwords here: visitors sign in without, or by a token")
        is_right = self._try_secret(visitor.name, old, address)
        if not is_right:
            self._log("wrong password or token", visitor.name, address)
            return None
        self.users.change_password(visitor.name, new)
        cookie = self._open_session(visitor.name, address, instead_of=visitor.cookie)
        self._log("password changed", visitor.name, address)
        return cookie

    def _try_secret(self, name: str, secret: str, address: str) -> bool:
        """Whether this password or token lets the visitor in. Raises TooManyTries."""
        client = client_network(address)
        name_at_client = f"{client} {name}"
        wait = self._tries_by_address.take(client)
        if wait:
            raise TooManyTries(wait)
        wait = self._tries_by_name.take(name_at_client)
        if wait:
            # It was no try: the neighbours behind this address are not held up.
            self._tries_by_address.give_back(client)
            raise TooManyTries(wait)
        if self.mode == "users":
            is_right = self.users.check(name, secret)
        else:
            is_right = self._is_token(secret)
        if is_right:
            # Only those who fail are slowed: a class may come in at once.
            self._tries_by_address.give_back(client)
            self._tries_by_name.give_back(name_at_client)
        return is_right

    def _log(self, what: str, name: str, address: str) -> None:
        # What is no user's name may be a password in the wrong field.
        is_known = self.mode != "users" or self.users.role(name) is not None
        shown_name = None
        if is_known:
            shown_name = name
        self.sign_in_log.write(what, shown_name, address)

    def _is_token(self, secret: str) -> bool:
        if self.token is None:
            return True
        # In the same time, wherever they differ.
        return hmac.compare_digest(secret.encode(), self.token.encode())

    def rename(self, name: str, cookie: str, address: str) -> str:
        """The same browser under another name, in a session that replaces its old one; returns the
        new cookie's value. Named users keep their names.
        """
        if self.mode == "users":
            raise InputError(
                "names belong to their passwords here: sign out, and in again as someone else"
            )
        return self._open_session(check_name(name), address, instead_of=cookie)

    def _open_session(self, name: str, address: str, instead_of: str | None = None) -> str:
        stamp = self._stamp(name) or ""
        if self.mode == "users":
            owner = name
            most = OF_ONE_USER
        else:
            # Anyone may take a colleague's name here: sessions count by address.
            owner = client_network(address)
            most = OF_ONE_ADDRESS
        return self.sessions.open(
            name,
            stamp,
            owner,
            most,
            instead_of,
        )

    def _stamp(self, name: str) -> str | None:
        """A text that changes with the password or token that a visitor signed in with, which ends
        the session; None where the user was removed.
        """
        if self.mode == "users":
            return self.users.stamp(name)
        secret = self.token or "open"
        secret_hash = sha256(secret.encode()).hexdigest()
        return secret_hash[:16]
