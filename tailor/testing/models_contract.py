"""The contract of a model: shapes, valid probabilities, the same result for the same seed, saving,
odd labels. A plugin's author calls `check_model` from a test.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from tailor.common.linear_head import LinearHead
from tailor.models.base import Model
from tailor.models.targets import Targets
from tailor.models.uninformed import uninformed_probability
from tailor.pools.base import Pool
from tailor.selection.view_checks import check_probabilities
from tailor.task import MultiClass, Task
from tailor.testing.toy_pools import ToyPool, make_toy_pool, toy_labels

#: (task, pool) -> a model that is not trained yet
MakeModel = Callable[[Task, Pool], Model]

#: examples that are labelled in most checks, from the first on
LABELLED = 24


def check_model(make: MakeModel, task: Task, kind: str = "vector") -> None:
    """Raises AssertionError where a model breaks a rule that the session relies on.

    make  makes a model that is not trained yet
    kind  of the pools that it reads: "vector", "image" or "text"
    """
    for check in MODEL_CHECKS:
        check(make, task, kind)


def check_shapes(make: MakeModel, task: Task, kind: str) -> None:
    """Any positions, in any order, give their own rows."""
    model, pool = _trained_model(make, task, kind)
    size = len(pool)
    everything = _positions(pool)
    prediction = model.predict(everything)
    probs = prediction.probs
    features = prediction.features
    _check_probabilities(task, probs, size)
    assert probs.dtype == np.float32
    _check_features(features, size)
    positions = np.array([7, 2, 31])
    some = model.predict(positions)
    # Not bit for bit: a network's sums depend on how many examples it is given at once.
    assert_allclose(some.probs, probs[positions], atol=1e-4)
    assert_allclose(
        some.features,
        features[positions],
        atol=1e-2,
        rtol=1e-3,
    )
    # Nothing of a pool may be free, or nothing of a shard.
    no_positions = np.empty(0, np.int64)
    nothing = model.predict(no_positions)
    assert nothing.probs.shape == (0, task.size)


def _check_features(features: np.ndarray, rows: int) -> None:
    assert features.dtype == np.float32
    assert features.ndim == 2
    assert len(features) == rows
    assert np.isfinite(features).all()


def check_learns(make: MakeModel, task: Task, kind: str) -> None:
    """The labelled examples are told apart better than by saying the same of all."""
    model, pool = _trained_model(make, task, kind)
    labelled = np.arange(LABELLED)
    probs = model.predict(labelled).probs
    labels = toy_labels(task, pool, labelled)
    # What a model says that has seen labels and no examples.
    class_shares = labels.mean(0)
    assert _mean_error(probs, labels) < _mean_error(class_shares, labels)


def _mean_error(probs: np.ndarray, labels: np.ndarray) -> float:
    errors = np.abs(probs - labels)
    return float(errors.mean())


def check_same_seed(make: MakeModel, task: Task, kind: str) -> None:
    """The same seed, the same result bit for bit, whatever the global random numbers are."""
    import torch

    first, pool = _trained_model(make, task, kind)
    torch.rand(5)  # a model that draws from torch's global numbers would now be another one
    second, _ = _trained_model(make, task, kind)
    everything = _positions(pool)
    of_first = first.predict(everything)
    of_second = second.predict(everything)
    assert _same_bytes(of_first.probs, of_second.probs)
    assert _same_bytes(of_first.features, of_second.features)
    labelled = np.arange(LABELLED)
    labels = toy_labels(task, pool, labelled)
    # The seed that _trained_model() has, in a model that is trained already.
    first.fit(labelled, labels, seed=3)
    refitted = first.predict(everything)
    starts_afresh = _same_bytes(of_first.probs, refitted.probs)
    assert starts_afresh, "a second fit does not start afresh"
    before = torch.random.get_rng_state()
    first.fit(labelled, labels, seed=4)
    after = torch.random.get_rng_state()
    assert torch.equal(before, after), "fit() changed torch's global random numbers"


def _same_bytes(first: np.ndarray, second: np.ndarray) -> bool:
    """Stricter than equal values: 0 and -0 differ."""
    return first.tobytes() == second.tobytes()


def check_save(make: MakeModel, task: Task, kind: str) -> None:
    """A model that loads what another saved predicts the same; no pickle is written."""
    model, pool = _trained_model(make, task, kind)
    # Over another pool object, as in another process: nothing may come from the first.
    same_pool = make_toy_pool(task, kind)
    loaded = make(task, same_pool)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save(folder)
        suffixes = [path.suffix for path in folder.iterdir()]
        suffixes.sort()
        assert suffixes == [".json", ".safetensors"], f"save() wrote {suffixes}"
        loaded.load(folder)
    assert_array_equal(_predict_all(loaded, pool), _predict_all(model, pool))


def check_odd_labels(make: MakeModel, task: Task, kind: str) -> None:
    """A class without a label, one class only, and one example only don't break training."""
    pool = make_toy_pool(task, kind)
    model = make(task, pool)
    model.prepare()
    last_class = task.size - 1
    without_last_class = np.flatnonzero(pool.classes != last_class)
    of_one_class = np.flatnonzero(pool.classes == 0)
    only_one = np.array([0])
    cases = [
        without_last_class[:10],
        of_one_class[:5],
        only_one,
    ]
    for labelled in cases:
        # The same model each time: a fit must not fail on what the one before has left.
        labels = toy_labels(task, pool, labelled)
        model.fit(labelled, labels, seed=0)
        probs = _predict_all(model, pool)
        _check_probabilities(task, probs, len(pool))


def check_finetune(make: MakeModel, task: Task, kind: str) -> None:
    """finetune(), where a model has it, gives valid probabilities, the same for the same seed, and
    leaves the model as it is.
    """
    model, pool = _trained_model(make, task, kind)
    if not model.can_finetune:
        return
    before = _predict_all(model, pool)
    # Targets are copies: a model that writes into them must not change what is compared.
    targets = before.copy()
    tuned = model.finetune(targets, 1, seed=0)
    _check_probabilities(task, tuned, len(pool))
    after = _predict_all(model, pool)
    assert_array_equal(after, before, "finetune() changed the model")
    same_targets = before.copy()
    tuned_again = model.finetune(same_targets, 1, seed=0)
    assert_array_equal(tuned_again, tuned)


def check_dropout(make: MakeModel, task: Task, kind: str) -> None:
    """dropout(), where a model has it, gives passes that differ, and the same ones for the same
    seed.
    """
    model, pool = _trained_model(make, task, kind)
    if not model.can_dropout:
        return
    passes = list(model.dropout(3, seed=1))
    assert len(passes) == 3
    for probs in passes:
        _check_probabilities(task, probs, len(pool))
    first_pass = passes[0]
    second_pass = passes[1]
    # Equal passes would make every example look certain to BALD.
    are_equal = np.array_equal(first_pass, second_pass)
    assert not are_equal, "two dropout passes are the same"
    same_seed = model.dropout(3, seed=1)
    for first, second in zip(passes, same_seed):
        assert_array_equal(first, second)


def check_in_parts(make: MakeModel, task: Task, kind: str) -> None:
    """tuned() and dropout_at(), where a model has them, say what finetune() and dropout() say."""
    model, pool = _trained_model(make, task, kind)
    if model.can_finetune_in_parts:
        _check_tuned(model, pool)
    if model.can_dropout_in_parts:
        _check_dropout_at(model, pool)


def _check_tuned(model: Model, pool: ToyPool) -> None:
    everything = _positions(pool)
    before = _predict_all(model, pool)
    targets = Targets(lambda positions: before[positions], everything, model.task.size)
    tuned = model.tuned(targets, 1, seed=0)
    probs = tuned.predict(everything).probs
    _check_probabilities(model.task, probs, len(pool))
    targets_at_once = before.copy()
    at_once = model.finetune(targets_at_once, 1, seed=0)
    # Not bit for bit either: the parts are of other sizes than the whole.
    assert_allclose(probs, at_once, atol=1e-5)
    after = _predict_all(model, pool)
    assert_array_equal(after, before, "tuned() changed the model")


def _check_dropout_at(model: Model, pool: ToyPool) -> None:
    everything = _positions(pool)
    in_parts = model.dropout_at(everything, 2, seed=1)
    at_once = model.dropout(2, seed=1)
    for first, second in zip(in_parts, at_once, strict=True):
        assert_allclose(first, second, atol=1e-5)
    some = np.arange(3, 8)
    passes = model.dropout_at(some, 2, seed=1)
    for probs in passes:
        _check_probabilities(model.task, probs, len(some))


def check_head(make: MakeModel, task: Task, kind: str) -> None:
    """linear_head(), where a model gives one, makes its probabilities of its features."""
    model, pool = _trained_model(make, task, kind)
    head = model.linear_head()
    if head is None:
        return
    prediction = model.predict(_positions(pool))
    checked = LinearHead.checked(head, task.size, prediction.features.shape[1])
    logits = prediction.features @ checked.weights.T
    if checked.bias is not None:
        logits = logits + checked.bias
    if isinstance(task, MultiClass):
        powers = np.exp(logits - logits.max(1, keepdims=True))
        probs = powers / powers.sum(1, keepdims=True)
    else:
        probs = 1 / (1 + np.exp(-logits))
    assert_allclose(probs, prediction.probs, atol=1e-2)


def check_boundaries(make: MakeModel, task: Task, kind: str) -> None:
    """boundary_distances(), where a model has it, gives a distance to each example that can be
    read, and leaves the model as it is.
    """
    model, pool = _trained_model(make, task, kind, unreadable=(3,))
    if not model.can_measure_boundaries:
        return
    before = _predict_all(model, pool)
    positions = np.array([7, 3, 31])
    distances = model.boundary_distances(positions, 2)
    assert distances.shape == (3,)
    assert np.isinf(distances[1]), "an example that can't be read is at no distance"
    assert np.isfinite(distances[[0, 2]]).all()
    assert (distances >= 0).all()
    after = _predict_all(model, pool)
    assert_array_equal(after, before, "boundary_distances() changed the model")


def check_unreadable(make: MakeModel, task: Task, kind: str) -> None:
    """Examples that can't be read are reported, predicted uniformly, and left out of training."""
    unreadable = (1, 30)
    model, pool = _trained_model(
        make,
        task,
        kind,
        unreadable=unreadable,
    )
    reported = model.prepare()
    assert set(reported) == set(unreadable)
    uniform = uninformed_probability(task)
    positions = np.array(unreadable)
    of_unreadable = model.predict(positions)
    assert_allclose(of_unreadable.probs, uniform)
    # An unreadable one is among them: a label may have come before the file was lost.
    labelled = np.arange(6)
    labels = toy_labels(task, pool, labelled)
    model.fit(labelled, labels, seed=0)
    probs = _predict_all(model, pool)
    _check_probabilities(task, probs, len(pool))
    if not model.can_finetune:
        return
    tuned = model.finetune(probs, 1, seed=0)
    _check_probabilities(task, tuned, len(pool))
    assert_allclose(tuned[1], uniform)


def check_growth(make: MakeModel, task: Task, kind: str) -> None:
    """What came later is read by prepare(), and nothing is read twice."""
    model, pool = _trained_model(
        make,
        task,
        kind,
        later=8,
        unreadable=(38,),
    )
    reads_before = pool.reads
    # 40 examples, of which 8 appear later.
    at_first = np.arange(32)
    old = model.predict(at_first)
    assert pool.refresh() == 8
    unreadable = model.prepare()
    assert set(unreadable) == {38}
    reads = pool.reads - reads_before
    assert reads == 8, f"{reads} examples were read for 8 new ones"
    everything = np.arange(40)
    new = model.predict(everything)
    _check_probabilities(task, new.probs, 40)
    assert_allclose(new.probs[:32], old.probs, atol=1e-4)


MODEL_CHECKS: tuple[Callable[[MakeModel, Task, str], None], ...] = (
    check_shapes,
    check_learns,
    check_same_seed,
    check_save,
    check_odd_labels,
    check_finetune,
    check_dropout,
    check_in_parts,
    check_head,
    check_boundaries,
    check_unreadable,
    check_growth,
)


def _trained_model(
    make: MakeModel,
    task: Task,
    kind: str,
    **options: Any,
) -> tuple[Model, ToyPool]:
    """A model trained on the first examples of a toy pool. options: of the pool."""
    pool = make_toy_pool(task, kind, **options)
    model = make(task, pool)
    model.prepare()
    # Some pools of the checks are smaller.
    end = min(len(pool), LABELLED)
    readable = []
    for position in range(end):
        if position not in pool.unreadable:
            readable.append(position)
    labelled = np.array(readable)
    labels = toy_labels(task, pool, labelled)
    model.fit(labelled, labels, seed=3)
    return model, pool


def _positions(pool: ToyPool) -> np.ndarray:
    """(N,) all positions of the pool."""
    size = len(pool)
    return np.arange(size)


def _predict_all(model: Model, pool: ToyPool) -> np.ndarray:
    """Probabilities (N, K) for the whole pool."""
    positions = _positions(pool)
    prediction = model.predict(positions)
    return prediction.probs


def _check_probabilities(task: Task, probs: Any, rows: int) -> None:
    """Probabilities are an array (rows, K) in [0, 1], and in a multi-class task sum to 1."""
    import torch

    kind = type(probs).__name__
    assert isinstance(probs, np.ndarray), f"probabilities are a {kind}, not an array"
    expected = (rows, task.size)
    shape = probs.shape
    assert shape == expected, f"probabilities have shape {shape}, not {expected}"
    writable = np.array(probs)  # torch warns of arrays that are not
    tensor = torch.from_numpy(writable)
    check_probabilities(tensor, task)
