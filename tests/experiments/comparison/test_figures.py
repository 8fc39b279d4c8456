"""Figures: curves that are the rows', panels that can be read, a file for each."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up import FAMILIES, SCORES, rows_of

from tailor_experiments.comparison.curves import arm_curves, metric_curves
from tailor_experiments.comparison.gather import group, load
from tailor_experiments.comparison.pictures import lineup, overall_pictures
from tailor_experiments.comparison.report import write_report
from tailor_experiments.comparison.roles import learners
from tailor_experiments.figures import draw_panels, style

MANY = {f"{name} alone": [name] for name in ("badge", "galaxy", "margin", "entropy")} | {
    "random": ["random"]
}


def many_contenders():
    tailors = ["TAILOR", *(f"TAILOR, {k}" for k in range(10))]
    scores = {name: [0.5, 0.6] for name in [*tailors, *MANY, "ALBL", "COMB"]}
    return group(rows_of(scores, families=MANY))[0]


def test_many_contenders_have_rows_of_their_own_kind():
    """At most nine in a row; the one in focus and random are in all, every other one in one."""
    found = many_contenders()
    rows = lineup(found, "TAILOR")
    assert [row[:2] for row in rows] == [["TAILOR", "random"]] * 4
    assert rows[0][2:] == [f"{name} alone" for name in ("badge", "entropy", "galaxy", "margin")]
    assert rows[1][2:] == ["ALBL", "COMB"]
    assert [len(row) for row in rows[2:]] == [7, 7]
    assert sorted(c for row in rows for c in row[2:]) == sorted(
        set(found.contenders) - {"TAILOR", "random"}
    )
    few = group(rows_of(SCORES, families=FAMILIES))[0]
    (only,) = lineup(few, "badge alone")
    assert (only[:2], set(only)) == (["badge alone", "random"], set(few.contenders))


def test_a_row_of_panels_shows_its_own_and_the_others_in_grey():
    found = many_contenders()
    figure = draw_panels(
        [("y", metric_curves(found, "score"))], "labels", "title", lineup(found, "TAILOR")
    )
    assert len(figure.axes) == 4
    for axis, row in zip(figure.axes, lineup(found, "TAILOR")):
        assert {line.get_label() for line in axis.lines} == set(row)
        assert len(axis.collections[0].get_paths()) == len(found.contenders) - len(row)
        assert [text.get_text() for text in axis.get_legend().get_texts()][-1] == "the others"
    some = {
        c: curve for c, curve in metric_curves(found, "score").items() if c in ("TAILOR", "ALBL")
    }
    assert len(draw_panels([("y", some)], "labels", lineup=lineup(found, "TAILOR")).axes) == 1


@pytest.mark.xdist_group("drawn")
def test_figures_drawn_by_several_processes_are_the_same(whole, multilabel, drawn, tmp_path):
    write_report(load(whole[0], multilabel[0]), tmp_path, workers=2)
    alone, together = (
        {path.name: path.read_bytes() for path in folder.glob("*.png")}
        for folder in (drawn, tmp_path)
    )
    assert len(alone) >= 12  # enough for two
    assert alone == together


def test_every_figure_has_a_file_of_its_own(tmp_path):
    (one,) = group(rows_of(SCORES))
    write_report([replace(one, name=name) for name in ("cars (2)", "cars 2", "cars 2!")], tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert (
        page.count("<figure>")
        == len(list(tmp_path.glob("*.png")))
        == len(list(tmp_path.glob("*.pdf")))
    )
    images = re.findall(r"base64,([^']+)", page)
    assert len(set(images)) == len(images)  # each says which experiment it is of


def test_the_figure_over_all_experiments_says_whom_it_is_about():
    here = group(rows_of(SCORES))[0]
    there = group(rows_of({"TAILOR": [0.6, 0.7], "random": [0.5, 0.5]}))[0]
    (picture,) = overall_pictures([here, replace(there, name="there")], Path(), "badge alone")
    assert picture.title.startswith("badge alone")
    (_, rows), *_ = picture.draw.args[0]
    assert [row[0] for row in rows] == ["made up", "there (TAILOR)"]


def test_curves_minus_another():
    (found,) = group(rows_of(SCORES, families=FAMILIES))
    curves = metric_curves(found, "test_score", window=1, minus="random")
    assert "random" not in curves
    assert curves["random meta"][1].tolist() == pytest.approx([0, np.mean([0.2, 0.2, 0.2, 0.21])])


def test_looks_never_come_again_and_no_legend_covers_a_curve():
    looks = [tuple(map(str, style(place).values())) for place in range(300)]
    assert len({look[:3] for look in looks}) == 300
    x = np.arange(5)
    many = {f"a contender with a long name {k}": (x, x * k, x * 0.1) for k in range(14)}
    figure = draw_panels([("left", many), ("right", many)], "labels")
    figure.draw_without_rendering()
    last = figure.axes[-1]
    assert [ax.get_legend() for ax in figure.axes[:-1]] == [None]
    legend = last.get_legend().get_window_extent()
    frame = figure.bbox
    assert legend.x0 >= last.get_window_extent().x1
    assert legend.x1 <= frame.x1
    assert legend.y0 >= frame.y0


def test_a_contender_looks_the_same_in_every_figure():
    x = np.arange(3)
    every = {name: (x, x, x * 0.0) for name in ("a", "b", "c")}
    whole = draw_panels([("y", every)], "labels", lineup=[["a", "b", "c"]]).axes[0]
    part = draw_panels([("y", {"c": every["c"]})], "labels", lineup=[["a", "b", "c"]]).axes[0]

    def look(axis):
        return next(
            (n.get_color(), n.get_linestyle(), n.get_marker())
            for n in axis.lines
            if n.get_label() == "c"
        )

    assert look(whole) == look(part)


def test_pulls_are_drawn_from_the_first_round_on(whole):
    """The random start has none: drawn as 0 it would bend the curve."""
    (found,) = group(whole[1])
    labels, mean, _ = metric_curves(found, "top_pulls", 1, ["TAILOR"])["TAILOR"]
    assert labels.tolist() == [30, 45, 60]
    assert mean.min() > 0


def test_curves_are_the_rows(whole):
    _, rows = whole
    (found,) = group(rows)
    assert found.contenders == ["TAILOR", "random"]
    assert found.main_metric == "test_score"
    by_hand = [
        [r["score"] for r in rows if r["contender"] == "random" and r["seed"] == s] for s in (0, 1)
    ]
    assert found.values("random", "score").tolist() == by_hand
    x, mean, error = metric_curves(found, "score", window=1)["random"]
    assert x.tolist() == [15, 30, 45, 60]
    assert mean == pytest.approx(np.mean(by_hand, 0))
    assert error == pytest.approx(np.std(by_hand, 0, ddof=1) / np.sqrt(2))


def test_pulls_are_the_rows(whole):
    _, rows = whole
    (found,) = group(rows)
    curves = arm_curves(found, "TAILOR", window=1)
    assert sum(mean.sum() for _, mean, _ in curves.values()) == pytest.approx(3 * 15)
    assert learners(found) == ["TAILOR"]
