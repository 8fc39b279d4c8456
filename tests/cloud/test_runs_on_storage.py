"""A run whose pool lies on object storage, from `tailor init` to predictions, by commands alone."""

from __future__ import annotations

import csv
import json

import numpy as np
from pool_samples import parquet
from typer.testing import CliRunner

from tailor.cli.app import app

CENTRES = {"left": -3.0, "right": 3.0}


def tailor(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None:
        raise done.exception
    return done.stdout


def vectors(bucket, folder, prefix, count):
    """Two shards below a prefix, of vectors around one centre a class -> id: class."""
    rng = np.random.default_rng(count)
    known = {}
    for shard in range(2):
        names = [f"{prefix}-{shard}-{n}" for n in range(count // 2)]
        known |= {name: rng.choice(list(CENTRES)) for name in names}
        rows = [
            (CENTRES[known[name]] + rng.normal(size=4)).astype(np.float32).tolist()
            for name in names
        ]
        made = parquet(folder / f"{prefix}-{shard}.parquet", {"name": names, "embedding": rows})
        bucket.put_file(f"{prefix}/part-{shard}.parquet", made)
    return known


def answer(path, known):
    """Fill in the empty labels of an ask.csv."""
    with path.open(newline="") as file:
        rows = [row | {"label": known[row["id"]]} for row in csv.DictReader(file)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return {row["id"] for row in rows}


def test_a_run_from_init_to_predictions(storage, tmp_path):
    known = vectors(storage, tmp_path, "pool", 60)
    others = vectors(storage, tmp_path, "new", 20)
    run = tmp_path / "run"
    asked = tmp_path / "ask.csv"
    model = ("--model", "probe(steps=20)", "--backbone", "given", "--batch", 8)
    said = tailor(
        "init",
        f"{storage.address}/pool",
        "--run",
        run,
        "--classes",
        "left,right",
        "--key",
        "name",
        *model,
    )
    assert "60 examples, 2 classes" in said
    assert f'path = "{storage.address}/pool"' in (run / "tailor.toml").read_text()

    answered = set()
    for _ in range(2):  # the second batch is chosen by a model
        tailor("ask", "--run", run, "-n", 8, "--out", asked)
        batch = answer(asked, known)
        assert len(batch) == 8
        assert not batch & answered
        answered |= batch
        tailor("tell", asked, "--run", run)
    assert json.loads(tailor("status", "--run", run, "--json"))["answered"] == 16

    tailor("train", tmp_path / "model", "--run", run)
    for pool, truth in ((), known), (("--pool", f"{storage.address}/new"), others):
        out = tmp_path / "predictions.csv"
        tailor("predict", tmp_path / "model", "--run", run, "--out", out, *pool)
        with out.open(newline="") as file:
            found = {row["id"]: row["prediction"] for row in csv.DictReader(file)}
        assert set(found) == set(truth)
        assert np.mean([found[name] == truth[name] for name in truth]) > 0.95
