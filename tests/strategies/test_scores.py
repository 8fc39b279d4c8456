"""Arms that rank the pool once, against a plain sort by (score, tie)."""

from __future__ import annotations

import numpy as np
import pytest
from cases import Case, cases, many, open_arm, others, walk
from hypothesis import given
from hypothesis import strategies as st
from oracles import coin_entropy, free_now, ranked_pick, row_entropy, score_of

from tailor.compute import LocalEngine, Predictions, Sharded
from tailor.selection.round import Round
from tailor.strategies import registry
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view

#: whose scores are exact on multiples of 1/64, in any precision
EXACT = ["uncertainty", "most-likely-positive", "emal", "confidence", "margin"]
#: whose scores hold logarithms, and how far rounding may move them
LOGARITHMS = {"entropy": 1e-12, "weak-supervision": 1e-12, "bald": 1e-6}
DTYPES = [np.float64, np.float32, np.float16]


def kinds(name):
    tasks = registry.find(name).tasks
    return tuple(kind for kind in (MultiClass, MultiLabel) if kind.kind in tasks)


def check_exactly(name, case, share, dtype, pulls):
    view = case.view(dtype=dtype)
    strategy = registry.make(name)
    klass = case.seed % case.task.size if strategy.per_class else None
    score = score_of(name, view, klass)

    def check(index):
        assert index == ranked_pick(view, score)

    walk(view, open_arm(strategy, view, klass, pulls=pulls), case.seed, share, check)


@pytest.mark.parametrize("name", EXACT)
@many(120)
@given(
    data=st.data(), share=others, dtype=st.sampled_from(DTYPES), pulls=st.sampled_from([None, 1])
)
def test_exact_order(name, data, share, dtype, pulls):
    check_exactly(name, data.draw(cases(kinds=kinds(name), grids=(64, 4))), share, dtype, pulls)


@pytest.mark.parametrize("name", ["uncertainty", "most-likely-positive", "confidence", "margin"])
@many(30)
@given(data=st.data())
def test_exact_order_of_any_numbers(name, data):
    check_exactly(name, data.draw(cases(kinds=kinds(name), grids=(None,))), 0.3, np.float64, None)


@pytest.mark.parametrize("classes", [2, 50])
@pytest.mark.parametrize("name", EXACT)
def test_few_and_many_classes(name, classes):
    for seed in range(5):
        case = Case(kinds(name)[-1](classes), 40, seed, 64, 0.2, 0.3, 0.1, 0.1, None)
        check_exactly(name, case, 0.3, np.float64, None)


def check_closely(name, case, share, tolerance, dtype=np.float64):
    view = case.view(dtype=dtype)
    score = score_of(name, view)
    scores = {i: score(i) for i in free_now(view)}

    def check(index):
        assert scores[index] <= min(scores[i] for i in free_now(view)) + tolerance

    walk(view, open_arm(registry.make(name), view), case.seed, share, check)


@pytest.mark.parametrize("name", list(LOGARITHMS))
@many(50)
@given(data=st.data(), share=others)
def test_order_by_logarithms(name, data, share):
    check_closely(name, data.draw(cases(kinds=kinds(name))), share, LOGARITHMS[name])


@pytest.mark.parametrize("name", list(LOGARITHMS))
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_order_by_logarithms_in_lower_precision(name, dtype):
    for seed in range(8):
        case = Case(kinds(name)[-1](4), 40, seed, 64, 0.2, 0.3, 0.1, 0.1, None)
        check_closely(name, case, 0.3, 2e-6, dtype)


@pytest.mark.parametrize("name", [*EXACT, *LOGARITHMS])
def test_copies_come_in_the_order_of_ties_not_of_the_file(name):
    kind = kinds(name)[-1]
    one = make_pool(kind(3), 1, seed=4)
    pool = type(one)(
        one.task, *(np.repeat(a, 30, axis=0) for a in (one.probs, one.features, one.truth))
    )
    view = make_view(pool, 9, labelled=0.0)
    mine = []
    walk(view, open_arm(registry.make(name), view, 0), 0, 0.0, mine.append)
    assert mine == np.argsort(view.ties).tolist()
    assert mine != sorted(mine)


@pytest.mark.parametrize("name", EXACT)
def test_refills_when_others_take_what_was_held(name):
    """Others take hundreds while the arm was told of one pull: it goes on in the right order."""
    task = kinds(name)[-1](3)
    view = make_view(make_pool(task, 600, seed=2, grid=1024), 2, labelled=0.1)
    score = score_of(name, view, 0)
    cursor = open_arm(registry.make(name), view, 0, pulls=1)
    assert cursor.take() == ranked_pick(view, score)
    for index in sorted(view.free_ids.tolist(), key=lambda i: (score(i), view.ties[i]))[:400]:
        view.ledger.take(index)
    assert cursor.take() == ranked_pick(view, score)


def test_weak_supervision_is_taught_labels_and_its_own_probabilities():
    pool = make_pool(MultiLabel(3), 20, seed=1)
    view = make_view(pool, 1)
    taught = []
    view.finetune = lambda targets, epochs: (
        taught.append((targets.clone().numpy(), epochs)) or view.probs
    )
    open_arm(registry.make("weak-supervision", epochs=3), view)
    ((targets, epochs),) = taught
    assert epochs == 3
    assert (targets[view.labelled] == view.labels).all()
    rest = np.setdiff1d(np.arange(20), view.labelled)
    assert (targets[rest] == pool.probs[rest]).all()


class OnceAsked:
    """Stands for a network whose passes and fine-tuned copies come out otherwise each time; keeps
    what it gave.
    """

    def __init__(self, view):
        self.view = view
        self.rng = np.random.default_rng(7)
        self.given = []

    def probabilities(self):
        return self.rng.random(self.view.probs.shape)

    def dropout(self):
        self.given.append([self.probabilities() for _ in range(3)])
        return self.given[-1]

    def finetune(self, *asked):
        self.given.append(self.probabilities())
        return self.given[-1]

    def scores(self, name):
        """(N,) by what the first call gave."""
        if name == "weak-supervision":
            return np.array([-np.mean([coin_entropy(q) for q in row]) for row in self.given[0]])
        mean = np.mean(self.given[0], axis=0)
        return np.array(
            [
                np.mean([row_entropy(one[i], self.view.task) for one in self.given[0]])
                - row_entropy(mean[i], self.view.task)
                for i in range(self.view.size)
            ]
        )


def in_memory(view, network, folder):
    view.dropout = network.dropout
    view.finetune = network.finetune
    return view


def over_shards(view, network, folder):
    def write(name, probs):
        return Predictions(
            str(folder / name), *view.probs.shape, dtype="float64", shard=70
        ).write_all(probs)

    def finetune(epochs):
        return write(f"tuned-{len(network.given)}", network.finetune())

    def dropout():
        return [write(f"pass-{len(network.given)}-{n}", p) for n, p in enumerate(network.dropout())]

    sharded = Sharded(write("predictions", view.probs.numpy()), LocalEngine(), finetune, dropout)
    return sharded.round_view(
        view.task,
        labelled=view.labelled,
        labels=view.labels,
        free=view.free,
        pending=view.pending,
        seed=2,
    )


@pytest.mark.parametrize("place", [in_memory, over_shards])
@pytest.mark.parametrize("name", ["bald", "weak-supervision"])
def test_others_that_use_up_the_shortlist_cause_no_second_ranking(name, place, tmp_path):
    """The passes or the fine-tuning are asked for once a round, and the arm goes on in the order of
    that once.
    """
    host = make_view(make_pool(MultiLabel(3), 400, seed=2), 2, labelled=0.1)
    network = OnceAsked(host)
    view = place(host, network, tmp_path)
    arm = registry.make(name).arms(view.task)[0]
    walk = Round(view, [arm], np.zeros(2, int), seed=0)
    first = walk.next().index
    scores = network.scores(name)
    order = sorted(view.free_ids.tolist(), key=lambda i: scores[i])
    assert first == order[0]
    for index in order[1:200]:
        view.ledger.take(index)
    assert walk.next().index == order[200]
    assert len(network.given) == 1
