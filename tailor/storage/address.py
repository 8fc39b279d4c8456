"""The URL of a run in PostgreSQL, read without ever repeating its password."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from tailor.common.distribution import pip_install
from tailor.errors import InputError
from tailor.storage.base import StoreError

URL_SCHEMES = ("postgresql", "postgres")
#: Begins the name of a run's schema.
SCHEMA_PREFIX = "tailor_"
#: Bytes of a run's name: PostgreSQL's limit for any name is 63, of which the prefix takes some.
LONGEST_RUN_NAME = 63 - len(SCHEMA_PREFIX)


def is_url(place: object) -> bool:
    """Whether it is a postgresql:// URL.

    >>> is_url("postgresql://localhost/birds"), is_url("birds.db")
    (True, False)
    """
    if not isinstance(place, str):
        return False
    scheme, separator, _ = place.partition("://")
    return bool(separator) and scheme in URL_SCHEMES


@dataclass(frozen=True)
class Address:
    """A run in a database. str() shows it without the password.

    settings  of the connection, as libpq names them; it finds the rest in PGUSER, ~/.pgpass, ...
    run       the name of the run
    """

    settings: dict[str, Any] = field(repr=False)
    run: str

    @classmethod
    def parse(cls, url: str, run: str | None = None) -> Address:
        """From postgresql://USER:PASSWORD@HOST:PORT/DATABASE?run=NAME; `run` stands in where the
        URL names none.

        Raises InputError where it can't be read (the message does not show the URL) or names no
        run.
        """
        psycopg = driver()
        try:
            parts = urlsplit(url)
            options = parse_qsl(
                parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)
            )
            _check_no_raw_password(url, parts)
            other_options = []
            for name, value in options:
                if name != "run":
                    other_options.append((name, value))
            query = urlencode(other_options, quote_via=quote)
            libpq_url = f"postgresql://{parts.netloc}{parts.path}"
            if query:
                libpq_url += f"?{query}"
            settings = psycopg.conninfo.conninfo_to_dict(libpq_url)
        except (ValueError, psycopg.Error):
            raise InputError(
                "the store's URL can't be read (it is not shown, as it may hold a password): write "
                "postgresql://USER:PASSWORD@HOST:PORT/DATABASE?run=NAME, and in a password %40 "
                "for @, %2F for /, %23 for #, %25 for %, %3A for :, %3F for ?"
            ) from None
        run_name = dict(options).get("run", run)
        if not run_name:
            raise InputError("the store's URL names no run: add ?run=NAME to it")
        return cls(settings, _checked_run_name(run_name))

    @property
    def schema(self) -> str:
        return SCHEMA_PREFIX + self.run

    def __str__(self) -> str:
        user = self._quoted("user")
        if user:
            login = f"{user}@"
        else:
            login = ""
        run = quote(self.run, safe="")
        return f"postgresql://{login}{self._servers()}/{self._quoted('dbname')}?run={run}"

    def _quoted(self, setting: str) -> str:
        return quote(str(self.settings.get(setting, "")), safe="")

    def _servers(self) -> str:
        """HOST:PORT, or several with commas between them, as libpq takes them."""
        hosts = str(self.settings.get("host", "")).split(",")
        ports = str(self.settings.get("port", "")).split(",")
        if len(ports) == 1:
            ports = ports * len(hosts)
        servers = []
        for host, port in zip(hosts, ports):
            if ":" in host:
                quoted_host = f"[{host}]"
            else:
                quoted_host = quote(host, safe="")
            if port:
                servers.append(f"{quoted_host}:{port}")
            else:
                servers.append(quoted_host)
        return ",".join(servers)

    def hide_password(self, text: str) -> str:
        """A message of the driver on one line, without the password in any form."""
        passwords = set()
        for name, value in self.settings.items():
            if "password" in name and value:
                passwords.add(str(value))
        for password in passwords:
            for written in (password, quote(password, safe=""), unquote(password)):
                text = text.replace(written, "***")
        return " ".join(text.split())


def _check_no_raw_password(url: str, parts: SplitResult) -> None:
    """Raises ValueError where a password may have been written raw: its @, / or # moves what
    follows to another part of the URL, where a message might show it.
    """
    has_login = "@" in parts.netloc
    if parts.netloc.count("@") > has_login or "@" in parts.path + parts.query:
        raise ValueError
    if parts.fragment or "#" in url:
        raise ValueError
    host = parts.netloc.rpartition("@")[2]
    if "," not in host:
        _ = parts.port  # raises ValueError for one that is no number


def _checked_run_name(run: str) -> str:
    size = len(run.encode(errors="replace"))
    if "\0" in run or not run.isprintable() or size > LONGEST_RUN_NAME:
        raise InputError(
            f"{run!r} can't be the name of a run in PostgreSQL ({size} bytes; at most "
            f"{LONGEST_RUN_NAME}, and all printable): add ?run=NAME to the store's URL"
        )
    return run


def driver() -> Any:
    """psycopg, which only the extra `postgres` installs. Raises StoreError where it is missing."""
    try:
        import psycopg
    except ImportError as error:
        raise StoreError(
            f"a store in PostgreSQL needs psycopg: {pip_install('postgres')}"
        ) from error
    return psycopg
