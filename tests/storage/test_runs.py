"""Whole runs on PostgreSQL: the stories of the session, and every command, as on SQLite."""

from __future__ import annotations

import shutil

import parts
import pytest
import runs
import test_session as storys
from runs import edit, labels, read_csv, refused, state, tailor, write_csv

from tailor.errors import TailorError
from tailor.storage import open_store

STORIES = [
    storys.test_every_pick_carries_its_story,
    storys.test_answers_late_in_part_twice_and_skipped,
    storys.test_a_correction_is_as_if_it_had_been_right_at_first,
    storys.test_outside_knowledge_is_credited_to_no_arm,
    storys.test_the_holdout_is_random_and_never_trained_on,
    storys.test_broken_entries_are_set_aside_and_listed,
    storys.test_a_pool_grows_between_rounds,
    storys.test_new_files_that_sort_first_keep_old_positions,
    storys.test_bad_answers_change_nothing,
    storys.test_other_settings_are_refused,
    storys.test_a_full_disk_loses_nothing_and_the_session_goes_on,
]


@pytest.fixture
def on_postgres(postgres, monkeypatch):
    """Every path that a story opens is a run in PostgreSQL; stores are let go of in the end."""
    urls = {}
    opened = []

    def instead(path):
        opened.append(open_store(urls.setdefault(path, postgres.url())))
        return opened[-1]

    monkeypatch.setattr(storys, "SqliteStore", instead)
    yield opened
    for store in opened:
        store.close()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_story(tmp_path, on_postgres, story):
    story(tmp_path)  # which has assertions of its own
    assert {type(store).__name__ for store in on_postgres} == {"PostgresStore"}


def test_an_open_round_goes_on_with_the_same_picks(tmp_path, on_postgres):
    storys.test_an_open_round_goes_on_with_the_same_picks(
        tmp_path, ("galaxy(pending=revealed)", "random")
    )
    assert {type(store).__name__ for store in on_postgres} == {"PostgresStore"}


@pytest.mark.parametrize("kind", ["multi-class", "multi-label"])
@pytest.mark.parametrize("selector", ["tailor", "albl"])
def test_the_same_picks_as_on_sqlite(postgres, tmp_path, monkeypatch, kind, selector):
    """Closed in the middle and opened again, on both."""
    picks = []
    for place in (tmp_path / "a.db", postgres.url()):
        monkeypatch.setattr(storys, "SqliteStore", open_store)
        first = storys.begin(place, kind=kind, selector=selector)
        seen = storys.play(first, 2)
        first.store.close()
        again = storys.begin(place, kind=kind, selector=selector)
        picks.append(seen + storys.play(again, 2))
        events = [(e.number, e.kind, e.body, e.data) for e in again.store.events()]
        again.store.close()
        picks.append([event for event in events if event[1] != "opened"])
    assert picks[0] == picks[2]
    assert [event[:3] for event in picks[1]] == [event[:3] for event in picks[3]]


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    return runs.pictures(tmp_path_factory.mktemp("pool") / "pictures", 90)


def begin(folder, pool, store=None):
    run = folder / "run"
    words = ("--labels", "folder", *runs.QUICK, "--backbone", "pixels(size=8)", "--batch", 10)
    tailor("init", pool, "--run", run, *words)
    edit(run, rounds=2, holdout=0.2, device="cpu", **({"store": store} if store else {}))
    if store:
        tailor("trust", run)  # a new address in the file is asked about
    return run


def use(run, out):
    """Every command that touches a run; what it holds in the end."""
    out.mkdir()
    tailor("run", "--run", run, "--rounds", 1)
    tailor("ask", "--run", run, "-n", 6, "--out", out / "ask.csv")
    rows = [
        {"id": r["id"], "label": r["id"].partition("/")[0], "skip": ""}
        for r in read_csv(out / "ask.csv")
    ]
    rows[0] |= {"label": "", "skip": "x"}
    tailor("tell", write_csv(out / "told.csv", rows), "--run", run, "--by", "ada")
    tailor("export", out / "labels.csv", "--run", run)
    tailor("train", out / "model", "--run", run)
    tailor("predict", out / "model", "--run", run, "--out", out / "predicted.csv")
    return (
        labels(run),
        state(run),
        read_csv(out / "predicted.csv"),
        [row["id"] for row in read_csv(out / "labels.csv")],
    )


def test_every_command(postgres, tmp_path, pool, monkeypatch):
    """The same on SQLite, on PostgreSQL by the settings file, and by the environment."""
    monkeypatch.delenv("TAILOR_STORE", raising=False)
    found = {}
    for name in ("sqlite", "file", "environment"):
        folder = tmp_path / name
        folder.mkdir()
        run = begin(folder, pool, postgres.url() if name == "file" else None)
        if name == "environment":
            monkeypatch.setenv("TAILOR_STORE", postgres.url())
        found[name] = use(run, folder / "out")
        assert (run / "run.db").exists() is (name == "sqlite")
    assert found["file"] == found["sqlite"]
    assert found["environment"] == found["sqlite"]


def test_a_run_moves_and_goes_on(postgres, tmp_path, pool, monkeypatch):
    """Half on SQLite, then moved: the same labels in the end as where nothing moved."""
    monkeypatch.delenv("TAILOR_STORE", raising=False)
    stays = begin(tmp_path, pool)
    tailor("run", "--run", stays, "--rounds", 1)
    moves = shutil.copytree(stays, tmp_path / "moves")
    url = postgres.url()
    tailor("move", moves / "run.db", url)
    said = refused("status", "--run", moves)
    assert "was moved to postgresql://" in said
    assert postgres.password not in said
    edit(moves, store=url)
    tailor("trust", moves)
    for run in (stays, moves):
        tailor("run", "--run", run, "--rounds", 1)
    assert labels(moves) == labels(stays)
    assert len(labels(moves)) > 10


def test_errors_of_the_setting(tmp_path, pool, monkeypatch):
    parts.need("PostgreSQL")
    monkeypatch.delenv("TAILOR_STORE", raising=False)
    run = begin(tmp_path, pool)
    for store, word in (
        ("mysql://me:hush@host/db", "mysql:// is no store"),
        ("postgresql://me:hush/@127.0.0.1/db", "%2F for /"),
        ("postgresql://me:hush@127.0.0.1:1/db", "check that the server runs"),
    ):
        edit(run, store=store)
        for command in (("status",), ("ask",), ("export", tmp_path / "x.csv")):
            with pytest.raises(TailorError, match=word) as caught:
                tailor(*command, "--run", run, "--trust")
            assert "hush" not in str(caught.value)
    edit(run, store="elsewhere.db")
    tailor("run", "--run", run, "--rounds", 1)
    assert (run / "elsewhere.db").exists()
