"""What the demo says at its end."""

from __future__ import annotations

from tailor_experiments.demo import CONTENDERS, DemoRow, DemoSetting, class_names, verdict


def rows_of(accuracies):
    """contender -> accuracy by round, one seed; all others have 0.1."""
    rows = []
    for contender in CONTENDERS:
        for number, accuracy in enumerate(accuracies.get(contender.label, [0.1, 0.1, 0.1])):
            row = DemoRow(contender.label, 0, number, 10 * (number + 1), accuracy, 1, 0.5)
            rows.append(row)
    return rows


def test_the_verdict_counts_labels_to_what_random_reaches():
    rows = rows_of({"TAILOR": [0.3, 0.8, 0.9], "random": [0.2, 0.4, 0.6], "ALBL": [0.3, 0.5, 0.7]})
    said = verdict(rows, DemoSetting(classes=10, batch=10, rounds=2, seeds=1))
    assert "TAILOR 0.667, ALBL (the best of the others) 0.500, random 0.400" in said
    assert "reaches with 30 labels, TAILOR reaches with 20" in said


def test_the_verdict_is_honest_where_random_is_better():
    rows = rows_of({"TAILOR": [0.1, 0.2, 0.3], "random": [0.2, 0.4, 0.6]})
    said = verdict(rows, DemoSetting(classes=10, batch=10, rounds=2, seeds=1))
    assert "TAILOR 0.200, random (the best of the others) 0.400" in said


def test_all_ten_digits_have_their_names():
    assert class_names(10) == [str(digit) for digit in range(10)]
    assert class_names(3) == ["0", "1", "2 to 9"]
