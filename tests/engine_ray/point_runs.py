"""Runs on 300 labelled vectors, in shards of 64 rows where an engine has shards."""

from __future__ import annotations

import numpy as np

from tailor.project import Project

TOML = """
[task]
classes = ["a", "b", "c"]
[pool]
path = "{pool}"
label = "label"
[model]
name = "{model}"
[selection]
families = ["galaxy", "confidence", "badge"{family}]
batch = 12
holdout = 0.0
[engine]
name = "{engine}"
shard = 64
{more}
"""


def make_points(folder, scale=1.0):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    rows = ((np.eye(3, 8)[truth] * 2 + rng.normal(size=(300, 8))) * scale).astype(np.float32)
    path = folder / "points.parquet"
    pq.write_table(pa.table({"x": list(rows), "label": [["a", "b", "c"][k] for k in truth]}), path)
    return path


def begin(folder, points, engine, more="", model="probe(head=hidden, hidden=16, steps=40)", family=', "bald"'):
    folder.mkdir()
    (folder / "tailor.toml").write_text(TOML.format(pool=points, engine=engine, more=more, model=model, family=family))
    return folder


def rounds(folder, count):
    """The session, and the ids asked in each round; everything is answered by the known labels."""
    session, asked = Project(folder).session(), []
    known = session.pool.labels()
    for _ in range(count):
        ids = session.ask().ids
        session.tell({one: known[one] for one in ids})
        asked.append(ids)
    return session, asked
