"""The report: tables that say what the rows say, figures of every kind, and a page that stands alone."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from tailor.bench.experiment import tables
from tailor.bench.experiment.report import all_tables, write_report
from tailor.bench.experiment.results import group, load
from tailor.bench.experiment.rows import collect, load_rows
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
        self.found, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.found += [value for name, value in attrs if name in ("src", "href")]


def test_the_page_stands_alone(whole, multilabel, tmp_path):
    page = write_report(load(whole[0], multilabel[0]), tmp_path).read_text()
    parser = Sources()
    parser.feed(page)
    assert all(source.startswith("data:image/png;base64,") for source in parser.found)
    assert not {"script", "link", "iframe"} & set(parser.tags)
    assert "http" not in re.sub(r"base64,[^']+", "", page)
    pictures = {p.stem for p in tmp_path.glob("*.png")}
    assert pictures == {p.stem for p in tmp_path.glob("*.pdf")}
    assert len(parser.found) == len(pictures)
    kinds = ["score", "test-score", "rarest-accuracy", "rarest", "imbalance", "positives", "arms-tailor", "top-arm"]
    assert {f"sayings-{kind}" for kind in [*kinds, "candidates"]} <= pictures
    assert "small-positives" not in pictures
    assert "Mean rank over 2 experiments" in page


def test_labels_are_escaped(whole, tmp_path):
    rows = [{**r, "contender": "<b>x</b>"} if r["contender"] == "random" else r for r in whole[1]]
    page = write_report(group(rows), tmp_path).read_text()
    assert "<b>" not in page
    assert "&lt;b&gt;x" in page


def test_differences_by_hand(whole):
    (found,) = group(whole[1])
    last = {(r["contender"], r["seed"]): r["test_score"] for r in whole[1] if r["round"] == 3}
    mean = np.mean([last["TAILOR", s] - last["random", s] for s in (0, 1)])
    table = tables.differences(found)
    assert table.rows[0][0] == "random"
    assert table.rows[0][1].startswith(f"{mean:+.4f} [")


def test_compare(whole):
    (a,) = group(whole[1])
    worse = [{**r, "score": r["score"] - 0.01 * (1 + r["seed"])} for r in whole[1]]
    (b,) = group(worse)
    (table,) = tables.compare([a], [b])
    assert [row[0] for row in table.rows] == ["TAILOR", "random"]
    assert table.rows[0][1].startswith("-0.0150 [")
    assert table.rows[0][2].startswith("+0.0000 [")
    shifted = [replace(b, rows={c: {s + 9: t for s, t in trials.items()} for c, trials in b.rows.items()})]
    assert tables.compare([a], shifted) == []


def test_a_target_of_ones_own(whole):
    (found,) = group(whole[1])
    assert tables.to_target(found, 2.0).rows[0][1:] == ("–", "0 of 2")
    assert tables.to_target(found, 0.0).rows[0][1] == "15 ± 0"
    assert len(all_tables([found])) == 4


def test_rows_can_be_kept_without_the_trials(whole, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    collect(whole[0]).rename(kept / "rows.jsonl")
    assert load_rows(kept) == load_rows(whole[0])
    with pytest.raises(InputError, match="no rows in"):
        load_rows(tmp_path)
