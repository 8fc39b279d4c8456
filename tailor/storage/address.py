"""Where a run is in PostgreSQL: reading a URL without ever repeating its password."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from tailor.errors import InputError
from tailor.storage.base import StoreError

SCHEMES = ("postgresql", "postgres")
SCHEMA = "tailor_"
#: PostgreSQL's limit for a name is 63 bytes, of which the prefix takes some
LONGEST = 63 - len(SCHEMA)


def is_url(place: object) -> bool:
    return isinstance(place, str) and place.partition("://")[0] in SCHEMES and "://" in place


@dataclass(frozen=True)
class Address:
    """A run in a database. str() shows it without the password."""

    settings: dict[str, Any] = field(
        repr=False
    )  # as libpq names them; it finds the rest in PGUSER, ~/.pgpass, ...
    run: str

    @classmethod
    def parse(cls, url: str, run: str | None = None) -> Address:
        """postgresql://USER:PASSWORD@HOST:PORT/DATABASE?run=NAME; `run` stands in where the URL
        names none.
        """
        psycopg = driver()
        try:
            parts = urlsplit(url)
            login = "@" in parts.netloc
            host = parts.netloc.rpartition("@")[2]
            options = parse_qsl(
                parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)
            )
            # A raw @, / or # of a password moves what follows it to another part, where a message
            # might show it.
            if (
                parts.netloc.count("@") > login
                or "@" in parts.path + parts.query
                or parts.fragment
                or "#" in url
            ):
                raise ValueError
            _ = None if "," in host else parts.port  # raises for one that is no number
            rest = urlencode([(k, v) for k, v in options if k != "run"], quote_via=quote)
            bare = f"postgresql://{parts.netloc}{parts.path}" + (f"?{rest}" if rest else "")
            settings = psycopg.conninfo.conninfo_to_dict(bare)
        except (ValueError, psycopg.Error):
            raise InputError(
                "the store's URL can't be read (it is not shown, as it may hold a password): write "
                "postgresql://USER:PASSWORD@HOST:PORT/DATABASE?run=NAME, and in a password %40 "
                "for @, %2F for /, "
                "%23 for #, %25 for %, %3A for :, %3F for ?"
            ) from None
        named = dict(options).get("run", run)
        if not named:
            raise InputError("the store's URL names no run: add ?run=NAME to it")
        return cls(settings, _checked(named))

    @property
    def schema(self) -> str:
        return SCHEMA + self.run

    def __str__(self) -> str:
        hosts, ports = (str(self.settings.get(key, "")).split(",") for key in ("host", "port"))
        ports = ports * len(hosts) if len(ports) == 1 else ports
        shown = [f"[{h}]" if ":" in h else quote(h, safe="") for h in hosts]
        where = ",".join(f"{h}:{p}" if p else h for h, p in zip(shown, ports))
        user, database = (
            quote(str(self.settings.get(key, "")), safe="") for key in ("user", "dbname")
        )
        return (
            f"postgresql://{user and user + '@'}{where}/{database}?run={quote(self.run, safe='')}"
        )

    def hide(self, text: str) -> str:
        """A message of the driver on one line, and the password in no form."""
        secrets = {str(v) for k, v in self.settings.items() if "password" in k and v}
        for secret in (
            secrets | {quote(s, safe="") for s in secrets} | {unquote(s) for s in secrets}
        ):
            text = text.replace(secret, "***")
        return " ".join(text.split())


def _checked(run: str) -> str:
    size = len(run.encode(errors="replace"))
    if "\0" in run or not run.isprintable() or size > LONGEST:
        raise InputError(
            f"{run!r} can't be the name of a run in PostgreSQL ({size} bytes; at most {LONGEST}, "
            "and all printable): "
            "add ?run=NAME to the store's URL"
        )
    return run


def driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise StoreError(
            "a store in PostgreSQL needs psycopg: pip install 'tailor[postgres]'"
        ) from error
    return psycopg
