"""The report's tables say what the rows say, and its page stands alone."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from made_up import FAMILIES, SCORES, rows_of

from tailor_experiments.cli.text_tables import column_groups
from tailor_experiments.comparison import report_tables
from tailor_experiments.comparison.gather import group, load
from tailor_experiments.comparison.judging import (
    AREA,
    BEST_SINGLE,
    difference,
    fair_means,
    judged_by,
    rivals,
)
from tailor_experiments.comparison.report import PAGE, all_tables, write_report
from tailor_experiments.comparison.roles import candidate_ablations, focused
from tailor_experiments.comparison.table_format import Table


class Sources(HTMLParser):
    """What a page would fetch, and its tags."""

    def __init__(self):
        super().__init__()
        self.found = []
        self.tags = []
        self.ids = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.found += [value for name, value in attrs if name in ("src", "href")]
        self.ids += [value for name, value in attrs if name == "id"]


@pytest.mark.xdist_group("drawn")
def test_the_page_stands_alone(drawn):
    page = (drawn / PAGE).read_text()
    parser = Sources()
    parser.feed(page)
    pieces = [source for source in parser.found if not source.startswith("#")]
    assert all(source.startswith("data:image/png;base64,") for source in pieces)
    assert {f"#{one}" for one in parser.ids} >= set(parser.found) - set(pieces)
    assert not {"script", "link", "iframe"} & set(parser.tags)
    assert "http" not in re.sub(r"base64,[^']+", "", page)
    pictures = {p.stem for p in drawn.glob("*.png")}
    assert pictures == {p.stem for p in drawn.glob("*.pdf")}
    assert len(pieces) == len(pictures)
    kinds = [
        "score",
        "test-score",
        "rarest-accuracy",
        "rarest",
        "imbalance",
        "positives",
        "arms-tailor",
        "top-arm",
    ]
    assert {
        "overall",
        *(f"sayings-{kind}" for kind in [*kinds, "candidates", "differences"]),
    } <= pictures
    assert "small-positives" not in pictures
    assert "Mean rank over 2 experiments" in page


def test_labels_are_escaped(whole, tmp_path):
    """For the page, and for figures, where "$x_$" would be bad mathematics."""
    rows = [
        {**r, "contender": "<b>x</b> $x_$"} if r["contender"] == "random" else r for r in whole[1]
    ]
    page = write_report(group(rows), tmp_path).read_text()
    assert "<b>" not in page
    assert "&lt;b&gt;x" in page


def test_the_short_page_has_the_best_first(tmp_path):
    scores = {"TAILOR": [0.5, 0.7], "random": [0.6, 0.9], "a|b": [0.1, 0.2]}
    write_report(group(rows_of(scores)), tmp_path)
    lines = (tmp_path / "report.md").read_text().splitlines()
    at = lines.index("### made up")
    first = [line.split(" | ")[0] for line in lines[at + 4 : at + 7]]
    cells = lines[at + 4].split(" | ")
    assert first == ["| random", "| TAILOR", "| a\\|b"]
    assert cells[1:3] == ["2", "0.7500 ± 0.1500"]
    assert cells[4].startswith("+0.1500 [")
    assert lines[at + 5].split(" | ")[4] == ""  # itself


def test_differences_by_hand(whole):
    (found,) = group(whole[1])
    last = {(r["contender"], r["seed"]): r["test_score"] for r in whole[1] if r["round"] == 3}
    mean = np.mean([last["TAILOR", s] - last["random", s] for s in (0, 1)])
    table = report_tables.differences(found)
    assert table.rows[0][0] == "random"
    assert table.rows[0][1].startswith(f"{mean:+.4f} [")


def test_verdicts_by_hand():
    """Differences of +-.01 around 0 are level, of about .1 to one side or the other they are
    not.
    """
    (found,) = group(rows_of(SCORES, families=FAMILIES))
    table = report_tables.differences(found)
    verdicts = {row[0]: row[-1] for row in table.rows}
    assert (verdicts["random"], verdicts["galaxy alone"], verdicts["random meta"]) == (
        "ahead",
        "level",
        "behind",
    )
    (row,) = report_tables.yardsticks([found]).rows
    assert row[:4] == ("made up", "balanced accuracy (test)", "TAILOR", "galaxy alone")
    assert [cell.split()[-2:] for cell in row[4:]] == [
        [v, "(4)"] for v in ("level", "behind", "ahead")
    ]
    (row,) = report_tables.yardsticks([found], "badge alone").rows
    assert row[2:4] == ("badge alone", "galaxy alone")
    one_seed = {c: values[:1] for c, values in SCORES.items()}
    (found,) = group(rows_of(one_seed, families=FAMILIES))
    assert {row[-1] for row in report_tables.differences(found).rows} == {"unknown"}


def test_the_best_single_family_is_one_of_the_candidates():
    """And may be another one in class balance."""
    families = {"TAILOR": ["galaxy", "confidence"], "galaxy alone": ["galaxy(pending=predicted)"]}
    families |= {"confidence alone": ["confidence"], "badge alone": ["badge"]}
    scores = {
        "TAILOR": [0.8] * 2,
        "galaxy alone": [0.7] * 2,
        "confidence alone": [0.6] * 2,
        "badge alone": [0.9] * 2,
    }
    balance = {
        "TAILOR": (0.5, 0.51),
        "galaxy alone": (0.2, 0.2),
        "confidence alone": (0.3, 0.3),
        "badge alone": (1, 1),
    }
    rows = [
        r | {"imbalance": balance[r["contender"]][r["seed"]]}
        for r in rows_of(scores, families=families)
    ]
    (found,) = group(rows)
    assert rivals(found, "TAILOR")[BEST_SINGLE] == "galaxy alone"
    (row,) = report_tables.yardsticks([found], metric="imbalance").rows
    assert row[1:4] == ("imbalance ratio of labels", "TAILOR", "confidence alone")
    assert (
        row[4] == "+0.2050 [+0.1415, +0.2685] * ahead (2)"
    )  # 0.005 times Student's 12.71 to each side
    families["TAILOR"] = ["coreset"]  # alone it did not run
    (found,) = group(rows_of(scores, families=families))
    assert rivals(found, "TAILOR")[BEST_SINGLE] == "badge alone"


def test_where_only_tailor_searches_positives_count():
    rows = rows_of({"TAILOR, search": [0.5, 0.6], "badge alone": [0.7, 0.7]})
    rows = [
        r
        | {"task": "multi-label", "reward": "search" if r["selector"] == "tailor" else "diversity"}
        for r in rows
    ]
    (found,) = group(rows)
    assert judged_by(found) == "positives"
    assert focused(found, None) == "TAILOR, search"


def test_what_contenders_are_judged_by():
    """The score; in a search the positives; and where all have the same score, the labels in the
    rarest class.
    """
    rows = rows_of(SCORES, families=FAMILIES)
    assert judged_by(group(rows)[0]) == "test_score"
    (same,) = group([{**r, "test_score": 0.1 * r["seed"]} for r in rows])
    assert judged_by(same) == "rarest"
    search = [{**r, "reward": "search", "task": "multi-label"} for r in rows]
    (found,) = group(search)
    assert judged_by(found) == "positives"
    assert report_tables.differences(found).columns[1] == "total positives"


def test_the_area_of_a_difference():
    """Between 10 and 20 labels each curve is a straight line from .5: half the final difference."""
    (found,) = group(rows_of(SCORES, families=FAMILIES))
    final, area = (difference(found, "TAILOR", "random", m) for m in ("test_score", AREA))
    assert area.mean == pytest.approx(final.mean / 2)
    assert (area.high - area.low) == pytest.approx((final.high - final.low) / 2)


def test_ranks_say_who_is_left_out():
    one = group(rows_of(SCORES, families=FAMILIES))
    two = group(
        rows_of({c: SCORES[c] for c in ("TAILOR", "random")}, experiment="two", families=FAMILIES)
    )
    table = report_tables.ranks([*one, *two])
    assert [row[:2] for row in table.rows] == [("TAILOR", "1.00"), ("random", "2.00")]
    assert "badge alone" in table.note


def test_candidates_are_compared_within_one_selector():
    rows = rows_of(SCORES, families=FAMILIES)
    assert candidate_ablations(group(rows)[0]) == [["TAILOR", "TAILOR, wide"]]
    for changed in ({"selector": "tailor(forget=1.0)"}, {"reward": "search"}):
        other = [{**r, **changed} if r["contender"] == "TAILOR, wide" else r for r in rows]
        assert candidate_ablations(group(other)[0]) == []


def test_ranks_and_the_best_family_are_found_on_common_seeds():
    """b's four seeds hold two good ones that a doesn't have: on the two that both have, a is the
    better one.
    """
    scores = {"TAILOR": [0.5] * 4, "a alone": [0.6, 0.62], "b alone": [0.5, 0.52, 0.9, 0.9]}
    (one,) = group(rows_of(scores, families={"a alone": ["a"], "b alone": ["b"]}))
    assert fair_means(one, ["a alone", "b alone"]) == pytest.approx(
        {"a alone": 0.61, "b alone": 0.51}
    )
    assert rivals(one, "TAILOR")[BEST_SINGLE] == "a alone"
    table = report_tables.ranks([one, replace(one, name="again")])
    assert [row[:2] for row in table.rows] == [
        ("a alone", "1.00"),
        ("b alone", "2.00"),
        ("TAILOR", "3.00"),
    ]
    (row,) = [row for row in report_tables.differences(one).rows if row[0] == "b alone"]
    assert (row[1].split()[0], row[-2]) == ("-0.2050", "4")
    assert report_tables.differences(one, "a alone").rows[0][-2] == "2"


def test_tables_say_what_was_run(multilabel):
    (found,) = load(multilabel[0])
    for text in (report_tables.final(found).note, report_tables.summary(found).note):
        assert "Data digits-multilabel, multi-label; model probe(steps=30); " in text
        assert "15 random labels, then 3 rounds of 15; reward diversity; " in text
        assert "3 contenders, 2 trials each (seeds 0 to 1)" in text


def test_tables_say_whom_it_means_little_to_beat():
    scores = {"TAILOR": [0.8, 0.9], "ALBL": [0.7, 0.8], "DEAL, every": [0.7, 0.8]}
    (plain,) = group(rows_of(scores))
    rows = rows_of(scores)
    for row in rows:
        row["selector"] = {"ALBL": "albl", "DEAL, every": "deal(bonus=every)"}.get(
            row["contender"], row["selector"]
        )
    (found,) = group(rows)
    for table in (report_tables.final, report_tables.summary, report_tables.differences):
        assert "ALBL and DEAL, every choose nearly uniformly" in table(found).note
        assert "uniformly" not in table(plain).note


def test_a_target_of_ones_own(whole):
    (found,) = group(whole[1])
    assert report_tables.to_target(found, 2.0).rows[0][1:] == ("> 60", "> 60", "0 of 2")
    assert report_tables.to_target(found, 0.0).rows[0][1:] == ("15", "15", "2 of 2")
    together, balance, *each = (table.title for table in all_tables([found]))
    assert balance == f"{together}, by imbalance ratio of labels"
    kinds = (
        "after 60 labels",
        "TAILOR minus",
        "label efficiency, balanced accuracy (test)",
        "labels to balanced accuracy (test)",
        "seconds a round",
    )
    assert all(title.startswith(f"small: {kind}") for title, kind in zip(each, kinds, strict=True))


def test_a_trial_that_never_reaches_the_target_needs_more_than_it_had():
    """One of four gets there early, by luck: no head start on a contender that nearly always
    does.
    """
    scores = {
        "TAILOR": [0.6, 0.2, 0.2, 0.2],
        "random": [0.6, 0.6, 0.6, 0.2],
        "badge alone": [0.6, 0.6, 0.2, 0.2],
    }
    rows = rows_of(scores)
    rows[0]["test_score"] = 0.6
    table = report_tables.to_target(group(rows)[0], 0.55)
    assert table.columns == ("", "labels, median", "fewest to most", "trials that reach it")
    assert table.rows == (
        ("TAILOR", "> 20", "10 to > 20", "1 of 4"),
        ("random", "20", "20 to > 20", "3 of 4"),
        (
            "badge alone",
            "> 20",
            "20 to > 20",
            "2 of 4",
        ),  # the middle lies between 20 and nobody knows what
    )


def test_a_narrow_terminal_breaks_tables_and_not_numbers():
    rows = (
        ("TAILOR", "0.9352 ± 0.0169", "0.9346 ± 0.0102", "3"),
        ("random meta", "0.9 ± 0.1", "0.9 ± 0.1", "12"),
    )
    table = Table("t", ("", "accuracy (pool)", "accuracy (test)", "trials"), rows)
    assert column_groups(table, 80) == [[0, 1, 2, 3]]
    assert column_groups(table, 1 + 14 + 18) == [
        [0, 1],
        [0, 2],
        [0, 3],
    ]  # exactly one number beside the names
    assert column_groups(table, 1 + 14 + 18 + 9) == [[0, 1], [0, 2, 3]]
    assert column_groups(table, 5) == [[0, 1], [0, 2], [0, 3]]  # never an empty one
