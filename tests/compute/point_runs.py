"""Runs on labelled vectors, in shards of 64 rows where an engine has shards."""

from __future__ import annotations

import numpy as np

from tailor.run.project import Project

TOML = """
[task]
{task}
[pool]
path = "{pool}"
label = "label"
[model]
name = "{model}"
[selection]
strategies = {strategies}
batch = 12
holdout = 0.0
{selection}
[engine]
name = "{engine}"
shard = 64
{more}
"""
FAMILIES = ["galaxy", "confidence", "badge", "bald"]
MODEL = "probe(head=hidden, hidden=16, steps=40)"


def make_points(folder, scale=1.0):
    """300 vectors of three classes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    rows = ((np.eye(3, 8)[truth] * 2 + rng.normal(size=(300, 8))) * scale).astype(np.float32)
    path = folder / "points.parquet"
    pq.write_table(pa.table({"x": list(rows), "label": [["a", "b", "c"][k] for k in truth]}), path)
    return path


def begin(
    folder,
    points,
    engine,
    more="",
    *,
    model=MODEL,
    strategies=FAMILIES,
    task='classes = ["a", "b", "c"]',
    selection="",
):
    """more, task, selection: lines for these sections."""
    given = {
        "model": model,
        "strategies": strategies,
        "task": task,
        "selection": selection,
        "more": more,
    }
    folder.mkdir()
    (folder / "tailor.toml").write_text(TOML.format(pool=points, engine=engine, **given))
    return folder


def rounds(folder, count):
    """The session, and the ids asked in each round; everything is answered by the known labels."""
    session = Project(folder).session()
    asked = []
    known = session.pool.labels()
    for _ in range(count):
        ids = session.ask().ids
        session.tell({one: known[one] for one in ids})
        asked.append(ids)
    return session, asked
