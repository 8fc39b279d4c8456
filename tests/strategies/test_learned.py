"""learned against its definition said slowly: inputs by hand, the network unit by unit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import cases, many, open_arm, others, walk
from hypothesis import given
from oracles import free_now, probabilities, row_entropy

import tailor.strategies.policy_inputs
from tailor import InputError, MultiClass, MultiLabel
from tailor.compute import LocalEngine
from tailor.strategies.costs import PoolShape
from tailor.strategies.learned import Learned
from tailor.strategies.policy_inputs import INPUTS, PolicyInputs
from tailor.strategies.policy_network import SHIPPED, PolicyNetwork, facts_of, write_weights
from tailor.testing import make_pool, make_view
from tailor.testing.engines import check_same_picks

KINDS = [MultiClass, MultiLabel]


class LearnedOracle:
    """All free examples are candidates, and all candidates are references."""

    def __init__(self, view, budget):
        self.view = view
        self.candidates = free_now(view)
        self.probs = probabilities(view)
        features = view.features.double().numpy()
        rows = features - features[self.candidates].mean(0)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        self.rows = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 1e-9)
        known = self.known()
        self.spent = min(1, len(known) / budget)
        self.mean_distance = 0
        if known:
            self.mean_distance = np.mean([self.distance(i, known) for i in self.candidates])
        between = [self.gap(i, j) for i in self.candidates for j in self.candidates]
        # torch's median is the lower of the two in the middle.
        self.radius = max(0.05, sorted(between)[(len(between) - 1) // 2])
        nearness = [self.nearness(i) for i in self.candidates]
        self.density = dict(zip(self.candidates, nearness / np.mean(nearness)))
        doubts = {}
        for i in self.candidates:
            doubts.setdefault(self.likeliest(i), []).append(1 - self.margin(i))
        self.difficulty = {klass: np.mean(values) for klass, values in doubts.items()}

    def known(self):
        view = self.view
        return [*view.labelled.tolist(), *view.pending.tolist(), *view.ledger.taken.tolist()]

    def gap(self, i, j):
        return np.linalg.norm(self.rows[i] - self.rows[j])

    def distance(self, i, known):
        return min(self.gap(i, j) for j in known)

    def nearness(self, i):
        return np.mean([math.exp(-((self.gap(i, j) / self.radius) ** 2)) for j in self.candidates])

    def likeliest(self, i):
        return int(np.argmax(self.probs[i]))

    def margin(self, i):
        if isinstance(self.view.task, MultiClass):
            first, second = sorted(self.probs[i])[::-1][:2]
            return first - second
        return min(abs(2 * p - 1) for p in self.probs[i])

    def inputs(self, i):
        task = self.view.task
        largest = [*sorted(self.probs[i])[::-1], 0, 0][:3]
        most = math.log(task.size)
        if isinstance(task, MultiLabel):
            most = task.size * math.log(2)
        distance = 1
        if self.mean_distance:
            distance = min(3, self.distance(i, self.known()) / self.mean_distance)
        counts = self.view.labels.sum(0)
        ratio = task.size * counts[self.likeliest(i)] / max(1, counts.sum())
        return [
            *largest,
            self.margin(i),
            row_entropy(self.probs[i], task) / most,
            distance,
            min(3, self.density[i]),
            ratio / (1 + ratio),
            self.difficulty[self.likeliest(i)],
            self.spent,
            float(isinstance(task, MultiLabel)),
        ]

    def score(self, i):
        weights = PolicyNetwork.read(SHIPPED).weights
        values = self.inputs(i)
        for layer in ("first", "second", "last"):
            outputs = []
            for row, offset in zip(weights[f"{layer}.weight"], weights[f"{layer}.bias"]):
                total = float(offset) + sum(float(w) * v for w, v in zip(row, values))
                outputs.append(total if layer == "last" else max(0.0, total))
            values = outputs
        return values[0]


@many(40)
@given(cases(sizes=(1, 16)), others)
def test_the_largest_number_is_taken(case, share):
    view = case.view()
    if view.ledger.left == 0:
        return
    oracle = LearnedOracle(view, budget=20)
    cursor = open_arm(Learned(budget=20), view)

    def check(index):
        best = max(oracle.score(i) for i in free_now(view))
        assert oracle.score(index) >= best - 1e-6

    walk(view, cursor, case.seed, share, check)


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_follow_takes_by_any_arm(kind):
    view = make_view(make_pool(kind(4), 30, seed=2), 2, labelled=0.2, pending=0.1)
    candidates = view.free_ids
    inputs = PolicyInputs(view, candidates, 20, np.random.default_rng(0))
    twin = inputs.copy()
    oracle = LearnedOracle(view, budget=20)
    for taken in (candidates[:0], candidates[:3], candidates[5:6]):
        for position in taken.tolist():
            view.ledger.take(position)
        inputs.take(taken)
        expected = [oracle.inputs(i) for i in candidates.tolist()]
        assert inputs.matrix.numpy() == pytest.approx(np.array(expected), abs=1e-6)
    assert not np.allclose(inputs.matrix.numpy(), twin.matrix.numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_over_shards_the_picks_are_those_in_memory(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(tailor.strategies.policy_inputs, "REFERENCES", 12)
    pool = make_pool(kind(4), 120, seed=4, dims=6, copies=0.1)
    check_same_picks(
        LocalEngine(),
        pool,
        ["learned(candidates=40)"],
        tmp_path,
        seed=5,
        shard=64,
        dtype=np.float16,
        labelled=0.2,
    )


def test_the_shipped_weights_are_small_and_say_how_they_were_made():
    assert SHIPPED.stat().st_size < 100_000
    facts = facts_of(SHIPPED)
    assert facts["command"].startswith("tailor bench policy train")
    assert "digits" in facts["pools"]


def network(**changes):
    shapes = {"first": (4, len(INPUTS)), "second": (3, 4), "last": (1, 3)} | changes
    weights = {}
    for layer, shape in shapes.items():
        weights[f"{layer}.weight"] = np.zeros(shape, np.float32)
        weights[f"{layer}.bias"] = np.zeros(shape[0], np.float32)
    return weights


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (network(second=(3, 5)), "layer 'second' does not fit"),
        (network(first=(4, 2)), "layer 'first' does not fit, of 11 inputs"),
        (network(last=(2, 3)), "give 2 numbers an example, not one"),
        ({"other": np.zeros(3, np.float32)}, "layer 'first' does not fit"),
    ],
)
def test_weights_that_do_not_fit(weights, message, tmp_path):
    path = tmp_path / "w.safetensors"
    write_weights(path, weights, {})
    with pytest.raises(InputError, match=message):
        Learned(weights=str(path))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": 0}, "candidates is 0: at least 1"),
        ({"budget": -1}, "budget is -1: at least 0"),
        ({"weights": "nowhere.safetensors"}, "'nowhere.safetensors' can't be read"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(InputError, match=message):
        Learned(**options)


def test_a_file_that_is_no_weights(tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match="can't be read"):
        Learned(weights=str(path))


def test_its_cost_does_not_grow_with_the_pool():
    small = PoolShape(examples=100_000, classes=10, features=64, labelled=50)
    large = PoolShape(examples=10_000_000, classes=10, features=64, labelled=50)
    assert Learned().opening_work(small) == Learned().opening_work(large)
    assert Learned().opening_work(small).flops == 2 * 8192 * (1024 + 50) * 64


def test_the_usual_budget_is_a_tenth_of_the_pool():
    view = make_view(make_pool(MultiClass(2), 50, seed=1), 1)
    assert Learned().budget_of(view) == 5
    assert Learned(budget=7).budget_of(view) == 7
