"""What only PostgreSQL has: rights, encodings, other people's schemas, passwords, and no NUL."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import traceback

import pytest

from tailor.errors import InputError, TailorError
from tailor.storage import (
    PostgresStore,
    StoreBusy,
    StoreError,
    StoreMissing,
    is_begun,
    open_store,
    parse_place,
)
from tailor.storage import postgres_schema as schema

SECRET = "s3cret-w0rd"


def run_of(url):
    return url.partition("run=")[2]


def tables(postgres, url):
    found = postgres.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = %s", f"tailor_{run_of(url)}"
    )
    return sorted(name for (name,) in found)


def test_runs_share_a_database_and_nothing_else(postgres):
    urls = [postgres.url() for _ in range(3)]
    stores = [open_store(url) for url in urls]  # all of them for writing, at once
    for i, store in enumerate(stores):
        store.add_examples(["x"])
        assert [store.append("told", {"n": i}) for _ in range(i)] == list(range(2, 2 + i))
    for i, (store, url) in enumerate(zip(stores, urls)):
        with open_store(url, readonly=True) as reader:
            assert [e.body["n"] for e in reader.events(after=1)] == [i] * i
        store.close()


def test_the_run_is_named_by_the_url_or_by_the_folder(postgres, tmp_path):
    bare = postgres.url(run="x").partition("?")[0]
    with pytest.raises(InputError, match=r"add \?run=NAME"):
        open_store(bare)
    for name in ("photos", "Фото & 猫 'n' \"dogs\"", "x" * 56):
        with open_store(bare, run=name) as store:
            store.append("told", {"name": name})
        assert is_begun(bare, name)
    assert not is_begun(bare, "photos2")
    for bad in ("x" * 57, "é" * 29, "a\nb", "a\0", "\ud800"):
        with pytest.raises(InputError, match="can't be the name of a run"):
            open_store(bare, run=bad)
    with open_store(f"{bare}?run=photos", run="elsewhere", readonly=True) as store:
        assert store.last().body == {"name": "photos"}
    with pytest.raises(InputError, match=r"mysql:// is no store"):
        parse_place(f"mysql://me:{SECRET}@host/db", tmp_path)


def test_nul_is_refused_in_words(postgres):
    with open_store(postgres.url()) as store:
        for use in (lambda: store.add_examples(["fine", "a\0b"]), lambda: store.append("a\0b", {})):
            with pytest.raises(
                InputError, match=r"'a.x00b' holds a NUL character, which PostgreSQL can't store"
            ):
                use()
        store.append("told", {"text": "\0"})  # inside an event it is JSON, and no matter
        assert [e.body for e in store.events()] == [{"text": "\0"}]
        assert store.examples() == []


def test_commits_are_flushed_whatever_the_database_says(postgres):
    postgres.execute("CREATE DATABASE hasty")
    postgres.execute("ALTER DATABASE hasty SET synchronous_commit = off")
    postgres.execute("ALTER DATABASE hasty SET default_transaction_read_only = on")
    with open_store(postgres.url("hasty")) as store:
        store.append("told", {})
        assert store._session.connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
        assert store._session.connection.execute("SHOW tcp_keepalives_idle").fetchone() == (
            "30",
        )  # a vanished writer is noticed
        assert (
            store._session.connection.info.get_parameters()["tcp_user_timeout"] == "30000"
        )  # and a vanished server


def test_a_newer_format_is_left_alone(postgres):
    url = postgres.url()
    open_store(url).close()
    postgres.execute(f'UPDATE "tailor_{run_of(url)}".format SET version = {schema.VERSION + 1}')
    for readonly in (False, True):
        with pytest.raises(
            StoreError, match=rf"newer tailor .format {schema.VERSION + 1}, this one knows"
        ):
            open_store(url, readonly=readonly)
    assert tables(postgres, url) == ["events", "examples", "format", "head"]


def test_another_s_schema_and_another_encoding_are_refused(postgres):
    url = postgres.url()
    postgres.execute(f'CREATE SCHEMA "tailor_{run_of(url)}" CREATE TABLE mine (x integer)')
    with pytest.raises(StoreError, match="is not a run of tailor"):
        open_store(url)
    assert tables(postgres, url) == ["mine"]
    postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(StoreError, match="has encoding LATIN1: make a database"):
        open_store(postgres.url("latin"))


def test_rights(postgres):
    """Who may only read can read; who may not begin a run is told which right to ask for."""
    url = postgres.url()
    with open_store(url) as store:
        store.append("told", {"n": 1})
    postgres.execute(f"CREATE ROLE guest LOGIN PASSWORD '{SECRET}'")
    name = f'"tailor_{run_of(url)}"'
    guest = url.replace(f"tailor:{postgres.password}", f"guest:{SECRET}")
    with pytest.raises(StoreError, match="permission denied"):
        open_store(guest, readonly=True)
    postgres.execute(f"GRANT USAGE ON SCHEMA {name} TO guest")
    postgres.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO guest")
    with open_store(guest, readonly=True) as reader:
        assert [e.body for e in reader.events()] == [{"n": 1}]
    with (
        open_store(url),
        pytest.raises(StoreBusy, match=f"in use by tailor on .*, process {os.getpid()}"),
    ):
        open_store(guest)  # one of another user is named too
    with open_store(guest) as writer, pytest.raises(StoreError, match="ask for the right"):
        writer.append("told", {})
    with pytest.raises(StoreError, match="GRANT CREATE ON DATABASE"):
        open_store(guest + "2")


def test_a_dropped_run_is_explained(postgres):
    url = postgres.url()
    with open_store(url) as store:
        postgres.execute(f'DROP SCHEMA "tailor_{run_of(url)}" CASCADE')
        with pytest.raises(StoreError, match="was its schema dropped"):
            store.append("told", {})
    with pytest.raises(StoreMissing):
        open_store(url, readonly=True)


def test_passwords_are_never_shown(postgres, caplog):
    """Not in an error, not in its traceback, not in the log; and URLs that can't be read are not
    repeated.
    """
    caplog.set_level(logging.DEBUG)
    good = postgres.url()
    wrong = good.replace(postgres.password, SECRET)
    odd = [f"{c}{SECRET}" for c in "@/#?%:"] + [f"1{c}{SECRET}" for c in "@/#?%:"]
    urls = [
        wrong,
        wrong + "&sslmode=nonsense",
        wrong + "&bogus=1",
        wrong.replace(str(postgres.port), "1"),
        wrong.replace("127.0.0.1", "nowhere.invalid"),
        wrong.replace("/postgres?", "/nothing?"),
        f"{good}&password={SECRET}",
        f"{good}&password={SECRET}@x",
        wrong + "&connect_timeout=x",
        *(good.replace(postgres.password, one) for one in odd),
    ]
    for url in urls:
        with pytest.raises(TailorError) as caught:
            open_store(url)
        told = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
        assert SECRET not in told, url
    with open_store(good) as store:
        for again in (good, good + "&application_name=x"):
            with pytest.raises(StoreError) as caught:
                open_store(again)
            assert postgres.password not in "".join(traceback.format_exception(caught.value))
        assert postgres.password not in f"{store.address} {store.address!r} {store!r}"
    assert SECRET not in caplog.text
    assert postgres.password not in caplog.text


def test_wrong_password_and_wrong_place_say_what_to_do(postgres):
    url = postgres.url()
    for other, word in (
        (url.replace(postgres.password, SECRET), "PGPASSWORD or ~/.pgpass"),
        (url.replace("/postgres?", "/nothing?"), "createdb NAME"),
        (url.replace(str(postgres.port), "1"), "check that the server runs"),
    ):
        with pytest.raises(StoreError, match=word):
            open_store(other)


def test_a_password_from_the_environment(postgres, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    with open_store(postgres.url().replace(f":{postgres.password}", "")) as store:
        assert store.append("told", {}) == 1


def test_without_psycopg_the_extra_is_named_and_sqlite_works(tmp_path):
    code = """
import sys
sys.modules["psycopg"] = None
from tailor.storage import StoreError, open_store
assert open_store(sys.argv[1]).append("told", {}) == 1
try:
    open_store("postgresql://host/db?run=x")
except StoreError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "a.db"], capture_output=True, text=True, check=True
    )
    assert "pip install 'tailor-active-learning[postgres]'" in done.stdout


def test_the_class_takes_the_run_by_name(postgres):
    bare = postgres.url().partition("?")[0]
    with PostgresStore(bare, run="by name") as store:
        store.append("told", {})
    assert is_begun(bare + "?run=by%20name")
