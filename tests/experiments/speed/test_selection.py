"""The selection benchmark: what it prints, and the pool it draws."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from tailor.capacity import synthetic_pool
from tailor.capacity.synthetic_pool import SIZES, find_size, make_pool, prevalence
from tailor.cli.app import app
from tailor.errors import UnknownName
from tailor_experiments.speed.selection import families_of


def test_json_has_what_was_promised(monkeypatch):
    small = replace(SIZES["cifar10"], pool=3000, batch=100, features=16)
    monkeypatch.setitem(synthetic_pool.SIZES, "cifar10", small)
    result = CliRunner().invoke(
        app, ["bench", "selection", "--size", "cifar10", "--json", "--repeats", "1"]
    )
    assert result.exit_code == 0, result.output
    row = json.loads(result.stdout)
    stages = row["check_seconds"] + row["plan_seconds"] + row["open_seconds"] + row["take_seconds"]
    assert row["size"] == "cifar10"
    assert row["seconds"] == pytest.approx(stages)
    assert row["peak_mib"] > 10
    assert row["compile_seconds"] > 0
    assert row["arms"] == 4


def test_families_are_measured_each_alone(monkeypatch):
    small = replace(SIZES["celeba"], pool=600, classes=4, batch=30)
    monkeypatch.setitem(synthetic_pool.SIZES, "celeba", small)
    command = ["bench", "selection", "--size", "celeba", "--json", "--repeats", "1"]
    chosen = ["--families", "herding", "--families", "uncertainty"]
    result = CliRunner().invoke(app, [*command, *chosen])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["family"], row["arms"]) for row in rows] == [("herding", 1), ("uncertainty", 4)]
    assert all(row["features"] == 512 for row in rows)


def test_all_families_are_those_that_need_no_model_and_fit_the_task():
    measured, left_out = families_of(SIZES["celeba"])
    assert {"herding", "emal", "galaxy", "direct"} <= set(measured)
    assert {"margin", "bald", "weak-supervision"} <= set(left_out)


@pytest.mark.parametrize("name", ["kuzushiji", "celeba"])
def test_pools_have_the_shares_they_say(name):
    size = replace(find_size(name), pool=20_000)
    pool = make_pool(size)
    again = make_pool(size)
    np.testing.assert_array_equal(pool.probs, again.probs)
    shares = pool.labels.mean(0)
    expected = prevalence(size.classes, size.multilabel)
    assert np.abs(shares - expected).max() < 5 * np.sqrt(0.25 / size.pool)
    right = (
        (pool.probs > 0.5) == pool.labels
        if size.multilabel
        else pool.probs.argmax(1) == pool.labels.argmax(1)
    )
    assert right.mean() > 0.7


def test_unknown_size():
    with pytest.raises(UnknownName, match="celeba"):
        find_size("celba")
