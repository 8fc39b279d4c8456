"""The report: tables that say what the rows say, figures of every kind, and a page that stands alone."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from tailor.bench.experiment import tables
from tailor.bench.experiment.gather import group, load
from tailor.bench.experiment.pictures import lineup, overall
from tailor.bench.experiment.report import all_tables, write_report
from tailor.bench.experiment.rows import RowFile, collect, essence, load_rows
from tailor.bench.figures import draw_panels, style
from tailor.cli.bench import _abreast
from tailor.errors import InputError


def test_curves_are_the_rows(whole):
    _, rows = whole
    (found,) = group(rows)
    assert found.contenders == ["TAILOR", "random"]
    assert found.main == "test_score"
    by_hand = [[r["score"] for r in rows if r["contender"] == "random" and r["seed"] == s] for s in (0, 1)]
    assert found.values("random", "score").tolist() == by_hand
    x, mean, error = found.curves("score", window=1)["random"]
    assert x.tolist() == [15, 30, 45, 60]
    assert mean == pytest.approx(np.mean(by_hand, 0))
    assert error == pytest.approx(np.std(by_hand, 0, ddof=1) / np.sqrt(2))


def test_pulls_are_the_rows(whole):
    _, rows = whole
    (found,) = group(rows)
    curves = found.pulls("TAILOR", window=1)
    assert sum(mean.sum() for _, mean, _ in curves.values()) == pytest.approx(3 * 15)
    assert found.learners() == ["TAILOR"]


def test_unfinished_trials_are_counted_and_left_out(whole):
    _, rows = whole
    cut = [r for r in rows if not (r["contender"] == "random" and r["seed"] == 1 and r["round"] == 3)]
    (found,) = group(cut)
    assert (found.unfinished, found.seeds("TAILOR", "random")) == (1, [0])
    assert "1 trials are not through" in tables.final(found).note


class Sources(HTMLParser):
    """What a page would fetch, and its tags."""

    def __init__(self):
        super().__init__()
        self.found, self.tags, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.found += [value for name, value in attrs if name in ("src", "href")]
        self.ids += [value for name, value in attrs if name == "id"]


def test_the_page_stands_alone(whole, multilabel, tmp_path):
    page = write_report(load(whole[0], multilabel[0]), tmp_path).read_text()
    parser = Sources()
    parser.feed(page)
    pieces = [source for source in parser.found if not source.startswith("#")]
    assert all(source.startswith("data:image/png;base64,") for source in pieces)
    assert {f"#{one}" for one in parser.ids} >= set(parser.found) - set(pieces)
    assert not {"script", "link", "iframe"} & set(parser.tags)
    assert "http" not in re.sub(r"base64,[^']+", "", page)
    pictures = {p.stem for p in tmp_path.glob("*.png")}
    assert pictures == {p.stem for p in tmp_path.glob("*.pdf")}
    assert len(pieces) == len(pictures)
    kinds = ["score", "test-score", "rarest-accuracy", "rarest", "imbalance", "positives", "arms-tailor", "top-arm"]
    assert {"overall", *(f"sayings-{kind}" for kind in [*kinds, "candidates", "differences"])} <= pictures
    assert "small-positives" not in pictures
    assert "Mean rank over 2 experiments" in page


def test_labels_are_escaped(whole, tmp_path):
    """For the page, and for figures, where "$x_$" would be bad mathematics."""
    rows = [{**r, "contender": "<b>x</b> $x_$"} if r["contender"] == "random" else r for r in whole[1]]
    page = write_report(group(rows), tmp_path).read_text()
    assert "<b>" not in page
    assert "&lt;b&gt;x" in page


def test_the_short_page_has_the_best_first(tmp_path):
    scores = {"TAILOR": [0.5, 0.7], "random": [0.6, 0.9], "a|b": [0.1, 0.2]}
    write_report(group(rows_of(scores)), tmp_path)
    lines = (tmp_path / "report.md").read_text().splitlines()
    at = lines.index("### made up")
    first, cells = [line.split(" | ")[0] for line in lines[at + 4 : at + 7]], lines[at + 4].split(" | ")
    assert first == ["| random", "| TAILOR", "| a\\|b"]
    assert cells[1:3] == ["2", "0.7500 ± 0.1500"]
    assert cells[4].startswith("+0.1500 [")
    assert lines[at + 5].split(" | ")[4] == ""  # itself


def test_differences_by_hand(whole):
    (found,) = group(whole[1])
    last = {(r["contender"], r["seed"]): r["test_score"] for r in whole[1] if r["round"] == 3}
    mean = np.mean([last["TAILOR", s] - last["random", s] for s in (0, 1)])
    table = tables.differences(found)
    assert table.rows[0][0] == "random"
    assert table.rows[0][1].startswith(f"{mean:+.4f} [")


def rows_of(scores, *, experiment="made up", families=None):
    """contender -> a final test score for each seed, as rows of one round."""
    found = []
    for contender, values in scores.items():
        own = (families or {}).get(contender, ["galaxy", "badge"])
        selector = "tailor" if contender.startswith("TAILOR") else "random-meta"
        for seed, value in enumerate(values):
            for number in (0, 1):
                row = {"experiment": experiment, "contender": contender, "seed": seed, "round": number, "rounds": 1}
                row |= {"task": "multi-class", "metric": "balanced accuracy", "labels": 10 * (number + 1), "data": "x"}
                row |= {"test_score": value if number else 0.5, "score": 0.5, "rarest": 3, "imbalance": 0.5}
                row |= {"positives": 10, "reward": "diversity", "pulls": {}, "selector": selector, "families": own}
                row |= {"resumed": False, "seconds": {}}
                found.append(row | {"peak_mib": 1, "versions": {}, "config": "x"})
    return found


SCORES = {
    "TAILOR": [0.80, 0.82, 0.81, 0.83],
    "TAILOR, wide": [0.81, 0.82, 0.82, 0.83],
    "galaxy alone": [0.79, 0.83, 0.80, 0.84],
    "badge alone": [0.70, 0.71, 0.72, 0.70],
    "random": [0.70, 0.715, 0.72, 0.72],
    "random meta": [0.90, 0.915, 0.92, 0.93],
}
FAMILIES = {"random": ["random"], "galaxy alone": ["galaxy"], "badge alone": ["badge"], "TAILOR, wide": ["galaxy", "x"]}


def test_verdicts_by_hand():
    """Differences of +-.01 around 0 are level, of about .1 to one side or the other they are not."""
    (found,) = group(rows_of(SCORES, families=FAMILIES))
    table = tables.differences(found)
    verdicts = {row[0]: row[-1] for row in table.rows}
    assert (verdicts["random"], verdicts["galaxy alone"], verdicts["random meta"]) == ("ahead", "level", "behind")
    (row,) = tables.yardsticks([found]).rows
    assert row[:4] == ("made up", "balanced accuracy (test)", "TAILOR", "galaxy alone")
    assert [cell.split()[-2:] for cell in row[4:]] == [[v, "(4)"] for v in ("level", "behind", "ahead")]
    (row,) = tables.yardsticks([found], "badge alone").rows
    assert row[2:4] == ("badge alone", "galaxy alone")
    one_seed = {c: values[:1] for c, values in SCORES.items()}
    (found,) = group(rows_of(one_seed, families=FAMILIES))
    assert {row[-1] for row in tables.differences(found).rows} == {"unknown"}


def test_the_best_single_family_is_one_of_the_candidates():
    """And may be another one in class balance."""
    families = {"TAILOR": ["galaxy", "confidence"], "galaxy alone": ["galaxy(pending=predicted)"]}
    families |= {"confidence alone": ["confidence"], "badge alone": ["badge"]}
    scores = {"TAILOR": [0.8] * 2, "galaxy alone": [0.7] * 2, "confidence alone": [0.6] * 2, "badge alone": [0.9] * 2}
    balance = {"TAILOR": (0.5, 0.51), "galaxy alone": (0.2, 0.2), "confidence alone": (0.3, 0.3), "badge alone": (1, 1)}
    rows = [r | {"imbalance": balance[r["contender"]][r["seed"]]} for r in rows_of(scores, families=families)]
    (found,) = group(rows)
    assert tables.rivals(found, "TAILOR")[0] == "galaxy alone"
    (row,) = tables.yardsticks([found], metric="imbalance").rows
    assert row[1:4] == ("imbalance ratio of labels", "TAILOR", "confidence alone")
    assert row[4] == "+0.2050 [+0.1415, +0.2685] * ahead (2)"  # 0.005 times Student's 12.71 to each side
    families["TAILOR"] = ["coreset"]  # alone it did not run
    (found,) = group(rows_of(scores, families=families))
    assert tables.rivals(found, "TAILOR")[0] == "badge alone"


def test_where_only_tailor_searches_positives_count():
    rows = rows_of({"TAILOR, search": [0.5, 0.6], "badge alone": [0.7, 0.7]})
    rows = [r | {"task": "multi-label", "reward": "search" if r["selector"] == "tailor" else "diversity"} for r in rows]
    (found,) = group(rows)
    assert found.aim == "positives"
    assert tables.focused(found, None) == "TAILOR, search"


def test_what_contenders_are_judged_by():
    """The score; in a search the positives; and where all have the same score, the labels in the rarest class."""
    rows = rows_of(SCORES, families=FAMILIES)
    assert group(rows)[0].aim == "test_score"
    assert group([{**r, "test_score": 0.1 * r["seed"]} for r in rows])[0].aim == "rarest"
    search = [{**r, "reward": "search", "task": "multi-label"} for r in rows]
    (found,) = group(search)
    assert found.aim == "positives"
    assert tables.differences(found).columns[1] == "total positives"


def test_the_area_of_a_difference():
    """Between 10 and 20 labels each curve is a straight line from .5: half the final difference."""
    (found,) = group(rows_of(SCORES, families=FAMILIES))
    final, area = (found.difference("TAILOR", "random", m) for m in ("test_score", "area"))
    assert area.mean == pytest.approx(final.mean / 2)
    assert (area.high - area.low) == pytest.approx((final.high - final.low) / 2)


def test_ranks_say_who_is_left_out():
    one = group(rows_of(SCORES, families=FAMILIES))
    two = group(rows_of({c: SCORES[c] for c in ("TAILOR", "random")}, experiment="two", families=FAMILIES))
    table = tables.ranks([*one, *two])
    assert [row[:2] for row in table.rows] == [("TAILOR", "1.00"), ("random", "2.00")]
    assert "badge alone" in table.note


def test_candidates_are_compared_within_one_selector():
    rows = rows_of(SCORES, families=FAMILIES)
    assert group(rows)[0].ablations() == [["TAILOR", "TAILOR, wide"]]
    for changed in ({"selector": "tailor(forget=1.0)"}, {"reward": "search"}):
        other = [{**r, **changed} if r["contender"] == "TAILOR, wide" else r for r in rows]
        assert group(other)[0].ablations() == []


MANY = {f"{name} alone": [name] for name in ("badge", "galaxy", "margin", "entropy")} | {"random": ["random"]}


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
    assert sorted(c for row in rows for c in row[2:]) == sorted(set(found.contenders) - {"TAILOR", "random"})
    few = group(rows_of(SCORES, families=FAMILIES))[0]
    (only,) = lineup(few, "badge alone")
    assert (only[:2], set(only)) == (["badge alone", "random"], set(few.contenders))


def test_a_row_of_panels_shows_its_own_and_the_others_in_grey():
    found = many_contenders()
    figure = draw_panels([("y", found.curves("score"))], "labels", "title", lineup(found, "TAILOR"))
    assert len(figure.axes) == 4
    for axis, row in zip(figure.axes, lineup(found, "TAILOR")):
        assert {line.get_label() for line in axis.lines} == set(row)
        assert len(axis.collections[0].get_paths()) == len(found.contenders) - len(row)
        assert [text.get_text() for text in axis.get_legend().get_texts()][-1] == "the others"
    some = {c: curve for c, curve in found.curves("score").items() if c in ("TAILOR", "ALBL")}
    assert len(draw_panels([("y", some)], "labels", lineup=lineup(found, "TAILOR")).axes) == 1


def test_figures_drawn_by_several_processes_are_the_same(multilabel, tmp_path):
    for workers in (1, 2):
        write_report(load(multilabel[0]), tmp_path / str(workers), workers=workers)
    alone, together = ({p.name: p.read_bytes() for p in (tmp_path / w).glob("*.png")} for w in "12")
    assert len(alone) >= 12  # enough for two
    assert alone == together


def test_every_figure_has_a_file_of_its_own(tmp_path):
    (one,) = group(rows_of(SCORES))
    write_report([replace(one, name=name) for name in ("cars (2)", "cars 2", "cars 2!")], tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert page.count("<figure>") == len(list(tmp_path.glob("*.png"))) == len(list(tmp_path.glob("*.pdf")))
    images = re.findall(r"base64,([^']+)", page)
    assert len(set(images)) == len(images)  # each says which experiment it is of


def test_the_figure_over_all_experiments_says_whom_it_is_about():
    here, there = group(rows_of(SCORES))[0], group(rows_of({"TAILOR": [0.6, 0.7], "random": [0.5, 0.5]}))[0]
    (picture,) = overall([here, replace(there, name="there")], Path(), "badge alone")
    assert picture.title.startswith("badge alone")
    (_, rows), *_ = picture.draw.args[0]
    assert [row[0] for row in rows] == ["made up", "there (TAILOR)"]


def test_ranks_and_the_best_family_are_found_on_common_seeds():
    """b's four seeds hold two good ones that a doesn't have: on the two that both have, a is the better one."""
    scores = {"TAILOR": [0.5] * 4, "a alone": [0.6, 0.62], "b alone": [0.5, 0.52, 0.9, 0.9]}
    (one,) = group(rows_of(scores, families={"a alone": ["a"], "b alone": ["b"]}))
    assert one.fair_means(["a alone", "b alone"]) == pytest.approx({"a alone": 0.61, "b alone": 0.51})
    assert tables.rivals(one, "TAILOR")[0] == "a alone"
    table = tables.ranks([one, replace(one, name="again")])
    assert [row[:2] for row in table.rows] == [("a alone", "1.00"), ("b alone", "2.00"), ("TAILOR", "3.00")]
    (row,) = [row for row in tables.differences(one).rows if row[0] == "b alone"]
    assert (row[1].split()[0], row[-2]) == ("-0.2050", "4")
    assert tables.differences(one, "a alone").rows[0][-2] == "2"


def test_trials_of_another_design_are_kept_apart():
    rows = rows_of({"TAILOR": [0.5, 0.6], "random": [0.4, 0.5]})
    longer = [{**r, "rounds": 2} for r in rows_of({"random": [0.4, 0.5]})]
    longer += [{**r, "rounds": 2, "round": 2, "labels": 30} for r in longer if r["round"] == 1]
    found = group([*rows, *({**r, "seed": r["seed"] + 5} for r in longer)])
    assert [(one.name, one.contenders) for one in found] == [
        ("made up (1 rounds)", ["TAILOR", "random"]),
        ("made up (2 rounds)", ["random"]),
    ]
    told = [{**r, "model": "probe" if r["contender"] == "random" else "sklearn"} for r in rows]
    assert [one.name for one in group(told)] == ["made up (sklearn)", "made up (probe)"]
    half = [{**r, "model": "probe"} if r["seed"] else r for r in rows]
    assert [(one.name, one.model) for one in group(half)] == [("made up", "probe")]
    with pytest.raises(InputError, match="'random' with seed 0 comes twice"):
        group([*rows, rows[-1] | {"seed": 0}])


def test_tables_say_what_was_run(multilabel):
    (found,) = load(multilabel[0])
    for text in (tables.final(found).note, tables.summary(found).note):
        assert "Data digits-multilabel, multi-label; model probe(steps=30); " in text
        assert "15 random labels, then 3 rounds of 15; reward diversity; " in text
        assert "3 contenders, 2 trials each (seeds 0 to 1)" in text


def test_curves_minus_another():
    (found,) = group(rows_of(SCORES, families=FAMILIES))
    curves = found.curves("test_score", window=1, minus="random")
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
    legend, frame = last.get_legend().get_window_extent(), figure.bbox
    assert legend.x0 >= last.get_window_extent().x1
    assert legend.x1 <= frame.x1
    assert legend.y0 >= frame.y0


def test_a_contender_looks_the_same_in_every_figure():
    x = np.arange(3)
    every = {name: (x, x, x * 0.0) for name in ("a", "b", "c")}
    whole = draw_panels([("y", every)], "labels", lineup=[["a", "b", "c"]]).axes[0]
    part = draw_panels([("y", {"c": every["c"]})], "labels", lineup=[["a", "b", "c"]]).axes[0]

    def look(axis):
        return next((n.get_color(), n.get_linestyle(), n.get_marker()) for n in axis.lines if n.get_label() == "c")

    assert look(whole) == look(part)


def test_compare(whole):
    (a,) = group(whole[1])
    worse = [{**r, "score": r["score"] - 0.01 * (1 + r["seed"])} for r in whole[1]]
    (b,) = group(worse)
    (table,) = tables.compare([a], [b])
    assert [row[0] for row in table.rows] == ["TAILOR", "random"]
    assert table.rows[0][1].startswith("-0.0150 [")
    assert table.rows[0][2].startswith("+0.0000 [")
    assert table.note.count("15 random labels, then 3 rounds of 15") == 2  # A's and B's
    shifted = [replace(b, rows={c: {s + 9: t for s, t in trials.items()} for c, trials in b.rows.items()})]
    assert tables.compare([a], shifted) == []


def test_a_target_of_ones_own(whole):
    (found,) = group(whole[1])
    assert tables.to_target(found, 2.0).rows[0][1:] == ("–", "0 of 2")
    assert tables.to_target(found, 0.0).rows[0][1] == "15 ± 0"
    together, balance, *each = (table.title for table in all_tables([found]))
    assert balance == f"{together}, by imbalance ratio of labels"
    kinds = ("after 60 labels", "TAILOR minus", "labels to balanced accuracy (test)", "seconds a round")
    assert all(title.startswith(f"small: {kind}") for title, kind in zip(each, kinds, strict=True))


def test_rows_can_be_kept_without_the_trials(whole, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    collect(whole[0]).rename(kept / "rows.jsonl")
    assert load_rows(kept) == load_rows(whole[0])
    packed = tmp_path / "packed"
    packed.mkdir()
    data = gzip.compress((kept / "rows.jsonl").read_bytes())
    (packed / "rows.jsonl.gz").write_bytes(data)
    assert load_rows(packed) == load_rows(whole[0])
    (packed / "rows.jsonl.gz").write_bytes(data[:-9])
    with pytest.raises(InputError, match="is damaged"):
        load_rows(packed)
    (packed / "rows.jsonl.gz").write_bytes(data[:50] + bytes(9) + data[59:])
    with pytest.raises(InputError, match="is damaged"):
        load_rows(packed)
    with pytest.raises(InputError, match="no rows in"):
        load_rows(tmp_path)


def test_kept_rows_are_not_lost_when_trials_are_added(whole, tmp_path):
    """The trials' own rows count; of trials without a folder, those that were kept."""
    rows = load_rows(whole[0])
    kept = [r for r in rows if r["contender"] == "random"]
    stale = [{**r, "score": -1.0} for r in rows if r["contender"] == "TAILOR"]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in [*kept, *stale]))
    shutil.copytree(whole[0] / "runs" / "tailor-0", tmp_path / "runs" / "tailor-0")
    shutil.copytree(whole[0] / "runs" / "tailor-1", tmp_path / "runs" / "tailor-1")
    assert essence(load_rows(tmp_path)) == essence(rows)
    collect(tmp_path)
    shutil.rmtree(tmp_path / "runs")
    assert essence(load_rows(tmp_path)) == essence(rows)


@pytest.mark.parametrize("line", ["{", "5", '{"round": 1}', "[]"])
def test_a_damaged_line_is_named(whole, tmp_path, line):
    lines = (whole[0] / "runs" / "tailor-0" / "rows.jsonl").read_text().splitlines()
    path = tmp_path / "runs" / "tailor-0" / "rows.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join([*lines[:2], line, *lines[3:]]) + "\n")
    with pytest.raises(InputError, match=r"line 3 .*delete the folder .*tailor-0 to run"):
        load_rows(tmp_path)


@pytest.mark.parametrize("key", ["score", "top_pulls", "versions", "config", "resumed", "peak_mib"])
def test_a_row_without_what_a_report_needs_is_named(whole, tmp_path, key):
    first = load_rows(whole[0])[0]
    (tmp_path / "rows.jsonl").write_text(json.dumps({k: v for k, v in first.items() if k != key}) + "\n")
    with pytest.raises(InputError, match=f"line 1 is no row of an experiment: it lacks {key};"):
        load_rows(tmp_path)


def test_a_lost_line_is_found_before_the_trial_goes_on(whole, tmp_path):
    lines = (whole[0] / "runs" / "tailor-0" / "rows.jsonl").read_text().splitlines()
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([lines[0], lines[2]]) + "\n")
    with pytest.raises(InputError, match=r"holds the rounds \[0, 2\]"):
        RowFile(path)


def test_pulls_are_drawn_from_the_first_round_on(whole):
    """The random start has none: drawn as 0 it would bend the curve."""
    (found,) = group(whole[1])
    labels, mean, _ = found.curves("top_pulls", 1, ["TAILOR"])["TAILOR"]
    assert labels.tolist() == [30, 45, 60]
    assert mean.min() > 0


def test_a_narrow_terminal_breaks_tables_and_not_numbers():
    rows = (("TAILOR", "0.9352 ± 0.0169", "0.9346 ± 0.0102", "3"), ("random meta", "0.9 ± 0.1", "0.9 ± 0.1", "12"))
    table = tables.Table("t", ("", "accuracy (pool)", "accuracy (test)", "trials"), rows)
    assert _abreast(table, 80) == [[0, 1, 2, 3]]
    assert _abreast(table, 1 + 14 + 18) == [[0, 1], [0, 2], [0, 3]]  # exactly one number beside the names
    assert _abreast(table, 1 + 14 + 18 + 9) == [[0, 1], [0, 2, 3]]
    assert _abreast(table, 5) == [[0, 1], [0, 2], [0, 3]]  # never an empty one
