"""backup, restore, check and salvage: a copy is a copy, and damage does not end a run."""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest
from runs import begin, edit, labels, python_m, refused, state, tailor

from tailor.run.project import Project
from tailor.run.trust import remember_settings
from tailor.storage import SqliteStore, StoreDamaged, open_store
from tailor.storage.move import fingerprint
from tailor.storage.run_head import head_path


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A run with two batches answered and a model."""
    folder = tmp_path_factory.mktemp("home")
    run = begin(folder)
    tailor("run", "--run", run, "--rounds", 2)
    tailor("train", run / "model", "--run", run)
    return folder


@pytest.fixture(autouse=True)
def no_store_from_outside(monkeypatch):
    monkeypatch.delenv("TAILOR_STORE", raising=False)


@pytest.fixture(params=["sqlite", "postgres"])
def run(request, home, tmp_path):
    """A run of one's own, in either store."""
    copy = shutil.copytree(home, tmp_path / "copy") / "run"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").url()
        tailor("move", copy / "run.db", url)
        edit(copy, store=url)
        remember_settings(copy)  # the address is new in the file
    return copy


@pytest.fixture
def file_run(home, tmp_path):
    return shutil.copytree(home, tmp_path / "copy") / "run"


def content(folder):
    with Project(folder).store(readonly=True) as store:
        return fingerprint(store.examples(), store.events())


def test_a_backup_of_a_run_in_use_is_restored_event_by_event(run, tmp_path):
    """While a process has it open for writing, and goes on."""
    project = Project(run)
    with project.store() as store:
        store.append("files", {"reasons": {}})
        said = tailor("backup", tmp_path / "backup", "--run", run)
        whole = fingerprint(store.examples(), store.events())
        store.append("files", {"reasons": {}})
    assert whole.sha256[:16] in said
    assert content(tmp_path / "backup") == whole
    names = {path.name for path in (tmp_path / "backup").iterdir()}
    assert {"run.db", "run.db.head", "tailor.toml"} <= names
    assert labels(tmp_path / "backup") == labels(run)  # the copy is a run
    assert "127.0.0.1" not in (tmp_path / "backup" / "tailor.toml").read_text()
    restored = tmp_path / "restored"
    said = tailor("restore", tmp_path / "backup", "--run", restored)
    assert whole.sha256[:16] in said
    assert content(restored) == whole
    message = refused("restore", tmp_path / "backup", "--run", run)
    assert "holds a run already" in message


def test_a_damaged_run_is_put_aside_for_its_backup(file_run, tmp_path):
    tailor("backup", tmp_path / "backup", "--run", file_run)
    before = labels(file_run)
    file = file_run / "run.db"
    file.write_bytes(file.read_bytes()[:5000])
    damaged = file.read_bytes()
    assert "holds a damaged run" in refused("restore", tmp_path / "backup", "--run", file_run)
    said = tailor("restore", tmp_path / "backup", "--run", file_run, "--replace")
    assert "What was there is in" in said
    assert (file_run / "run.db.replaced" / "run.db").read_bytes() == damaged
    assert labels(file_run) == before
    tailor("run", "--run", file_run, "--rounds", 1)


def test_a_backup_goes_to_a_new_folder_and_a_damaged_run_has_none(file_run, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    refused("backup", tmp_path / "full", "--run", file_run)
    file = file_run / "run.db"
    content = bytearray(file.read_bytes())
    start = content.rindex(b'{"answers"')
    content[start + 15] ^= 1
    file.write_bytes(content)
    refused("backup", tmp_path / "backup", "--run", file_run)
    assert not (tmp_path / "backup").exists()
    assert "no run.db in" in refused("restore", tmp_path / "none", "--run", file_run)


def test_an_open_run_is_complete_in_its_file_after_every_round(file_run, tmp_path):
    """Copied alone, it is refused: what came since is in its log."""
    project = Project(file_run)
    session = project.session()
    session.ask()
    assert session.run_state.waiting
    alone = tmp_path / "alone"
    alone.mkdir()
    for name in ("run.db", "tailor.toml"):
        shutil.copyfile(file_run / name, alone / name)
    shutil.copyfile(head_path(file_run / "run.db"), head_path(alone / "run.db"))
    kinds = "SELECT count(*) FROM events WHERE kind = 'round'"
    db = sqlite3.connect(f"file:{alone / 'run.db'}?immutable=1", uri=True)
    assert db.execute(kinds).fetchone() == (len(session.run_state.rounds),)
    db.close()
    for ids in ([session.waiting()[0].id], [session.waiting()[1].id]):
        session.tell(dict.fromkeys(ids, "one"))
    for name in ("run.db", "run.db.head"):
        shutil.copyfile(file_run / name, alone / name)
    for command in (("status",), ("export", tmp_path / "x.csv"), ("ask",)):
        assert "that were written" in refused(*command, "--run", alone)
    (alone / "run.db.head").unlink()
    for command in (("status",), ("export", tmp_path / "x.csv"), ("ask",)):
        assert "was copied while the run was open" in refused(*command, "--run", alone)
    assert not (tmp_path / "x.csv").exists()
    session.store.close()
    shutil.copyfile(file_run / "run.db", alone / "run.db")  # when it is closed, the file is all
    assert labels(alone) == labels(file_run)


def test_check_says_what_is_whole(run):
    said = tailor("check", run)
    assert said.count(": whole (") == 3  # the store, the features, the model
    rows = next((run / "cache").glob("*/rows.bin"))
    rows.write_bytes(rows.read_bytes()[:-3])
    weights = run / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    result = python_m("check", run)
    assert result.returncode == 2
    assert "2 problems" in result.stderr
    assert "rows for" in result.stdout
    assert "model.safetensors" in result.stdout


def test_check_names_the_damaged_event(file_run):
    damage_answer(file_run)
    result = python_m("check", file_run)
    assert result.returncode == 2
    assert "(told) of" in result.stdout
    assert "is damaged" in result.stdout


def damage_answer(run):
    """Give some answers and flip a bit in one of them -> the number of its event, and of all."""
    session = Project(run).session()
    for pick in session.ask(6):
        session.tell({pick.id: "one"})
    session.store.close()
    with SqliteStore(run / "run.db", readonly=True) as store:
        told = [event for event in store.events() if event.kind == "told"]
        all_events = store.last().number
    event = told[-4]
    file = run / "run.db"
    content = bytearray(file.read_bytes())
    body = json.dumps(event.body, separators=(",", ":")).encode()
    assert content.count(body) == 1
    content[content.index(body) + 12] ^= 1
    file.write_bytes(content)
    return event.number, all_events


def test_salvage_leaves_out_what_is_damaged_and_nothing_else(file_run, tmp_path):
    before = labels(file_run)
    number, all_events = damage_answer(file_run)
    damaged = (file_run / "run.db").read_bytes()
    refused("status", "--run", file_run)
    said = tailor("check", file_run, "--salvage", tmp_path / "new")
    assert f"{all_events} events are in {tmp_path / 'new'}; 1 are not whole" in said
    assert f"event {number} (told): it is not what was written" in said
    assert (file_run / "run.db").read_bytes() == damaged
    after = labels(tmp_path / "new")
    assert set(before) < set(after)
    assert len(after) == len(before) + 5  # of the six answers, all but the damaged one
    assert "damaged" not in tailor("check", tmp_path / "new")
    tailor("ask", "--run", tmp_path / "new", "--out", tmp_path / "ask.csv")


def test_salvage_stops_where_what_follows_has_no_ground(file_run, tmp_path):
    """The last page is gone, and the events in it: what was before them is a run."""
    before = labels(file_run)
    file = file_run / "run.db"
    head = head_path(file).read_bytes()
    with SqliteStore(file) as store:
        last = store.last().number
        rounds = [event.number for event in store.events() if event.kind == "round"]
    db = sqlite3.connect(file)
    db.execute("DELETE FROM events WHERE number = ?", (rounds[-1],))
    db.commit()
    db.close()
    head_path(file).write_bytes(head)
    said = tailor("check", file_run, "--salvage", tmp_path / "new")
    assert f"{rounds[-1] - 1} events are in" in said
    assert f"event {rounds[-1]}: it can't be read" in said
    left_out = (tmp_path / "new" / "left_out.jsonl").read_text().splitlines()
    assert len(left_out) == last - rounds[-1] - 1  # the next one can't be checked
    assert set(labels(tmp_path / "new")) < set(before)
    assert state(tmp_path / "new")["answered"] > 0


def test_nothing_can_be_saved_of_an_empty_file(file_run, tmp_path):
    (file_run / "run.db").write_bytes(b"")
    message = refused("check", file_run, "--salvage", tmp_path / "new")
    assert "no event can be read" in message
    assert not (tmp_path / "new").exists()
    with pytest.raises(StoreDamaged, match=r"though .* events were written to it"):
        open_store(file_run / "run.db")
