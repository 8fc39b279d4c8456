"""Models that can't be brought to another process: they predict where they are, whatever the
engine.
"""

from __future__ import annotations

import numpy as np
import pytest
from point_runs import make_points
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from tailor import InputError
from tailor.compute import LocalEngine
from tailor.compute.model_work import Copy
from tailor.models.sklearn_model import SklearnModel
from tailor.pools import open_pool
from tailor.run.engine_model_runner import EngineSetup
from tailor.run.session import Session
from tailor.run.settings import Settings
from tailor.storage import SqliteStore

EXACT = ["galaxy", "confidence", "badge"]
ALL = ["confidence", "bald"]


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    return open_pool(make_points(tmp_path_factory.mktemp("points")), label="label")


def begin(folder, pool, engine, families):
    """A run with a scikit-learn Pipeline. engine None: in memory, without one."""
    settings = Settings(
        "multi-class", ("a", "b", "c"), batch=12, strategies=tuple(families), dropout_passes=3
    )
    steps = (StandardScaler(), FunctionTransformer(np.tanh), LogisticRegression())
    model = SklearnModel(settings.task, pool, make_pipeline(*steps))
    more = {}
    if engine is not None:
        engine_setup = EngineSetup(
            engine,
            folder / "engine",
            lambda model: Copy(model.task, pool.describe(), "sklearn"),
            shard=64,
        )
        more = {"model_runner": engine_setup.model_runner}
    folder.mkdir(exist_ok=True)
    return Session(SqliteStore(folder / "run.db"), pool, model, settings, **more)


def rounds(session, count):
    known = session.pool.labels()
    asked = []
    for _ in range(count):
        asked.append(session.ask().ids)
        session.tell({one: known[one] for one in asked[-1]})
    return asked


def test_a_pipeline_over_shards_goes_on_after_it_was_closed(pool, tmp_path):
    wanted = rounds(begin(tmp_path / "whole", pool, LocalEngine(), EXACT), 3)
    assert wanted[0] == rounds(begin(tmp_path / "memory", pool, None, EXACT), 1)[0]
    first = begin(tmp_path / "cut", pool, LocalEngine(), EXACT)
    assert rounds(first, 2) == wanted[:2]
    some = first.ask(5).ids
    first.store.close()
    assert some + begin(tmp_path / "cut", pool, LocalEngine(), EXACT).ask().ids == wanted[2]


def test_it_says_that_it_stays_and_why_it_can_not_be_saved(pool, tmp_path):
    session = begin(tmp_path / "a", pool, LocalEngine(), ALL)
    rounds(session, 2)
    assert not session.model.travels
    with pytest.raises(
        InputError, match=r"the parameters of sklearn.pipeline.Pipeline can't be written as JSON"
    ):
        session.model.save(tmp_path / "saved")
    plain = SklearnModel(session.settings.task, pool, LogisticRegression(C=0.5))
    assert plain.travels


def test_another_model_is_not_taken_for_this_one(pool, tmp_path):
    """Without saved weights nothing tells two models apart, so nothing that is there is kept."""
    session = begin(tmp_path / "a", pool, LocalEngine(), EXACT)
    rounds(session, 2)
    positions = np.arange(60)
    everything = np.arange(300)
    for seed in (1, 2):
        labels = np.eye(3)[np.random.default_rng(seed).integers(0, 3, 60)]
        session.model.fit(positions, labels, seed=0)
        made = session.model_runner.predict_all(session.settings.task)[0].predictions
        wanted = session.model.predict(everything).probs
        assert np.array_equal(made.take("probs", everything), wanted.astype(np.float16))


@pytest.mark.xdist_group("ray")
def test_on_a_cluster_the_driver_predicts(engine, pool, tmp_path):
    cluster = begin(tmp_path / "cluster", pool, engine, ALL)
    assert rounds(cluster, 2) == rounds(begin(tmp_path / "local", pool, LocalEngine(), ALL), 2)
    assert cluster.session_round.arms.view.engine.name == "ray"
