"""Pictures whose file names are not UTF-8 go through every command like any other."""

from __future__ import annotations

import os
import shutil
import sys

import parts
import pytest
from runs import QUICK, edit, pictures, read_csv, state, tailor, write_csv

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")

#: as they lie on disk, and the ids that are made of them
ODD = {b"one/caf\xe9.png": "one/caf\\xe9.png", b"t\xffwo/x.png": "t\\xffwo/x.png"}


def odd_pictures(folder):
    pool = pictures(folder, 30)
    for name in ODD:
        place = os.path.join(os.fsencode(pool), name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copy(sorted((pool / "one").glob("0*.png"))[0], place)
    return pool


def test_init_run_status_export_train_predict(tmp_path):
    run = tmp_path / "run"
    out = tmp_path / "out"
    pool = odd_pictures(tmp_path / "pictures")
    tailor(
        "init",
        pool,
        "--run",
        run,
        "--labels",
        "folder",
        *QUICK,
        "--backbone",
        "pixels(size=8)",
        "--batch",
        16,
    )
    edit(run, device="cpu", holdout=0.2)
    tailor("run", "--run", run)
    found = state(run)
    assert (found["answered"], list(found["aside"])) == (31, ["one/broken.png"])
    for form in ("csv", "jsonl", "parquet", "folders", "huggingface"):
        said = tailor(
            "export",
            f"{out}-{form}" + (f".{form}" if form in ("csv", "jsonl", "parquet") else ""),
            "--run",
            run,
            "--format",
            form,
        )
        assert "31" in said
    labels = {row["id"]: row["label"] for row in read_csv(tmp_path / "out-csv.csv")}
    assert {one: labels[one] for one in ODD.values()} == {
        one: one.split("/")[0] for one in ODD.values()
    }
    tailor("train", tmp_path / "model", "--run", run)
    tailor("predict", tmp_path / "model", "--run", run, "--out", tmp_path / "predicted.csv")
    assert set(ODD.values()) <= {row["id"] for row in read_csv(tmp_path / "predicted.csv")}


def test_ask_and_tell_through_files(tmp_path):
    run = tmp_path / "run"
    file = tmp_path / "batch.csv"
    pool = odd_pictures(tmp_path / "pictures")
    tailor(
        "init",
        pool,
        "--run",
        run,
        "--classes",
        "a,b",
        *QUICK,
        "--backbone",
        "pixels(size=8)",
        "--batch",
        40,
    )
    tailor("ask", "--out", file, "--run", run)
    rows = read_csv(file)
    assert set(ODD.values()) <= {row["id"] for row in rows}
    tailor(
        "tell",
        write_csv(file, [row | {"label": "ab"[n % 2]} for n, row in enumerate(rows)]),
        "--run",
        run,
    )
    assert state(run)["answered"] == len(rows)


def test_a_closed_folder_with_such_a_name_is_listed(tmp_path, monkeypatch):
    from tailor.pools import image_folder

    pool = odd_pictures(tmp_path / "pictures")
    scandir = os.scandir

    def closed(folder):
        if os.fsencode(folder).endswith(b"t\xffwo"):
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(image_folder.os, "scandir", closed)
    assert image_folder.ImageFolder(pool).set_aside() == {"t\\xffwo/": "Permission denied"}


def test_at_an_address_they_are_set_aside(tmp_path):
    """Names in object storage are UTF-8; a folder at file:// can hold others."""
    parts.need("addresses")
    from tailor.pools import open_pool

    pool = open_pool(f"file://{odd_pictures(tmp_path / 'pictures')}", cache=str(tmp_path / "cache"))
    assert set(pool.set_aside()) == set(ODD.values())
    assert all("not UTF-8" in reason for reason in pool.set_aside().values())
    assert len(pool) == 30
