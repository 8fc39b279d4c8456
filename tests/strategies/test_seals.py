"""seals against the plain definition: neighbours by hand, and the family's own oracle on them."""

from __future__ import annotations

import numpy as np
import parts
import pytest
from cases import cases, many, open_arm, others, walk
from hypothesis import given
from hypothesis import strategies as st
from oracles import free_now, score_of

import tailor.strategies.neighbours
from tailor import InputError, Learner, MultiClass, MultiLabel
from tailor.compute import LocalEngine
from tailor.selection.array_view import ArrayView
from tailor.selection.subset_view import SubsetView
from tailor.strategies import make_arms, make_strategy, registry
from tailor.strategies.costs import PoolShape
from tailor.strategies.neighbours import DISTANCE_UNITS, FaissSearch, Neighbours, mean_features
from tailor.strategies.seals import Seals
from tailor.testing import make_pool, make_view
from tailor.testing.engines import check_same_picks, families_for

KINDS = [MultiClass, MultiLabel]


def unit_rows(view):
    features = view.features.double().numpy()
    rows = features - features.mean(0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 1e-9)


def check_neighbours(view, query, neighbours, count):
    """The `count` nearest others; which of those at the same distance is left open."""
    rows = unit_rows(view)
    squared = np.square(rows - rows[query]).sum(1)
    others_by_distance = sorted(np.delete(squared, query))
    expected = others_by_distance[:count]
    assert query not in neighbours
    assert len(set(neighbours)) == len(neighbours) == min(count, view.size - 1)
    given = np.sort(squared[neighbours])
    assert given == pytest.approx(expected, abs=4 / DISTANCE_UNITS)


class SealsOracle:
    """Reads the ledger as it stands, measures nothing twice."""

    def __init__(self, view, family, count, klass):
        self.view = view
        neighbours = Neighbours(count, "exact")
        #: checked against the definition by check_neighbours
        self.around = set(neighbours.around(view, view.labelled).tolist())
        for query in view.labelled.tolist():
            check_neighbours(view, query, neighbours.around(view, np.array([query])), count)
        self.score = score_of(family, view, klass)

    def pick(self):
        free = free_now(self.view)
        near = [position for position in free if position in self.around]
        return min(near or free, key=lambda i: (self.score(i), self.view.ties[i]))


@many(80)
@given(cases(sizes=(1, 24)), others, st.sampled_from([1, 2, 5, 100]))
def test_the_family_takes_from_the_neighbours_and_then_from_all(case, share, count):
    family = "margin" if isinstance(case.task, MultiClass) else "uncertainty"
    klass = None if family == "margin" else case.task.size - 1
    view = case.view()
    oracle = SealsOracle(view, family, count, klass)
    cursor = open_arm(Seals(family=family, neighbours=count), view, klass)

    def check(index):
        assert index == oracle.pick()

    walk(view, cursor, case.seed, share, check)


@pytest.mark.parametrize("kind", KINDS)
def test_where_all_are_neighbours_the_picks_are_the_familys_own(kind):
    """Takes, ties, random draws and all else come out as over the pool itself."""
    task = kind(3)
    pool = make_pool(task, 30, seed=2, grid=16, copies=0.2)
    for family in families_for(task):
        if family == "seals":
            continue
        picks = []
        for name in (family, f"seals({family}, neighbours=30)"):
            view = make_view(pool, 2, labelled=0.2, pending=0.1)
            cursor = open_arm(make_strategy(name), view, klass=0, pulls=5)
            rng = np.random.default_rng(1)
            for _ in range(8):
                view.ledger.take(cursor.take())
                # Another arm's take, and the label of it.
                other = int(rng.choice(np.flatnonzero(view.ledger.free)))
                view.ledger.take(other)
                view.ledger.reveal(other, pool.truth[other])
            picks.append(view.ledger.taken.tolist())
        assert picks[0] == picks[1], family


def test_what_others_take_is_heard_by_a_family_that_keeps_its_distance():
    """coreset: the farthest from all that is labelled or taken."""
    features = np.array([[0, 1], [1, 0.2], [1, 0.1], [-1, 0.2], [-1, 0.1]], float)
    view = ArrayView(MultiClass(2), np.full((5, 2), 0.5), features, labelled=[0], labels=[[1, 0]])
    cursor = open_arm(Seals(family="coreset"), view)
    view.ledger.take(1)
    assert cursor.take() in (3, 4)


def test_neighbours_grow_as_labels_come_and_begin_anew_with_the_features(monkeypatch):
    queries = []
    exact = tailor.strategies.neighbours.ExactSearch.nearest

    def watched(search, view, positions, count):
        queries.append(positions.tolist())
        return exact(search, view, positions, count)

    monkeypatch.setattr(tailor.strategies.neighbours.ExactSearch, "nearest", watched)
    pool = make_pool(MultiClass(3), 60, seed=1)
    learner = Learner(pool.task, 60, strategies=["seals(margin, neighbours=3)"], batch=4)
    told = [3, 40, 17, 5]
    learner.tell(told, pool.truth[told])
    for features in (pool.features, pool.features, pool.features + 1e-3 * pool.features**2):
        batch = learner.ask(pool.probs, features)
        learner.tell(batch.indices, pool.truth[batch.indices])
        told += batch.indices.tolist()
    first, second, after_change = [sorted(positions) for positions in queries]
    assert first == sorted(told[:4])
    assert second == sorted(told[4:8])
    assert after_change == sorted(told[:12])


def test_a_pick_is_explained_and_named_after_both():
    arms = make_arms(["seals(galaxy, neighbours=7)"], MultiClass(["cat", "dog"]))
    assert [arm.name for arm in arms] == ["seals(galaxy)[cat]", "seals(galaxy)[dog]"]
    words = arms[0].strategy.explanation()
    assert "as galaxy does, among the 7 nearest neighbours" in words
    assert "in the whole pool" in words


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("seals(margin)", {"family": "margin"}),
        ("seals(galaxy, neighbours=50)", {"family": "galaxy", "neighbours": 50}),
        ("seals(family=galaxy)", {"family": "galaxy"}),
        (
            "seals(badge(scale=none, a=1), neighbours=5)",
            {"family": "badge(scale=none, a=1)", "neighbours": 5},
        ),
        ("seals(family=galaxy(pending=predicted))", {"family": "galaxy(pending=predicted)"}),
    ],
)
def test_a_family_within_a_family_is_read_from_its_name(text, options):
    assert registry.parse(text) == ("seals", options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seals(magin)", "unknown arm family 'magin': did you mean 'margin'"),
        ("seals(seals(margin))", "name the family within alone"),
        ("seals(margin, neighbours=0)", "neighbours is 0: at least 1"),
        ("seals(margin, index=fast)", "index is 'fast': it must be one of auto, exact, faiss"),
        ("seals(margin, 50)", "'50' is not option=value"),
        ("seals(galaxy(pending=never))", "pending is 'never'"),
    ],
)
def test_what_cannot_be_wrapped(text, message):
    with pytest.raises(InputError, match=message):
        make_strategy(text)


def test_the_other_task_is_refused_by_the_family_within():
    with pytest.raises(InputError, match=r"'seals\(margin\)' is for multi-class tasks"):
        make_arms(["seals(margin)"], MultiLabel(2))


@pytest.mark.parametrize("kind", KINDS)
def test_over_shards_the_picks_are_those_in_memory(kind, tmp_path):
    pool = make_pool(kind(4), 200, seed=4, dims=6, copies=0.1)
    families = ["seals(galaxy, neighbours=8)", "seals(herding)", "seals(random, neighbours=1)"]
    check_same_picks(
        LocalEngine(), pool, families, tmp_path, seed=5, shard=64, dtype=np.float16, labelled=0.05
    )


def test_a_large_pool_without_the_index_names_both_ways_out(monkeypatch):
    monkeypatch.setattr(tailor.strategies.neighbours, "LARGE_POOL", 30)
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    view = make_view(make_pool(MultiClass(3), 40, seed=1), 1)
    with pytest.raises(InputError, match=r"active-learning\[neighbours\]'; or .*index=exact"):
        open_arm(Seals(family="margin"), view)
    exact = open_arm(Seals(family="margin", index="exact"), view)
    assert view.free[exact.take()]


@parts.needs("faiss")
def test_the_index_finds_most_neighbours_and_the_same_each_time():
    rng = np.random.default_rng(3)
    features = rng.standard_normal((4000, 8)).astype(np.float32)
    view = ArrayView(MultiClass(2), np.full((4000, 2), 0.5), features)
    queries = np.arange(0, 4000, 80)
    search = FaissSearch(view, mean_features(view))
    neighbours = search.nearest(view, queries, 20)
    again = FaissSearch(view, mean_features(view)).nearest(view, queries, 20)
    exact = Neighbours(20, "exact")
    found = 0
    for query, near, same in zip(queries, neighbours, again, strict=True):
        assert near.tolist() == same.tolist()
        assert query not in near
        assert len(near) == 20
        found += len(np.intersect1d(near, exact.around(view, np.array([query]))))
    assert found > 0.8 * 20 * len(queries)


@parts.needs("faiss")
def test_a_round_with_the_index(monkeypatch):
    monkeypatch.setattr(tailor.strategies.neighbours, "LARGE_POOL", 200)
    pool = make_pool(MultiClass(3), 300, seed=1, dims=6)
    learner = Learner(pool.task, 300, strategies=["seals(margin, neighbours=5)"], batch=10)
    learner.tell(np.arange(10), pool.truth[:10])
    batch = learner.ask(pool.probs, pool.features)
    assert len(set(batch.indices.tolist())) == 10


def test_a_subset_is_a_pool_of_its_own():
    pool = make_pool(MultiClass(3), 30, seed=1)
    view = make_view(pool, 1, labelled=0.2, pending=0.1)
    taken, *offered = view.free_ids[:6].tolist()
    view.ledger.take(taken)
    subset = SubsetView(view, np.array(offered))
    positions = subset.positions
    assert positions[subset.labelled].tolist() == view.labelled.tolist()
    assert positions[subset.free].tolist() == offered
    assert set(positions[subset.pending].tolist()) == {*view.pending.tolist(), taken}
    whole = slice(None)
    assert (subset.rows(whole) == view.rows(whole)[positions]).all()
    assert (subset.rows(whole, [1]) == view.rows(whole)[positions][:, [1]]).all()
    assert (subset.feature_rows(whole) == view.feature_rows(whole)[positions]).all()
    assert subset.ties.tolist() == view.ties[positions].tolist()
    outside = int(view.free_ids[-1])
    for position in (outside, offered[0]):
        view.ledger.take(position)
        view.ledger.reveal(position, pool.truth[position])
    view.ledger.withdraw(offered[0])
    subset.follow()
    subset.follow()
    assert positions[subset.ledger.taken].tolist() == [offered[0]]
    assert [positions[place] for place, _ in subset.ledger.revealed] == [offered[0]] * 2


def test_its_cost_is_the_search_and_the_familys_on_few():
    shape = PoolShape(examples=1_000_000, classes=1000, features=512, labelled=100)
    work = make_strategy("seals(margin, neighbours=9)").opening_work(shape)
    margin_on_few = 2 * 1000 * 1000
    assert work.bytes_read == shape.feature_bytes + margin_on_few
    assert work.flops == 2 * 1_000_000 * 1000 * 512
    exact = make_strategy("seals(margin, index=exact)")
    assert exact.opening_work(shape).flops == 2 * 1_000_000 * 100 * 512
    assert exact.held_in_memory(shape) is None
    held = make_strategy("seals(margin)").held_in_memory(shape)
    assert held is not None
    assert held.most == shape.feature_bytes
