"""Every argument of every public class, given what it can't be: an error of this package that names
it.

An argument that is added without a row here fails test_every_argument_has_a_row.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest
import torch
from small import Centroids, Points, settings

import tailor
from tailor import ArrayView, Learner, MultiClass, MultiLabel, Round, TailorError
from tailor.annotation import Coordinator
from tailor.annotation.class_editor import ClassEditor
from tailor.annotation.review import Review
from tailor.common.checks import shown
from tailor.errors import InputError
from tailor.models import make_model
from tailor.pools import open_pool
from tailor.run.goals import Goals
from tailor.run.open_run import open_run
from tailor.run.project import Project
from tailor.run.session import Asked, Session
from tailor.run.settings import Settings
from tailor.run.stopping import Budget, ClassCounts, Plateau, TargetAccuracy
from tailor.storage import SqliteStore
from tailor.strategies import make_arms
from tailor.testing import make_pool

TASK = MultiClass(["cat", "dog", "fox"])
POOL = make_pool(TASK, 30, seed=0)
RAGGED = [[1, 0, 0], [1, 0]]


class Thing:
    """An object of no kind that is known here."""

    def __repr__(self):
        return "a thing"


COUNTS = [0, -1, 2.5, np.nan, np.inf, "3", None, True, [3], 3j, Thing()]
SEEDS = [-1, 2**64, *COUNTS[2:]]
SHARES = [-0.1, 1.0, np.nan, "0.1", None, [0.1], 0.1j, True, Thing()]
TEXTS = [3, None, b"cat", ["cat"], Thing()]
NAMES = [3, 2.5, None, b"cat", {"cat"}, {"cat": 1}, ("cat",), ("cat", 3), (3, {}), [], Thing()]
FLAGS = ["yes", 1, None, [True], Thing()]
FUNCTIONS = [3, "f", [], Thing()]
POSITIONS = [
    "1",
    1,
    None,
    [1.5],
    [True],
    [[1]],
    [1, [2]],
    ["1"],
    [1j],
    {1},
    {1: 2},
    [-1],
    [30],
    [1, 1],
    Thing(),
]
LABELS = [
    "cat",
    3,
    None,
    RAGGED,
    [[1, 0, 1j]],
    [["a", "b", "c"]],
    [[None, 0, 0]],
    [[2, 0, 0]],
    {1: 2},
    Thing(),
]
MATRICES = [
    "x",
    3,
    RAGGED,
    [["a"] * 3] * 30,
    np.ones((30, 3), complex),
    np.ones((30, 3), int),
    POOL.probs[0],
    Thing(),
]
PROBS = [None, *MATRICES, POOL.probs[:-1], POOL.probs * np.nan, POOL.probs * 2]
FEATURES = [*MATRICES, POOL.features[:-1], POOL.features * np.inf]
CLASSES = [
    "abc",
    b"ab",
    2.5,
    None,
    True,
    {"a", "b"},
    {"a": 1, "b": 2},
    [1, 2],
    ["a", None],
    ["a", ""],
    3j,
    [],
    Thing(),
]
IDS = ["p00001", 3, None, {"p00001": "a"}, [3], [None], ["nobody"], Thing()]
PEOPLE = [3, b"ann", ["ann"], Thing()]
ANNOTATORS = [None, "", *PEOPLE]

SIZES = [value for value in COUNTS if value is not None]
HEADS = [
    3,
    "head",
    [],
    (POOL.features[:3],),
    (POOL.features[:2], np.zeros(3)),
    (POOL.features[:3], np.zeros(2)),
    (POOL.features[:3] * np.nan, np.zeros(3)),
    (RAGGED, np.zeros(3)),
    Thing(),
]
MODEL = {"finetune": FUNCTIONS, "dropout": FUNCTIONS, "boundary_distances": FUNCTIONS}
ROUND = {"size": SIZES, "head": HEADS, **MODEL, "allow_short": FLAGS}
SAID = {"by": PEOPLE}
ANNOTATOR_LABELS = ["a", 3, 2.5, True, b"a", {"a": 1}, ["d"], [3], [["a"]], ["a", "b"], Thing()]
PAGE = {"offset": [value for value in COUNTS if value != 0], "limit": [1001, *COUNTS[1:]]}
#: what is wrong for each argument of each call
WRONG: dict[str, dict[str, list[Any]]] = {
    "MultiClass": {"classes": [*CLASSES, -1, 1]},
    "MultiClass.index": {"name": [*TEXTS, "cow"]},
    "MultiClass.check_labels": {"labels": [*LABELS, [[1, 1, 0]]]},
    "MultiClass.label_rows": {
        "labels": [
            "cat",
            3,
            None,
            RAGGED,
            [[1, 0, 1j]],
            [[None, 0, 0]],
            [[2, 0, 0]],
            [2.5],
            Thing(),
        ]
    },
    "MultiClass.targets": {"labels": [*LABELS, [[1, 1, 0]]]},
    "MultiClass.encode": {
        "answers": ["cat", 3, None, {"cat"}, [None], [2.5], [True], [3], [-1], ["cow"], Thing()]
    },
    "MultiClass.predicted": {"probs": [3, None, "x", POOL.probs[0], [[0.5, 0.5]], Thing()]},
    "MultiLabel": {"classes": [*CLASSES, -1, 0]},
    "MultiLabel.index": {"name": [*TEXTS, "cow"]},
    "MultiLabel.check_labels": {"labels": LABELS},
    "MultiLabel.label_rows": {
        "labels": ["cat", 3, None, RAGGED, [[1, 0, 1j]], [[None, 0, 0]], [[2, 0, 0]], [2], Thing()]
    },
    "MultiLabel.targets": {"labels": LABELS},
    "MultiLabel.encode": {
        "answers": ["cat", 3, None, ["cat"], [3], [[None]], [[2.5]], [[3]], [["cow"]], Thing()]
    },
    "MultiLabel.predicted": {"probs": [3, None, "x", POOL.probs[0], [[0.5, 0.5]], Thing()]},
    "Learner": {
        "task": [3, None, "multi-class", ["cat", "dog"], Thing()],
        "pool": COUNTS,
        "strategies": [
            3,
            b"galaxy",
            {"galaxy"},
            {"galaxy": {}},
            [],
            ["cow"],
            "cow",
            [3],
            [None],
            [("galaxy", 3)],
            Thing(),
        ],
        "selector": [*NAMES, "cow"],
        "reward": [*NAMES, "cow"],
        "cover": FLAGS,
        "rounds": COUNTS,
        "batch": COUNTS,
        "own_reward": FUNCTIONS,
        "seed": SEEDS,
        "device": ["gpu", "", "cuda:x", 0, None, ["cpu"], Thing()],
    },
    "Learner.ask": {"probs": PROBS, "features": FEATURES, **ROUND},
    "Learner.open_round": {"probs": PROBS, "features": FEATURES, **ROUND},
    "Learner.tell": {"positions": POSITIONS, "labels": [*LABELS, [[1, 1, 0]], [[1, 0, 0]] * 2]},
    "Learner.skip": {"positions": [*POSITIONS, [0]]},
    "Learner.offer_again": {"positions": [*POSITIONS, [0]]},
    "Learner.withdraw": {"positions": POSITIONS},
    "Learner.reclass": {"change": [3, None, ["cat", "dog"], Thing()]},
    "ArrayView": {
        "task": [3, None, "multi-class", Thing()],
        "probs": [*PROBS[:-3], *PROBS[-2:]],
        "features": FEATURES,
        "labelled": [p for p in POSITIONS if p is not None],
        "labels": LABELS[:2] + LABELS[3:],
        "free": [3, "x", np.ones(30), np.ones(29, bool), [True], RAGGED, Thing()],
        "pending": [p for p in POSITIONS if p is not None],
        "head": HEADS,
        **MODEL,
        "seed": SEEDS,
        "device": ["gpu", "", 0, None, ["cpu"], Thing()],
    },
    "ArrayView.has": {"need": ["features", None, 3, Thing()]},
    "Round": {
        "view": [3, None, POOL.probs, Thing()],
        "arms": [3, None, "random", ["random"], [None], Thing()],
        "plan": [3, None, "x", [0.5], [9], [-1], [[0]], [0, [0]], Thing()],
        "seed": [-1, *COUNTS[2:]],
        "cover": FLAGS,
    },
    "Round.repick": {"index": [-1, 30, *COUNTS[2:]]},
    "Round.reveal": {
        "index": [-1, 30, *COUNTS[2:]],
        "label": [None, "cat", [1, 0], [1, 0, 1j], [1, 1, 0], [1, [0]], Thing()],
    },
    "Settings": {
        "kind": ["multi", 3, None, ["multi-class"], Thing()],
        "classes": [*CLASSES, 3],
        "strategies": [3, None, b"galaxy", {"galaxy"}, {"galaxy": 1}, [3], [None], Thing()],
        "selector": TEXTS,
        "reward": TEXTS,
        "batch": COUNTS,
        "rounds": COUNTS,
        "holdout": SHARES,
        "dropout_passes": COUNTS,
        "seed": SEEDS,
        "start": [*TEXTS, "cow"],
        "cover": FLAGS,
    },
    "Budget": {"labels": COUNTS},
    "TargetAccuracy": {"accuracy": [0, 1.1, np.nan, "0.5", None, [0.5], Thing()]},
    "Plateau": {"rounds": COUNTS, "gain": [-0.1, np.nan, "0.1", None, [0.1], Thing()]},
    "ClassCounts": {"count": COUNTS},
    "Session": {
        "store": ["run.db", 3, None, Thing()],
        "pool": ["photos", 3, None, POOL.probs, Thing()],
        "model": ["probe", 3, None, Thing()],
        "settings": [{"kind": "multi-class"}, 3, None, Thing()],
        "stop": [3, None, "budget", Budget(3), [3], [None], Thing()],
        "progress": [None, *FUNCTIONS],
        "remodel": FUNCTIONS,
        "model_runner": [None, *FUNCTIONS],
    },
    "Session.ask": {"n": SIZES},
    "Session.predict": {
        "positions": ["1", 1, None, [1.5], [[1]], [1, [2]], ["1"], [-1], [120], Thing()]
    },
    "Session.tell": {
        "answers": [
            3,
            None,
            "p00001",
            [("p00001", "a")],
            ["p00001"],
            {3: "a"},
            {"nobody": "a"},
            {"p00001": 3},
            {"p00001": 2.5},
            {"p00001": "d"},
            {"p00001": ["a"]},
            {"p00001": True},
            Thing(),
        ],
        **SAID,
    },
    "Session.vote": {
        "id": [3, None, "nobody", ["p00001"], Thing()],
        "answer": [3, 2.5, "d", ["a"], True, Thing()],
        "by": [None, "", *PEOPLE],
        "of": COUNTS,
    },
    "Session.set_goals": {"goals": [3, None, "budget", {"budget": 5}, Thing()], "by": PEOPLE},
    "Session.withdraw": {"ids": [*IDS, ["p00001"]], **SAID},
    "Session.offer_again": {"ids": [*IDS, ["p00001"]]},
    "Session.add_class": {"name": [*TEXTS, "", "a"], **SAID},
    "Session.rename_class": {"old": [*TEXTS, "d"], "new": [*TEXTS, "", "b"], **SAID},
    "Session.merge_classes": {"old": [*TEXTS, "d"], "into": [*TEXTS, "d", "a"], **SAID},
    "Session.undo_merge": {"event": SIZES, **SAID},
    "Session.undo": {"event": COUNTS, "of": ["bob", *TEXTS], **SAID},
    "Coordinator": {
        "source": ["run", 3, None, Thing()],
        "overlap": COUNTS,
        "overlap_share": [-0.1, 1.1, *SHARES[2:]],
        "lease": [0, -1, np.nan, np.inf, "300", None, [300], 3j, True, Thing()],
        "clock": [None, *FUNCTIONS],
        "wall_clock": [None, *FUNCTIONS],
    },
    "Coordinator.next": {"annotator": ANNOTATORS, "n": [*COUNTS, 1001]},
    "Coordinator.answer": {
        "annotator": ANNOTATORS,
        "id": ["nobody", *TEXTS],
        "label": ANNOTATOR_LABELS,
        "role": ["king", *TEXTS],
        "unasked": FLAGS,
        "was_asked": FLAGS,
    },
    "Coordinator.settle": {
        "id": ["nobody", *TEXTS],
        "label": ANNOTATOR_LABELS,
        "by": ANNOTATORS,
        "role": ["king", *TEXTS],
    },
    "Coordinator.history": {"annotator": ANNOTATORS, "n": COUNTS},
    "Coordinator.release": {"annotator": ANNOTATORS},
    "Coordinator.heartbeat": {"annotator": ANNOTATORS},
    "Coordinator.why": {"id": ["nobody", *TEXTS]},
    "Coordinator.item": {"id": ["nobody", *TEXTS]},
    "Review.labelled": {
        "klass": ["d", *PEOPLE],
        "arm": ["cow", *PEOPLE],
        "annotator": PEOPLE,
        "disagrees": FLAGS,
        "model_says": ["d", *PEOPLE],
        "holdout": FLAGS,
        "doubtful_first": FLAGS,
        **PAGE,
    },
    "Review.disagreements": PAGE,
    "ClassEditor.add": {"name": [*TEXTS, "", "a"], "by": ANNOTATORS},
    "ClassEditor.rename": {"old": [*TEXTS, "d"], "new": [*TEXTS, "", "b"], "by": ANNOTATORS},
    "ClassEditor.merge": {"old": [*TEXTS, "d"], "into": [*TEXTS, "d", "a"], "by": ANNOTATORS},
    "ClassEditor.labels_to_merge": {"old": [*TEXTS, "d"], "into": [*TEXTS, "d", "a"]},
    "ClassEditor.undo_merge": {"event": COUNTS, "by": ANNOTATORS},
    "Project": {
        "folder": [3, None, b"run", ["run"], Thing(), "no such run"],
        "trust": FLAGS,
    },
    "open_pool": {
        "source": [3, None, b"photos", {"path": 3}, {"a"}, [], [3], Thing()],
        "kind": ["cow", 3, b"text", [], Thing()],
    },
    "open_run": {
        "path": [3, None, b"p.npy", ["p.npy"], Thing()],
        "classes": ["abc", 3, {"a"}, [1, 2], [], ["a", ""], Thing()],
        "run": [3, b"run", Thing()],
        "multi_label": FLAGS,
        "model": [3, "cow", b"probe"],
        "backbone": [3, "cow"],
        "device": ["gpu", 3],
        "strategies": [3, [3], "cow"],
        "selector": [3, "cow"],
        "reward": [3, "cow"],
        "start": [3, "cow"],
        "cover": ["yes", 1],
        "batch": SIZES[:5],
        "rounds": SIZES[:5],
        "holdout": [-0.1, 1.0, "x"],
        "seed": [-1, 2.5, "3"],
        "budget": [-1, 2.5, "3"],
        "store": [3, ["x"]],
        "key": [3],
        "column": [3],
        "label": [3],
        "labels": [3],
        "label_separator": [3],
        "trust": FLAGS,
        "progress": [3, None],
    },
    "make_model": {
        "model_or_name": ["cow", *(name for name in NAMES if name not in (None, []))],
        "task": [3, None, "multi-class", ["cat", "dog"], Thing()],
        "pool": ["photos", 3, None, POOL.probs, Thing()],
    },
}

#: arguments that may be anything
ANYTHING = {
    "Learner.ask": {"model"},  # handed on to own_reward as it is
    "Learner.open_round": {"model"},
    # checked against what the kind of pool takes
    "open_pool": set(inspect.signature(open_pool).parameters) - {"source", "kind"},
    "make_model": {"options"},
}
#: calls that nobody makes from outside
MACHINERY = {
    "Learner.replay_round": "goes through what the store holds",
    "ArrayView.per_row": "called by arms, in inner loops",
    "ArrayView.finetuned": "called by arms",
    "ArrayView.boundary_distances": "called by arms",
    "ArrayView.to_device": "called by arms, in inner loops",
    "ArrayView.count_predicted": "called by arms, in inner loops",
    "ArrayView.rows": "called by arms, in inner loops",
    "ArrayView.feature_rows": "called by arms, in inner loops",
    "ArrayView.columns": "called by arms, in inner loops",
    "ArrayView.offering": "called by rounds, with a part of what is free",
    "Settings.check_same": "compares with what the store holds",
    "Settings.from_dict": "reads what the store holds, and goes through Settings",
    "Budget.met": "called by sessions",
    "TargetAccuracy.met": "called by sessions",
    "Plateau.met": "called by sessions",
    "ClassCounts.met": "called by sessions",
    "Session.take": "a step of ask, for coordinators",
    "Session.draft": "a step of ask, for coordinators",
    "Session.enter": "a step of ask, for coordinators",
    "Session.enter_stage": "a step of ask, for coordinators",
    "Session.train": "a step of final_fit",
    "Session.answers_event": "a step of tell, with its checks",
    "Session.vote_event": "a step of vote, with its checks",
    "Session.withdrawal_event": "a step of withdraw, with its checks",
    "Review": "a part of a coordinator",
    "ClassEditor": "a part of a coordinator",
    "Session.position_of": "a step of tell, for coordinators",
    "Session.record": "takes what was checked",
}
#: what is given out and never handed in, and what is never made itself
RESULTS = {
    "Batch",
    "Contest",
    "LabelSummary",
    "Outcomes",
    "Pick",
    "Run",  # open_run makes it; what it does, its session checks
    "Exhausted",
    "InputError",
    "PoolView",
    "TailorError",
    "NotTrusted",
    "Task",
    "UnknownName",
    "__version__",
}
#: what users derive their own from; the contracts in tailor.testing check those
BASES = {"Model", "Pool", "Reward", "ScoreStrategy", "Selector", "Strategy"}
#: with these alone: what a project opens, it opens for commands
FUNCTIONS_TO_CHECK = [Project, open_pool, open_run, make_model]
PUBLIC = [getattr(tailor, name) for name in tailor.__all__ if name not in RESULTS | BASES]
CLASSES_TO_CHECK = [
    *(public for public in PUBLIC if public not in FUNCTIONS_TO_CHECK),
    Budget,
    TargetAccuracy,
    Plateau,
    ClassCounts,
    Review,
    ClassEditor,
]


def public_calls():
    """name -> signature, of constructors and public methods."""
    for cls in CLASSES_TO_CHECK:
        yield cls.__name__, inspect.signature(cls)
        for name, member in inspect.getmembers(cls, callable):
            if not name.startswith("_"):
                yield f"{cls.__name__}.{name}", inspect.signature(member)
    for function in FUNCTIONS_TO_CHECK:
        yield function.__name__, inspect.signature(function)


@pytest.mark.parametrize("call", [name for name, _ in public_calls()])
def test_every_argument_has_a_row(call):
    if call in MACHINERY:
        return
    named = {name for name in dict(public_calls())[call].parameters if name != "self"}
    assert named == set(WRONG.get(call, {})) | ANYTHING.get(call, set())


def test_no_row_is_left_over():
    calls = {name for name, _ in public_calls()}
    assert {*WRONG, *ANYTHING, *MACHINERY} <= calls
    assert not set(WRONG) & set(MACHINERY)


# ------------------------------------------------------------------ good calls, of which one
# argument is made wrong


def view():
    return ArrayView(TASK, POOL.probs, POOL.features, labelled=[0], labels=[[1, 0, 0]])


def begun():
    learner = Learner(TASK, 30, strategies=["random"], batch=4)
    learner.tell([0], [[1, 0, 0]])
    learner.skip([5])
    return learner


def make_round(**given):
    good = {
        "view": view(),
        "arms": make_arms(["random"], TASK),
        "plan": np.zeros(3, np.int64),
        "seed": 0,
    }
    return Round(**(good | given))


def make_session(path, **given):
    pool = Points()
    chosen = settings()
    good = {
        "store": SqliteStore(path),
        "pool": pool,
        "model": Centroids(chosen.task, pool),
        "settings": chosen,
    }
    try:
        return Session(**(good | given))
    finally:
        if isinstance(given.get("store", good["store"]), SqliteStore) and given:
            good["store"].close()


GOOD = {
    "MultiClass": {"classes": ["cat", "dog"]},
    "MultiClass.index": {"name": "cat"},
    "MultiClass.check_labels": {"labels": [[1, 0, 0]]},
    "MultiClass.label_rows": {"labels": ["cat"]},
    "MultiClass.targets": {"labels": [[1, 0, 0]]},
    "MultiClass.encode": {"answers": ["cat", 1]},
    "MultiClass.predicted": {"probs": POOL.probs},
    "MultiLabel": {"classes": 3},
    "MultiLabel.index": {"name": "cat"},
    "MultiLabel.check_labels": {"labels": [[1, 0, 1]]},
    "MultiLabel.label_rows": {"labels": [["cat"]]},
    "MultiLabel.targets": {"labels": [[1, 0, 1]]},
    "MultiLabel.encode": {"answers": [["cat", 1], []]},
    "MultiLabel.predicted": {"probs": POOL.probs},
    "Learner": {"task": TASK, "pool": 30},
    "Learner.ask": {"probs": POOL.probs, "features": POOL.features},
    "Learner.open_round": {"probs": POOL.probs, "features": POOL.features},
    "Learner.tell": {"positions": [1], "labels": [[0, 1, 0]]},
    "Learner.skip": {"positions": [1]},
    "Learner.offer_again": {"positions": [5]},
    "Learner.withdraw": {"positions": [0]},
    "ArrayView": {"task": TASK, "probs": POOL.probs, "labelled": [0], "labels": [[1, 0, 0]]},
    "Round": {},
    "Round.repick": {"index": 3},
    "Round.reveal": {"index": 3, "label": [0, 1, 0]},
    "Settings": {"kind": "multi-class", "classes": ("a", "b")},
    "Budget": {"labels": 5},
    "TargetAccuracy": {"accuracy": 0.9},
    "Plateau": {},
    "ClassCounts": {"count": 5},
    "Session": {},
    "Session.ask": {},
    "Session.tell": {"answers": {"p00001": "a"}},
    "Session.vote": {"id": "p00001", "answer": "a", "by": "ann", "of": 2},
    "Session.set_goals": {"goals": Goals()},
    "Session.withdraw": {"ids": ["p00000"]},
    "Session.offer_again": {"ids": ["p00002"]},
    "Session.predict": {"positions": [0, 1]},
    "Session.add_class": {"name": "d"},
    "Session.rename_class": {"old": "a", "new": "d"},
    "Session.merge_classes": {"old": "a", "into": "b"},
    "Session.undo_merge": {},
    "Session.undo": {"of": "ann"},
    "Coordinator": {},
    "Coordinator.next": {"annotator": "ann"},
    "Coordinator.answer": {"annotator": "ann", "id": "p00001", "label": ["a"]},
    "Coordinator.settle": {"id": "p00001", "label": ["a"], "by": "ann"},
    "Coordinator.history": {"annotator": "ann"},
    "Coordinator.release": {"annotator": "ann"},
    "Coordinator.heartbeat": {"annotator": "ann"},
    "Coordinator.why": {"id": "p00001"},
    "Coordinator.item": {"id": "p00001"},
    "Review.labelled": {},
    "Review.disagreements": {},
    "ClassEditor.add": {"name": "d", "by": "ann"},
    "ClassEditor.rename": {"old": "a", "new": "d", "by": "ann"},
    "ClassEditor.merge": {"old": "a", "into": "b", "by": "ann"},
    "ClassEditor.labels_to_merge": {"old": "a", "into": "b"},
    "ClassEditor.undo_merge": {"by": "ann"},
    "open_pool": {"source": np.eye(3)},
    "open_run": {},
    "make_model": {"model_or_name": "probe", "task": TASK, "pool": open_pool(np.eye(3))},
}


class Maker:
    """Objects to call, made anew where a call changes them."""

    def __init__(self, folder):
        self._folder = folder
        self._made = 0

    def call(self, name, /, **given):
        cls, _, method = name.partition(".")
        arguments = GOOD.get(name, {}) | given
        if method:
            made = self._object(cls)
            if name == "Session.undo_merge":
                made.merge_classes("c", "b", "ann")
            if name == "Session.undo":
                made.rename_class("c", "d", "ann")
                arguments = {"event": made.run_state.event} | arguments
            if name == "ClassEditor.undo_merge":
                made.merge("c", "b", "ann")
                arguments = {"event": made.last_merge()["event"]} | arguments
            return getattr(made, method)(**arguments)
        if cls == "Round":
            return make_round(**arguments)
        if cls == "Session":
            return make_session(self._path(), **arguments)
        if cls == "open_run":
            return self._open_run(**arguments)
        if cls == "Coordinator":
            return Coordinator(**({"source": self._object("Session")} | arguments))
        kinds = {
            "MultiClass": MultiClass,
            "MultiLabel": MultiLabel,
            "Learner": Learner,
            "ArrayView": ArrayView,
            "Settings": Settings,
            "Budget": Budget,
            "TargetAccuracy": TargetAccuracy,
            "Plateau": Plateau,
            "ClassCounts": ClassCounts,
            "Project": lambda folder=".", **given: Project(folder, **given),
            "open_pool": open_pool,
            "make_model": make_model,
        }
        return kinds[cls](**arguments)

    def _open_run(self, **arguments):
        points = self._folder / "points.npy"
        np.save(points, np.eye(6, dtype=np.float32))
        good = {"path": points, "classes": ["a", "b"], "run": self._path().with_suffix("")}
        run = open_run(**(good | arguments))
        run.close()
        return run

    def _path(self):
        self._made += 1
        return self._folder / f"{self._made}.db"

    def _object(self, cls):
        if cls == "Session":
            session = make_session(self._path())
            session.read_pool()
            session.tell({"p00000": "a", "p00002": None})
            session.model.fit(np.array([0]), np.array([[1, 0, 0]]), seed=0)
            session._remodel = lambda task: Centroids(task, session.pool)
            return session
        if cls in ("Coordinator", "Review", "ClassEditor"):
            coordinator = Coordinator(self._object("Session"))
            parts = {"Review": coordinator.review, "ClassEditor": coordinator.class_editor}
            return parts.get(cls, coordinator)
        makers = {
            "MultiClass": lambda: TASK,
            "MultiLabel": lambda: MultiLabel(TASK.classes),
            "Learner": begun,
            "ArrayView": view,
            "Round": make_round,
        }
        return makers[cls]()


@pytest.mark.parametrize("call", list(GOOD))
def test_the_good_call_is_good(tmp_path, call):
    """None of the table's refusals is for the arguments that stay as they are."""
    refused = None
    try:
        Maker(tmp_path).call(call)
    except InputError as error:
        refused = error
    assert refused is None


def _names(said, argument, value):
    """Whether a message names the argument (classes: "class names") or what is wrong in the value,
    and says more.
    """
    value_words = [
        word
        for word in re.findall(r"[\w.]+", shown(value))
        if re.search(rf"\b{re.escape(word)}\b", said)
    ]
    return (argument[:4] in said.lower() or value_words or "''" in said) and len(said) > 20


@pytest.mark.parametrize(
    ("call", "argument"), [(call, name) for call in WRONG for name in WRONG[call]]
)
def test_what_an_argument_can_not_be(tmp_path, call, argument):
    maker = Maker(tmp_path)
    problems = []
    for value in WRONG[call][argument]:
        try:
            maker.call(call, **{argument: value})
        except TailorError as error:
            if not _names(str(error), argument, value):
                problems.append(f"{shown(value)}: says only {error}")
        except Exception as error:
            problems.append(f"{shown(value)}: {type(error).__name__}: {error}")
        else:
            problems.append(f"{shown(value)}: accepted")
    assert not problems, f"{call}({argument}=):\n" + "\n".join(problems)


# ------------------------------------------------------------------ what is accepted


def test_numpys_whole_numbers_are_whole_numbers(tmp_path):
    learner = Learner(
        MultiClass(np.int64(3)),
        np.int32(30),
        strategies="random",
        batch=np.uint8(4),
        seed=np.int64(7),
    )
    assert learner.ask(POOL.probs, size=np.int16(2)).indices.tolist() == (
        Learner(MultiClass(3), 30, strategies=["random"], batch=4, seed=7)
        .ask(POOL.probs, size=2)
        .indices.tolist()
    )
    session = make_session(tmp_path / "run.db")
    assert isinstance(asked := session.ask(np.int64(3)), Asked)
    assert len(asked) == 3
    assert len(Coordinator(session).next("ann", np.int64(2)).items) == 2


def test_ids_may_come_in_a_set_or_as_keys(tmp_path):
    session = make_session(tmp_path / "run.db")
    session.read_pool()
    answers = {"p00003": "a", "p00001": "b", "p00002": "a"}
    for ids in (answers.keys(), set(answers), frozenset(answers), iter(answers)):
        session.tell(answers)
        session.withdraw(ids)
        assert session.run_state.answered() == 0
        session.tell(dict.fromkeys(answers))
        session.offer_again(set(answers))
        assert session.run_state.summary()["skipped"] == 0


def test_unequal_rows_are_blamed_only_where_there_are_some():
    with pytest.raises(
        TailorError, match=r"labels can't be made an array: .*; its rows must be of one length"
    ):
        TASK.check_labels(RAGGED)
    with pytest.raises(TailorError, match=r"labels can't be made an array: .*BFloat16$"):
        TASK.check_labels(torch.eye(3, dtype=torch.bfloat16))


def test_a_text_is_one_family_and_lists_are_as_good_as_tuples(tmp_path):
    as_lists = Settings(
        "multi-class", ["a", "b", "c"], strategies="galaxy", batch=12, rounds=6, seed=3
    )
    assert as_lists == Settings(
        "multi-class", ("a", "b", "c"), strategies=("galaxy",), batch=12, rounds=6, seed=3
    )
    make_session(tmp_path / "run.db", settings=as_lists)
    again = Settings(
        "multi-class", ("a", "b", "c"), strategies=["galaxy"], batch=12, rounds=6, seed=3
    )
    make_session(tmp_path / "run.db", settings=again)  # not another run's
    assert [arm.name for arm in Learner(TASK, 9, strategies="galaxy(pending=split)").arms] == [
        "galaxy[cat]",
        "galaxy[dog]",
        "galaxy[fox]",
    ]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("task", [TASK, MultiLabel(3)], ids=lambda task: task.kind)
def test_a_probability_may_be_off_by_what_a_row_may_be(task, dtype):
    """By 0.001 (0.02 in half precision), on either side; it then counts as 0 or 1."""
    tolerance = 0.02 if dtype is np.float16 else 0.001
    families = [
        "galaxy",
        "bald",
        *(["confidence"] if task is TASK else ["weak-supervision", "uncertainty"]),
    ]
    sharp = np.eye(3)[np.arange(30) % 3]
    sharp[10:] = 0.8 * sharp[10:] + 0.2 / 3
    off = sharp + np.where(sharp == 1, 0.7 * tolerance, np.where(sharp == 0, -0.3 * tolerance, 0))

    def picks(probs):
        probs = probs.astype(dtype)
        learner = Learner(task, 30, strategies=families, batch=12)
        learner.tell([0, 11], [[1, 0, 0], [0, 0, 1]])
        return learner.ask(
            probs, dropout=lambda: [probs], finetune=lambda targets, epochs: probs
        ).indices.tolist()

    assert picks(off) == picks(sharp)
    for change in (lambda p: p + 3 * tolerance * (p == 1), lambda p: p - 3 * tolerance * (p == 0)):
        with pytest.raises(TailorError, match=r"outside \[0, 1\]"):
            picks(change(sharp))
