"""Classes that are added, renamed or merged in the middle of a run: labels, posteriors and model
follow.
"""

from __future__ import annotations

import numpy as np
import pytest
from coordinators import label, open_coordinator, open_session, prepare, state, truth
from small import Points

from tailor.bandits.rewards import make_reward
from tailor.errors import InputError, UnknownName
from tailor.models.base import Notice
from tailor.run import config
from tailor.run.answer_writer import AnswerWriter
from tailor.run.export import rows
from tailor.run.project import Project
from tailor.selection.class_edits import added, merged, renamed
from tailor.selection.learner import Learner
from tailor.storage import SqliteStore, StoreError
from tailor.task import MultiClass, MultiLabel

FAMILIES = ("galaxy", "confidence")


@pytest.fixture
def coordinator(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", Points(200), strategies=FAMILIES)
    label(coordinator, 40)
    yield coordinator
    coordinator.close()


def reopened(coordinator):
    coordinator.close()
    return open_coordinator(coordinator.session.store.path, Points(200), strategies=FAMILIES)


def posterior(run_state):
    """Evidence by the name of arm and class."""
    (evidence,) = (v for v in run_state.learner.selector.state().values() if np.ndim(v) >= 2)
    evidence = (
        evidence[:, : run_state.task.size]
        .reshape(len(run_state.learner.arms), run_state.task.size, -1)
        .sum(2)
    )
    return {
        (arm.name, name): evidence[i, k]
        for i, arm in enumerate(run_state.learner.arms)
        for k, name in enumerate(run_state.task.classes)
    }


def test_a_new_class_can_be_answered_and_gets_its_arms(coordinator):
    before = posterior(coordinator.run_state())
    counts = coordinator.run_state().counts()
    assert coordinator.class_editor.add("d", "ann") == ("a", "b", "c", "d")
    after = posterior(coordinator.run_state())
    assert all(after[key] == value for key, value in before.items())
    assert coordinator.run_state().counts() == counts | {"d": 0}
    held = coordinator.next("ann")
    prepare(coordinator)
    (item,) = held.items or coordinator.next("ann").items
    assert coordinator.answer("ann", item.id, ["d"]).counts["d"] == 1
    label(coordinator, 30)
    assert "galaxy[d]" in {arm.name for arm in coordinator.run_state().learner.arms}
    assert coordinator.session.model.task.classes == coordinator.classes
    assert len(coordinator.review.labelled(klass="d").items) == 1


def test_a_rename_changes_nothing_but_the_name(coordinator):
    before = coordinator.run_state()
    session_round = coordinator.session.session_round
    coordinator.class_editor.rename("b", "bee", "ann")
    now = coordinator.run_state()
    assert now.counts() == {{"b": "bee"}.get(k, k): n for k, n in before.counts().items()}
    assert posterior(now) == {
        (arm.replace("[b]", "[bee]"), {"b": "bee"}.get(k, k)): v
        for (arm, k), v in posterior(before).items()
    }
    assert coordinator.session.session_round is session_round
    assert {row["label"] for row in rows(now)} <= {"a", "bee", "c"}
    item = coordinator.next("ann").items[0]
    assert coordinator.answer("ann", item.id, ["bee"]).counts["bee"] == now.counts()["bee"] + 1


def test_a_merge_is_as_if_there_had_been_one_class(coordinator):
    before = coordinator.run_state()
    labels = {row["id"]: row["label"] for row in rows(before)}
    coordinator.class_editor.merge("c", "b", "ann")
    now = coordinator.run_state()
    assert now.task.classes == ("a", "b")
    assert {row["id"]: row["label"] for row in rows(now)} == {
        i: "b" if n == "c" else n for i, n in labels.items()
    }
    assert now.counts() == {
        "a": before.counts()["a"],
        "b": before.counts()["b"] + before.counts()["c"],
    }
    expected = fresh_posterior(before, {"a": "a", "b": "b", "c": "b"}, MultiClass(["a", "b"]))
    assert posterior(now) == pytest.approx(expected)
    assert all(
        p[1] in {"galaxy[a]", "galaxy[b]", "confidence", "hold-out", "random start"}
        for p in ((i, now.pick_record(i).arm) for i in now.label_table.picks.positions.tolist())
    )
    # and the run goes on
    assert not set(label_two(coordinator, 30)) & set(labels)


def fresh_posterior(before, name_of, task):
    """Every round learned anew, in the new classes, by arms of that name."""
    learner = Learner(task, 1, strategies=FAMILIES, batch=12, rounds=6)
    names = [arm.name for arm in learner.arms]
    old = before.task.classes
    for learned in before.learner.history.rounds:
        arms = []
        heard = learned.outcomes
        for arm in heard.arms.tolist():
            family, _, rest = before.learner.arms[arm].name.partition("[")
            arms.append(names.index(f"{family}[{name_of[rest[:-1]]}]" if rest else family))
        answers = [
            name_of[old[k]] for k in before.label_table.labels_of(learned.positions).argmax(1)
        ]
        labels = task.encode(answers) if answers else np.zeros((0, task.size))
        learner.selector.learn(
            type(heard)(heard.round, np.ones(task.size) / task.size, np.array(arms, int), labels)
        )

    class Told:
        pass

    told = Told()
    told.learner = learner
    told.task = task
    return posterior(told)


def label_two(coordinator, n):
    done = []
    for _ in range(n):
        prepare(coordinator)
        (item,) = coordinator.next("ann").items
        coordinator.answer(
            "ann",
            item.id,
            [{"c": "b"}.get(truth(coordinator, item.id)[0], truth(coordinator, item.id)[0])],
        )
        done.append(item.id)
    return done


def test_what_waits_goes_on_waiting_and_what_is_held_stays_held(coordinator):
    held = [i.id for i in coordinator.next("ann", 3).items]
    coordinator.class_editor.merge("c", "a", "bob")
    assert [i.id for i in coordinator.next("ann", 3).items] == held
    for one in held:
        coordinator.answer("ann", one, ["a"])
    prepare(coordinator)
    assert coordinator.next("ann").items[0].round == len(coordinator.run_state().rounds) - 1


def test_edits_survive_a_restart(coordinator):
    coordinator.class_editor.add("d", "ann")
    label(coordinator, 5)
    coordinator.class_editor.rename("a", "first", "ann")
    coordinator.class_editor.merge("c", "b", "ann")
    before = state(coordinator.session.run_state)
    again = reopened(coordinator)
    assert state(again.session.run_state) == before
    assert again.classes == ("first", "b", "d")
    again.close()


def test_edits_before_and_after_a_restart_and_then_a_full_disk(coordinator, monkeypatch):
    """A failed write has the run rebuilt; the classes handed in are neither the first nor the last
    by then.
    """
    coordinator.class_editor.rename("a", "first", "ann")
    coordinator.close()
    again = open_coordinator(
        coordinator.session.store.path,
        Points(200),
        strategies=FAMILIES,
        classes=("first", "b", "c"),
    )
    prepare(again)
    again.class_editor.rename("b", "second", "ann")
    (item,) = again.next("ann").items
    with monkeypatch.context() as patch:
        patch.setattr(
            again.session.store,
            "append",
            lambda *_: (_ for _ in ()).throw(StoreError("the disk is full")),
        )
        with pytest.raises(StoreError, match="full"):
            again.answer("ann", item.id, ["second"])
    assert again.answer("ann", item.id, ["second"]).id == item.id
    assert again.item(item.id).label == ("second",)
    again.close()


def test_a_dispute_may_be_over_when_classes_are_one(tmp_path):
    coordinator = open_coordinator(
        tmp_path / "a.db", coordinator={"overlap": 2, "overlap_share": 1.0}
    )
    prepare(coordinator)
    one = coordinator.next("ann").items[0].id
    coordinator.answer("ann", one, ["b"])
    coordinator.answer("bob", one, ["c"])
    assert coordinator.review.disagreements().total == 1
    coordinator.class_editor.merge("c", "b", "chief")
    assert coordinator.review.disagreements().total == 0
    assert coordinator.item(one).label == ("b",)
    coordinator.close()


def test_a_round_that_was_being_prepared_for_other_classes_is_dropped(coordinator):
    draft = coordinator.session.draft()
    coordinator.class_editor.add("d", "ann")
    assert not coordinator.session.enter(draft)
    assert draft.number == len(coordinator.run_state().rounds)


@pytest.mark.parametrize(
    ("edit", "word"),
    [
        (lambda coordinator: coordinator.class_editor.add("a", "ann"), "'a' is given 2 times"),
        (lambda coordinator: coordinator.class_editor.add("", "ann"), "non-empty"),
        (lambda coordinator: coordinator.class_editor.rename("a", "b", "ann"), "2 times"),
        (lambda coordinator: coordinator.class_editor.rename("zebra", "b", "ann"), "zebra"),
        (lambda coordinator: coordinator.class_editor.merge("a", "a", "ann"), "itself"),
        (lambda coordinator: coordinator.class_editor.merge("a", "zebra", "ann"), "zebra"),
    ],
)
def test_bad_edits_change_nothing(coordinator, edit, word):
    events = coordinator.session.store.last().number
    with pytest.raises(InputError, match=word):
        edit(coordinator)
    assert coordinator.session.store.last().number == events
    assert coordinator.classes == ("a", "b", "c")


def test_two_classes_of_two_cannot_be_merged(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", Points(50, classes=2), classes=("a", "b"))
    with pytest.raises(InputError, match="needs 2 classes"):
        coordinator.class_editor.merge("a", "b", "ann")
    coordinator.close()


def test_a_reward_for_the_old_classes_refuses_new_ones(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db")
    coordinator.session.run_state.learner.reward = make_reward(
        ("domain", {"weights": [0.3, 0.2, 0.1]})
    )
    with pytest.raises(InputError, match="weights have shape"):
        coordinator.class_editor.add("d", "ann")
    assert coordinator.classes == ("a", "b", "c")
    coordinator.close()


def test_changes_of_columns():
    labels = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0]])
    merge = merged(MultiLabel(["x", "y", "z"]), "z", "x")
    assert merge.labels(labels).tolist() == [[1, 0], [0, 1], [0, 0]]
    assert merge.shares(np.array([[0.2, 0.5, 0.6]])).tolist() == [[0.6, 0.5]]
    joint = merged(MultiClass(["x", "y", "z"]), "x", "z")
    assert joint.shares(np.array([[0.25, 0.5, 0.25]])).tolist() == [[0.5, 0.5]]
    assert joint.weights(np.array([1 / 3, 1 / 6, 1 / 6])).tolist() == pytest.approx([0.25, 0.375])
    more = added(MultiClass(["x", "y"]), "z")
    assert more.labels(labels[:, :2]).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert more.weights(np.array([0.5, 0.25])).tolist() == pytest.approx([1 / 3, 1 / 6, 1 / 3])
    assert renamed(MultiClass(["x", "y"]), "y", "z").only_names
    with pytest.raises(UnknownName):
        renamed(MultiClass(["x", "y"]), "z", "y")


def test_a_session_without_a_way_to_make_models_says_so(tmp_path):
    session = open_session(tmp_path / "a.db")
    session._remodel = None
    with pytest.raises(InputError, match="remodel"):
        session.add_class("d")
    session.store.close()


# ---------------------------------------------------------------------- tailor.toml


def project(folder, classes):
    folder.mkdir(exist_ok=True)
    if not (folder / "x.npy").exists():
        np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32))
    (folder / config.FILE).unlink(missing_ok=True)
    config.write(
        folder,
        {
            "task": {"kind": "multi-class", "classes": list(classes)},
            "pool": {"path": "x.npy"},
            "model": {"name": "probe(steps=5)"},
            "selection": {"batch": 10, "strategies": ["confidence", "random"]},
        },
    )
    return Project(folder)


def test_a_projects_folder_may_be_a_text(tmp_path):
    by_path = project(tmp_path / "run", "abc")
    by_text = Project(str(tmp_path / "run"))
    assert (by_text.folder, by_text.place) == (by_path.folder, by_path.place)


def test_the_runs_classes_win_over_tailor_toml(tmp_path):
    first = project(tmp_path / "run", "abc")
    session = first.session()
    assert first.notes == []
    ids = session.ask().ids
    session.tell({one: "abc"[n % 3] for n, one in enumerate(ids)})
    session.merge_classes("c", "b", by="ann")
    session.add_class("d")
    session.store.close()
    with pytest.warns(Notice, match="changed in the run"):
        again = Project(tmp_path / "run")
    assert again.settings.classes == ("a", "b", "d")
    assert again.run_state().task.classes == ("a", "b", "d")
    assert "changed in the run to a, b, d" in again.notes[0]
    assert "tailor.toml" in again.notes[0]
    session = again.session()
    session.tell({ids[0]: "d"})
    assert len(session.ask()) == 10
    session.store.close()
    followed = project(tmp_path / "run", ["a", "b", "d"])  # tailor.toml was brought up to date
    assert followed.notes == []
    followed.session().store.close()
    with SqliteStore(
        tmp_path / "run" / "run.db"
    ) as store:  # an answer writer needs no model to change classes
        AnswerWriter(store, followed.settings).rename_class("d", "dee")
    assert project(tmp_path / "run", "abc").settings.classes == ("a", "b", "dee")
    with pytest.raises(InputError, match=r"edited since to \('a', 'b', 'dee'\)"):
        project(tmp_path / "run", ["a", "b", "e"]).session()
