"""Several annotations of one example, and what counts."""

from __future__ import annotations

from tailor.integrations.label_studio.annotations import Annotation, SettledAnswer, settled
from tailor.integrations.label_studio.label_config import LabelConfig

SINGLE = LabelConfig("multi-class", ("a", "b"), "text", "text", (), "c", "s")
SEVERAL = LabelConfig("multi-label", ("a", "b"), "text", "text", (), "c", "s")


def annotation(
    *classes, cancelled=False, user=1, config=SINGLE, time="2026-01-01T00:00:00.500000Z"
):
    result = config.result(classes)
    return {
        "id": 1,
        "result": result,
        "was_cancelled": cancelled,
        "completed_by": user,
        "updated_at": time,
    }


def test_annotations_are_read():
    assert Annotation.read(annotation("a"), SINGLE) == Annotation(1, 1, 1767225600.5, ("a",))
    assert Annotation.read(annotation("a", user={"id": 7}), SINGLE).user == 7
    assert Annotation.read(annotation("a", cancelled=True), SINGLE).classes is None
    assert (
        Annotation.read(annotation(), SINGLE).classes is None
    )  # submitted without a choice: nothing is known
    assert Annotation.read(annotation(), SEVERAL).classes == ()  # none of these


def test_nobody_one_and_a_majority():
    a1, b2, a3 = (Annotation(n, n, n, (c,)) for n, c in ((1, "a"), (2, "b"), (3, "a")))
    assert settled([]) is None
    assert settled([a1]) == SettledAnswer(("a",), 1, 1)
    assert settled([b2, a1]) == SettledAnswer(("b",), 2, 2)  # a tie: the latest
    assert settled([a1, b2, a3]) == SettledAnswer(("a",), 3, 3)


def test_one_person_has_one_voice():
    early = Annotation(1, 1, 1, ("a",))
    late = Annotation(2, 1, 5, ("b",))
    other = Annotation(3, 2, 3, ("a",))
    assert settled([early, late]).classes == ("b",)
    assert settled([early, late, other]).classes == ("b",)  # one each: the latest


def test_a_skip_counts_where_nobody_answered():
    skip = Annotation(1, 1, 9, None)
    label = Annotation(2, 2, 1, ("a",))
    assert settled([skip]) == SettledAnswer(None, 1, 9)
    assert settled([skip, label]) == SettledAnswer(("a",), 2, 1)
    assert (
        settled([Annotation(3, 2, 10, None), label]).classes is None
    )  # the same person thought again
