"""What one results folder has over another: only what can be subtracted is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import SCORES, rows_of

from tailor.errors import InputError
from tailor_experiments.comparison.compare import compare
from tailor_experiments.comparison.gather import group


def test_compare(whole):
    (a,) = group(whole[1])
    worse = [{**r, "score": r["score"] - 0.01 * (1 + r["seed"])} for r in whole[1]]
    (b,) = group(worse)
    (table,) = compare([a], [b])
    assert [row[0] for row in table.rows] == ["TAILOR", "random"]
    assert table.rows[0][1].startswith("-0.0150 [")
    assert table.rows[0][2].startswith("+0.0000 [")
    assert table.note.count("15 random labels, then 3 rounds of 15") == 2  # A's and B's
    shifted = [
        replace(b, rows={c: {s + 9: t for s, t in trials.items()} for c, trials in b.rows.items()})
    ]
    assert compare([a], shifted) == []


@pytest.mark.parametrize(
    "other",
    [
        {"metric": "mAP"},
        {"task": "multi-label"},
        {"data": "y"},
        {"rarest_class": "cat"},
        {"classes": 10},
    ],
)
def test_what_is_measured_otherwise_is_not_subtracted(other):
    rows = [r | {"rarest_class": "dog", "classes": 2} for r in rows_of(SCORES)]
    (a,), (b,) = group(rows), group([r | other for r in rows])
    (key, value), *_ = other.items()
    with pytest.raises(
        InputError, match=f"{key.replace('_', ' ')} is {rows[0][key]!r} in A and {value!r} in B"
    ):
        compare([a], [b])
    older = group(
        [{k: v for k, v in r.items() if k != "classes"} for r in rows]
    )  # before it was a column
    assert compare([a], older)


def test_other_batches_are_compared_where_both_have_as_many_labels():
    """A batch of 10 measures 10 and 20 labels, a batch of 20 measures 20 and 40: 20 are A's last
    and B's first.
    """
    rows = rows_of({"TAILOR": [0.8, 0.9], "random": [0.6, 0.7]})
    (a,), (b,) = (
        group(rows),
        group([r | {"labels": 2 * r["labels"], "experiment": "large"} for r in rows]),
    )
    (table,) = compare([a], [b])
    assert table.title == "large minus made up, after 20 labels"
    at = table.columns.index("balanced accuracy (test)")
    assert [row[at].split()[0] for row in table.rows] == [
        "-0.3500",
        "-0.1500",
    ]  # 0.5 minus 0.85 and 0.65
    assert table.note.startswith("the most that both measured: A goes on to 20 labels, B to 40; ")
    (c,) = group([r | {"labels": 3 + r["labels"]} for r in rows])
    with pytest.raises(
        InputError, match="no number of labels in common: A has 10 to 20, B 13 to 23"
    ):
        compare([a], [c])
