"""Labels as names, indices and rows, in lists, arrays, tensors and pandas objects, are the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tailor import InputError, Learner, MultiClass, MultiLabel, UnknownName

CLASSES = ["cat", "dog", "fox"]
ONE = MultiClass(CLASSES)
SEVERAL = MultiLabel(CLASSES)

ONE_HOT = np.array([[0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 0]])
NAMES = ["fox", "cat", "fox", "dog"]
INDICES = [2, 0, 2, 1]

MULTI_HOT = np.array([[0, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]])
NAME_LISTS = [["fox"], [], ["dog", "cat", "fox"], ["dog"]]


class Series:
    """What is used of a pandas Series."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def to_numpy(self):
        return self.values


class Table(Series):
    """What is used of a pandas DataFrame."""

    def __init__(self, values, columns):
        super().__init__(values)
        self.columns = columns

    def __getitem__(self, names):
        return Table(self.values[:, [list(self.columns).index(name) for name in names]], names)


@pytest.mark.parametrize(
    "labels",
    [
        NAMES,
        tuple(NAMES),
        np.array(NAMES),
        np.array(NAMES, object),
        Series(np.array(NAMES, object)),
        INDICES,
        np.array(INDICES),
        np.array(INDICES, np.uint8),
        torch.tensor(INDICES),
        Series(INDICES),
        ["fox", 0, np.int64(2), "dog"],
        ONE_HOT,
        ONE_HOT.tolist(),
        ONE_HOT.astype(bool),
        ONE_HOT.astype(np.float16),
        list(ONE_HOT),
        torch.from_numpy(ONE_HOT),
        list(torch.from_numpy(ONE_HOT)),
        Table(ONE_HOT, range(3)),
        Table(ONE_HOT, CLASSES),
        Table(ONE_HOT[:, [2, 0, 1]], ["fox", "cat", "dog"]),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_forms_of_a_multi_class_label(labels):
    rows = ONE.label_rows(labels)
    assert rows.dtype == np.float32
    assert rows.tolist() == ONE_HOT.tolist()
    learner = Learner(ONE, pool=9)
    learner.tell([5, 6, 7, 8], labels)
    assert learner.labelled.tolist() == [5, 6, 7, 8]
    assert learner.labels.tolist() == INDICES
    assert learner.counts.tolist() == [1, 1, 2]


@pytest.mark.parametrize(
    "labels",
    [
        NAME_LISTS,
        [set(names) for names in NAME_LISTS],
        Series(np.array([*NAME_LISTS, None], object)[:-1]),
        MULTI_HOT,
        MULTI_HOT.tolist(),
        MULTI_HOT.astype(bool),
        torch.from_numpy(MULTI_HOT),
        Table(MULTI_HOT[:, [1, 2, 0]], ["dog", "fox", "cat"]),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_forms_of_a_multi_label_label(labels):
    assert SEVERAL.label_rows(labels).tolist() == MULTI_HOT.tolist()
    learner = Learner(SEVERAL, pool=9)
    learner.tell([5, 6, 7, 8], labels)
    assert learner.labels.tolist() == MULTI_HOT.tolist()
    assert learner.counts.tolist() == [1, 2, 2]


@pytest.mark.parametrize(
    ("task", "labels", "message"),
    [
        (ONE, "cat", "a list of labels"),
        (ONE, {"cat", "dog"}, "a list of labels"),
        (ONE, 3, "a list of labels"),
        (ONE, None, "a list of labels"),
        (ONE, np.array([0.0, 1.0]), "float64 of shape .2,.: give class names or indices, or rows"),
        (ONE, np.array([True, False]), "bool of shape"),
        (ONE, np.zeros((2, 3, 1)), "shape .2, 3, 1."),
        (ONE, [0.0, 1.0], "0.0 is neither a class name nor an index from 0 to 2"),
        (ONE, [0, 3], "3 is neither"),
        (ONE, [-1], "-1 is neither"),
        (ONE, [[1, 0], [0, 1]], r"shape \(n, 3\), one column a class, got \(2, 2\)"),
        (ONE, [[1, 0, 0], [0, 1]], "its rows must be of one length"),
        (ONE, [[1, 1, 0]], "2 classes set"),
        (ONE, [["cat"]], "neither a class name nor an index"),
        (ONE, Table(ONE_HOT, ["cat", "dog", "wolf"]), "name them after the classes"),
        (SEVERAL, ["cat", "dog"], "a multi-label answer is a list of classes"),
        (SEVERAL, [0, 1], "a multi-label answer is a list of classes"),
        (SEVERAL, np.array([0, 1]), "a multi-label answer is a list of classes"),
        (SEVERAL, [[0, 2]], r"shape \(n, 3\), one column a class, got \(1, 2\)"),
        (SEVERAL, [[2, 0, 0]], "labels are 0 or 1"),
        (SEVERAL, np.array([0.5]), "give lists of class names, or rows"),
    ],
)
def test_what_is_no_label(task, labels, message):
    learner = Learner(task, pool=9)
    with pytest.raises(InputError, match=message):
        learner.tell([0, 1], labels)
    assert learner.labelled.size == 0


@pytest.mark.parametrize(("task", "labels"), [(ONE, ["wolf"]), (SEVERAL, [["cat", "wolf"]])])
def test_a_wrong_name(task, labels):
    with pytest.raises(UnknownName, match="wolf"):
        task.label_rows(labels)


@pytest.mark.parametrize("task", [ONE, SEVERAL])
@pytest.mark.parametrize("labels", [[], (), np.empty((0, 3)), np.empty(0, int)], ids=repr)
def test_no_labels(task, labels):
    assert task.label_rows(labels).shape == (0, 3)


@settings(deadline=None)
@given(st.lists(st.sets(st.integers(0, 2))), st.randoms(use_true_random=False))
def test_rows_and_names_say_the_same(subsets, order):
    names = [[CLASSES[k] for k in order.sample(sorted(subset), len(subset))] for subset in subsets]
    rows = np.array([[k in subset for k in range(3)] for subset in subsets]).reshape(-1, 3)
    assert SEVERAL.label_rows(names).tolist() == SEVERAL.label_rows(rows).tolist() == rows.tolist()
    first = [min(subset, default=0) for subset in subsets]
    assert ONE.label_rows(first).argmax(1).tolist() == first
    assert ONE.targets(ONE.label_rows([CLASSES[k] for k in first])).tolist() == first
