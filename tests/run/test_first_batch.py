"""The first batch of a run: random, or a cover of the pool, also where the pool is read late."""

from __future__ import annotations

import numpy as np
import pytest

from tailor import MultiClass
from tailor.models import make_model
from tailor.models.base import Model, Prediction
from tailor.pools.arrays import Arrays
from tailor.run.holdout import wilson
from tailor.run.session import Session
from tailor.run.settings import Settings
from tailor.storage import SqliteStore

CLASSES = ("a", "b", "c", "d")


def points(rows=200):
    """Four far groups, of which one is rare: 2 of 100."""
    rng = np.random.default_rng(0)
    group = rng.choice(4, rows, p=[0.4, 0.4, 0.18, 0.02])
    group[:2] = 3
    return 20 * np.eye(4, 6)[group] + rng.normal(size=(rows, 6)), group


def session_of(folder, start, *, batch=4, holdout=0.0, model=None, seed=0):
    vectors, _ = points()
    pool = Arrays(vectors)
    task = MultiClass(CLASSES)
    settings = Settings(
        "multi-class", CLASSES, strategies=("margin",), batch=batch, holdout=holdout, seed=seed,
        start=start,
    )  # fmt: skip
    made = make_model("probe", task, pool, device="cpu") if model is None else model(task, pool)
    return Session(SqliteStore(folder / "run.db"), pool, made, settings)


def groups_of(picks):
    _, group = points()
    return {int(group[int(pick.id)]) for pick in picks}


def covers_all(folder, start, seed):
    session = session_of(folder, start, batch=8, seed=seed)
    picks = session.ask()
    session.store.close()
    return groups_of(picks) == {0, 1, 2, 3}


def test_a_cover_finds_the_rare_group_and_a_random_batch_seldom(tmp_path):
    found = {"coverage": 0, "random": 0}
    for seed in range(10):
        for start in found:
            folder = tmp_path / f"{start}-{seed}"
            folder.mkdir()
            found[start] += covers_all(folder, start, seed)
    assert found["coverage"] >= 8
    assert found["random"] <= 4


def test_a_cover_says_what_it_is(tmp_path):
    picks = session_of(tmp_path, "coverage").ask()
    assert {pick.arm for pick in picks} == {"coverage start"}


def test_half_of_a_half_start_is_random(tmp_path):
    session = session_of(tmp_path, "half", batch=8)
    arms = [pick.arm for pick in session.ask()]
    assert sorted(arms) == ["coverage start"] * 4 + ["random start"] * 4


def test_the_start_is_the_same_after_a_restart(tmp_path):
    session = session_of(tmp_path, "coverage", batch=8)
    first = [pick.id for pick in session.ask(3)]
    session.store.close()
    again = session_of(tmp_path, "coverage", batch=8)
    rest = [pick.id for pick in again.ask()]
    other = tmp_path / "other"
    other.mkdir()
    whole = [pick.id for pick in session_of(other, "coverage", batch=8).ask()]
    assert first + rest == whole


def test_the_cover_is_completed_around_random_picks(tmp_path):
    """As on the page: the first round does not wait for features, the second is a start too."""
    session = session_of(tmp_path, "coverage", batch=8)
    drafted = session.draft(quick=True)
    assert session.enter(drafted)
    first = session.ask()
    assert [pick.arm for pick in first] == ["random start"] * 4
    session.tell({pick.id: "a" for pick in first})
    second = session.ask()
    assert [pick.arm for pick in second] == ["coverage start"] * 4
    assert groups_of([*first, *second]) == {0, 1, 2, 3}
    session.tell({pick.id: "b" for pick in second})
    third = session.ask()
    assert {pick.arm for pick in third} == {"margin"}


def test_the_hold_out_stays_random_and_a_start_is_one_round(tmp_path):
    session = session_of(tmp_path, "coverage", batch=40, holdout=0.3)
    picks = session.ask()
    arms = [pick.arm for pick in picks]
    assert set(arms) == {"coverage start", "hold-out"}
    session.tell({pick.id: "abcd"[number % 4] for number, pick in enumerate(picks)})
    assert {pick.arm for pick in session.ask()} <= {"margin", "hold-out"}


class NoFeatures(Model):
    """A model of somebody's own that has no features before it is trained."""

    def fit(self, positions, labels, *, seed, progress=None):
        self.share = labels.mean(0)

    def predict(self, positions, progress=None):
        probs = np.tile(self.share, (len(positions), 1)).astype(np.float32)
        return Prediction(probs, np.zeros((len(positions), 1), np.float32))

    def save(self, folder):
        np.save(folder / "share.npy", self.share)

    def load(self, folder):
        self.share = np.load(folder / "share.npy")


def test_the_hold_out_beside_a_cover_estimates_without_bias(tmp_path):
    """The cover takes far more of the rare group than its share: what is held out must not. Some
    model is right on the groups 0 and 1 alone, and its accuracy on the pool is to be estimated.
    """
    _, group = points()
    is_right = group <= 1
    true_accuracy = is_right.mean()
    seeds = 150
    estimates = []
    inside = 0
    for seed in range(seeds):
        folder = tmp_path / str(seed)
        folder.mkdir()
        session = session_of(folder, "coverage", batch=60, holdout=0.5, seed=seed)
        session.ask()
        holdout = np.flatnonzero(session.run_state.label_table.picks.holdout)
        session.store.close()
        right = is_right[holdout].mean()
        low, high = wilson(float(right), len(holdout))
        estimates.append(right)
        inside += low <= true_accuracy <= high
    error = np.std(estimates) / np.sqrt(seeds)
    assert abs(np.mean(estimates) - true_accuracy) < 4 * error
    assert inside >= 0.9 * seeds


def test_without_features_the_start_is_random_and_says_so(tmp_path):
    with pytest.warns(match="first batch is random"):
        picks = session_of(tmp_path, "coverage", model=NoFeatures).ask()
    assert {pick.arm for pick in picks} == {"random start"}
