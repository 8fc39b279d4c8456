"""Labels out of a run, from Python: odd names, provenance, vanished files."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from small import Centroids, Points, answer, settings

from tailor.errors import InputError, UnknownName
from tailor.pools import open_pool
from tailor.run.export import FORMATS, export, file_name, rows
from tailor.run.session import SKIP, Session
from tailor.run.state import RunState
from tailor.storage import SqliteStore


@pytest.fixture
def session(tmp_path):
    pool = Points(60, broken=(5,))
    chosen = settings()
    with SqliteStore(tmp_path / "run.db") as store:
        session = Session(store, pool, Centroids(chosen.task, pool), chosen)
        for _ in range(2):
            asked = session.ask()
            session.tell({i: answer(pool, "multi-class", i) for i in asked.ids}, by="someone")
        yield session


def test_rows_tell_where_each_label_came_from(session):
    outside = next(
        i
        for i in session.pool.ids
        if i not in {s["id"] for s in rows(session.run_state)} and i != "p00005"
    )
    session.tell({outside: "b"})
    found = {row["id"]: row for row in rows(session.run_state)}
    assert len(found) == 25
    assert found[outside] | {"time": ""} == {
        "id": outside,
        "label": "b",
        "source": "told",
        "holdout": False,
        "round": None,
        "slot": None,
        "arm": None,
        "chance": None,
        "annotator": None,
        "time": "",
        "prediction": None,
        "confidence": None,
    }
    for one, row in found.items():
        pick_record = session.run_state.pick_record(session.run_state.position[one])
        if one != outside:
            assert (row["round"], row["slot"], row["arm"]) == (
                pick_record.round,
                pick_record.slot,
                pick_record.arm,
            )
            assert (row["annotator"], row["source"]) == ("someone", "asked")
            assert row["chance"] == pytest.approx(pick_record.chance, abs=1e-6)


def test_a_correction_and_a_skip_reach_the_rows(session):
    first = next(rows(session.run_state))
    other = "a" if first["label"] != "a" else "b"
    session.tell({first["id"]: other}, by="second")
    again = next(rows(session.run_state))
    assert (again["label"], again["annotator"], again["arm"]) == (other, "second", first["arm"])
    skipped = session.ask(1).ids[0]
    session.tell({skipped: SKIP})
    assert skipped not in {row["id"] for row in rows(session.run_state)}


def test_predictions_cover_all_that_can_be_read(session):
    session.final_fit()
    probs, _ = session.predict(np.arange(60))
    found = list(rows(session.run_state, probs))
    assert {row["id"] for row in found} == set(session.pool.ids) - {"p00005"}
    for row in found:
        own = probs[session.run_state.position[row["id"]]]
        assert row["prediction"] == "abc"[own.argmax()]
        assert row["confidence"] == pytest.approx(own.max(), abs=1e-5)
        assert (row["source"] == "predicted") == (row["label"] is None)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "huggingface"])
def test_a_run_without_labels_exports_nothing(tmp_path, form):
    run_state = RunState(settings())
    out = tmp_path / (f"out.{form}" if form != "huggingface" else "out")
    assert export(run_state, out, form, pool=Points(3)) == 0
    assert out.exists()


def test_parquet_keeps_types_and_an_error_leaves_nothing(session, tmp_path):
    out = tmp_path / "out" / "labels.parquet"
    with pytest.raises(FileNotFoundError):
        export(session.run_state, out, "parquet")
    out.parent.mkdir()
    assert export(session.run_state, out, "parquet") == 24
    table = pq.read_table(out)
    assert [p.name for p in out.parent.iterdir()] == ["labels.parquet"]
    assert {str(table.schema.field(n).type) for n in ("round", "slot")} == {"int64"}
    assert table.to_pylist() == list(rows(session.run_state))


def test_unknown_formats_and_missing_pools(session, tmp_path):
    with pytest.raises(UnknownName, match="did you mean 'parquet'"):
        export(session.run_state, tmp_path / "x", "parqet")
    for form in ("folders", "huggingface"):
        with pytest.raises(InputError, match=r"images only|pool is needed"):
            export(session.run_state, tmp_path / "x", form)
    assert not (tmp_path / "x").exists()
    assert set(FORMATS) == {"csv", "jsonl", "parquet", "folders", "huggingface"}


@pytest.mark.parametrize(
    "name", ["..", ".", "a/b", "../../etc", "a\\b", "c:", "nul\0", "%2e", "ü b", "..."]
)
def test_safe_names_stay_inside_and_differ(tmp_path, name):
    safe = file_name(name)
    assert (tmp_path / safe).resolve().parent == tmp_path.resolve()
    others = ["..", ".", "a/b", "../../etc", "a\\b", "c:", "nul\0", "%2e", "ü b", "...", "a%2fb"]
    assert [other for other in others if file_name(other) == safe] == [name]


def test_folders_of_several_labels_and_odd_class_names(tmp_path):
    """A picture stands in each of its classes; one without any in (none); no class name leads out
    of the folder.
    """
    (tmp_path / "pool" / "sub").mkdir(parents=True)
    for name in ("x.png", "sub/x.png", "y.png"):
        Image.fromarray(np.full((4, 4, 3), len(name), np.uint8)).save(tmp_path / "pool" / name)
    pool = open_pool(tmp_path / "pool")
    chosen = settings(kind="multi-label", classes=("../up", "a/b", ".."), holdout=0.0)
    with SqliteStore(tmp_path / "run.db") as store:
        session = Session(store, pool, Centroids(chosen.task, pool), chosen)
        session.tell({"x.png": ["../up", ".."], "sub/x.png": ["a/b"], "y.png": []})
    assert export(session.run_state, tmp_path / "out", "folders", pool=pool) == 3
    found = sorted(
        p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*.png")
    )
    assert found == sorted(["..%2fup/x.png", "%2e%2e/x.png", "a%2fb/sub%2fx.png", "(none)/y.png"])
    assert sorted(p.name for p in tmp_path.iterdir() if not p.name.startswith("run.db")) == [
        "out",
        "pool",
    ]
