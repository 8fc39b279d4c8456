"""Rows in files: kept, merged, damaged, of several designs."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace

import pytest
from digits_experiment import SMALL, run_here
from made_up import rows_of

from tailor.errors import InputError
from tailor_experiments.comparison import report_tables
from tailor_experiments.comparison.experiment import Contender
from tailor_experiments.comparison.gather import group
from tailor_experiments.comparison.rows import RowFile, collect, essence, load_rows


def test_unfinished_trials_are_counted_and_left_out(whole):
    _, rows = whole
    cut = [
        r for r in rows if not (r["contender"] == "random" and r["seed"] == 1 and r["round"] == 3)
    ]
    (found,) = group(cut)
    assert (found.unfinished, found.common_seeds("TAILOR", "random")) == (1, [0])
    assert "1 trials are not through" in report_tables.final(found).note


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
    (tmp_path / "rows.jsonl").write_text(
        json.dumps({k: v for k, v in first.items() if k != key}) + "\n"
    )
    with pytest.raises(InputError, match=f"line 1 is no row of an experiment: it lacks {key};"):
        load_rows(tmp_path)


def test_a_lost_line_is_found_before_the_trial_goes_on(whole, tmp_path):
    lines = (whole[0] / "runs" / "tailor-0" / "rows.jsonl").read_text().splitlines()
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([lines[0], lines[2]]) + "\n")
    with pytest.raises(InputError, match=r"holds the rounds \[0, 2\]"):
        RowFile(path)


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


def test_skipped_examples_do_not_make_another_design():
    """Fewer labels than the batch has examples, and not as many in every trial."""
    rows = rows_of({"TAILOR": [0.5, 0.6], "random": [0.4, 0.5]})
    fewer = [{**r, "batch": 10, "labels": r["labels"] - 1 - r["seed"]} for r in rows]
    (results,) = group(fewer)
    assert results.contenders == ["TAILOR", "random"]


def test_contenders_with_options_of_the_model_are_compared(tmp_path):
    corrected = Contender("corrected", model={"logit_variance": 2.0})
    experiment = SMALL.changed(trials=1, rounds=1)
    experiment = replace(experiment, contenders=(Contender("plain"), corrected))
    run_here(experiment, tmp_path)
    (results,) = group(load_rows(tmp_path))
    options = {name: results.sample(name)["model_options"] for name in results.contenders}
    assert options == {"plain": {}, "corrected": {"logit_variance": 2.0}}
