"""Wrong labels are doubted, by what has not learned them."""

from __future__ import annotations

import numpy as np
import pytest

from tailor.insight.label_doubt import label_doubt
from tailor.insight.model_facts import FEWEST_LABELS, CrossFit, ModelFacts, cross_fit, says_instead
from tailor.insight.ranking import average_precision
from tailor.task import MultiClass, MultiLabel


def test_multi_class_doubt_is_what_the_label_is_not_given():
    labels = np.array([[1, 0, 0], [0, 0, 1]])
    probs = np.array([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1]])
    assert label_doubt(MultiClass(3), labels, probs) == pytest.approx([0.3, 0.9])
    assert says_instead(MultiClass(3), labels > 0, probs).tolist() == [0, 0]


def test_multi_label_doubt_is_that_of_the_most_doubtful_class():
    labels = np.array([[1, 0, 0], [0, 0, 1]])
    probs = np.array([[0.7, 0.6, 0.1], [0.1, 0.2, 0.95]])
    assert label_doubt(MultiLabel(3), labels, probs) == pytest.approx([0.6, 0.2])
    assert says_instead(MultiLabel(3), labels > 0, probs).tolist() == [1, 1]


def planted(rng, count, classes):
    """Points around four centres, one in twenty with a wrong label: (features, labels, wrong)."""
    centres = 3 * rng.normal(size=(classes, 8))
    truth = rng.integers(classes, size=count)
    features = centres[truth] + rng.normal(size=(count, 8))
    features = (features - features.mean(0)) / features.std(0)
    given = truth.copy()
    wrong = rng.permutation(count)[: count // 20]
    given[wrong] = (truth[wrong] + rng.integers(1, classes, len(wrong))) % classes
    return features.astype(np.float32), np.eye(classes)[given], np.isin(np.arange(count), wrong)


def test_planted_mistakes_come_first():
    features, labels, is_wrong = planted(np.random.default_rng(0), 400, 4)
    positions = np.arange(400)
    judged = cross_fit(MultiClass(4), positions, labels, features.__getitem__, seed=0)
    assert average_precision(is_wrong, judged.doubt) > 0.95


def test_too_few_labels_are_not_judged():
    features, labels, _ = planted(np.random.default_rng(1), FEWEST_LABELS - 1, 2)
    positions = np.arange(len(labels))
    assert cross_fit(MultiClass(2), positions, labels, features.__getitem__, seed=0) is None


def test_of_very_many_labels_a_part_is_judged(monkeypatch):
    monkeypatch.setattr("tailor.insight.model_facts.MOST_CELLS", 120)
    features, labels, _ = planted(np.random.default_rng(2), 100, 4)
    positions = np.arange(100) + 7
    judged = cross_fit(
        MultiClass(4), positions, labels, lambda chosen: features[chosen - 7], seed=0
    )
    assert len(judged.positions) == 30
    np.testing.assert_array_equal(judged.labels, labels[judged.positions - 7] > 0)


@pytest.mark.parametrize("whole", [True, False])
def test_facts_are_kept_from_process_to_process(tmp_path, whole):
    rng = np.random.default_rng(3)
    cross = None
    if whole:
        cross = CrossFit(
            positions=np.arange(4),
            labels=rng.random((4, 11)) < 0.5,
            doubt=rng.random(4).astype(np.float32),
            says=np.arange(4, dtype=np.int32),
            certainty=rng.random(4).astype(np.float32),
        )
    facts = ModelFacts(
        classes=tuple(f"c{k} – ü" for k in range(11)),
        round=3,
        answers=40,
        holdout=np.array([5, 9]),
        holdout_probs=rng.random((2, 11)).astype(np.float16),
        expected=rng.random(11) if whole else None,
        cross_fit=cross,
    )
    facts.save(tmp_path)
    again = ModelFacts.load(tmp_path)
    assert (again.classes, again.round, again.answers) == (facts.classes, 3, 40)
    np.testing.assert_array_equal(again.holdout_probs, facts.holdout_probs)
    assert (again.expected is None) == (not whole)
    if whole:
        np.testing.assert_array_equal(again.cross_fit.labels, cross.labels)
        np.testing.assert_array_equal(again.cross_fit.doubt, cross.doubt)


@pytest.mark.parametrize("damage", [b"", b"nonsense"])
def test_damaged_facts_are_measured_anew(tmp_path, damage):
    (tmp_path / "model-facts.npz").write_bytes(damage)
    assert ModelFacts.load(tmp_path) is None
    assert ModelFacts.load(tmp_path / "nowhere") is None
