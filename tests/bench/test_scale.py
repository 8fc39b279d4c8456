"""The plan and the growth of a round over shards."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from tailor import InputError
from tailor.bench.forecast import extrapolate, forecast
from tailor.bench.machine import Machine, measure_machine
from tailor.bench.planning import planned_size
from tailor.bench.pools import SIZES, make_pool
from tailor.bench.scale import exponents, points
from tailor.bench.stages import Stage, measure_round, write_pool
from tailor.cli.app import app
from tailor.engine import LocalEngine

SMALL = replace(SIZES["kuzushiji"], pool=3000, classes=6, batch=100, features=8)


@pytest.mark.parametrize("multilabel", [False, True])
def test_the_pool_on_disk_is_the_one_in_memory(tmp_path, multilabel):
    size = replace(SMALL, multilabel=multilabel, families=("emal",) if multilabel else SMALL.families)
    wanted, made = make_pool(size), write_pool(size, tmp_path)
    assert np.array_equal(made.predictions.take("probs", slice(0, 3000)), wanted.probs.astype(np.float16))
    assert np.array_equal(made.predictions.take("features", slice(0, 3000)), wanted.features.astype(np.float16))
    assert np.array_equal(made.labels, wanted.labels[wanted.labelled])


def test_every_stage_is_measured(tmp_path):
    stages, walk = measure_round(write_pool(SMALL, tmp_path), LocalEngine())
    assert [s.name for s in stages] == ["check", "plan", "open galaxy", "open confidence", "open badge", "take"]
    assert all(s.seconds > 0 and s.peak_mib > 50 for s in stages)
    assert walk.over


def test_the_limit_is_what_must_be_read_multiplied_and_sorted():
    machine = Machine(read=10, multiply=100, sort=5, write=1, cores=1)
    assert Stage("x", 9, 9, 9, bytes=20, flops=300, sorted=5).limit(machine) == 2 + 3 + 1
    found = measure_machine()
    assert min(found.read, found.multiply, found.sort, found.write) > 1e5


def test_a_forecast_names_every_stage():
    found = {e.stage: e for e in forecast(replace(SMALL, pool=10**6))}
    assert list(found) == ["train", "predict", "check", "plan", "open galaxy", "open confidence", "open badge", "take"]
    assert found["predict"].disk == 2 * 10**6 * (6 + 8)
    assert found["take"].memory > 10**6 * 113
    assert all(e.seconds > 0 for e in found.values())


@pytest.mark.parametrize(
    ("stage", "seconds", "wanted"),
    [
        ("check", (1.0, 2.0), 10.0),  # every row is read: through the origin
        ("check", (2.0, 1.0), 10.0),
        ("plan", (1.0, 2.0), 1.0),  # knows nothing of the pool
        ("open galaxy", (3.0, 4.0), 12.0),  # the labelled are sorted, however large the pool: a line
        ("take", (4.0, 3.0), 3.0),
    ],
)
def test_how_a_stage_is_extrapolated(stage, seconds, wanted):
    assert extrapolate(stage, (100, seconds[0]), (200, seconds[1]), 1000) == pytest.approx(wanted)


def test_exponents():
    grows = {"check": (1e-3, 1.0), "open": (1e-3, 0.5), "short": (1e-7, 1.0)}
    rows = [
        {"axis": "N", "stage": stage, "value": n, "seconds": 1, "cpu_seconds": c * n**e, "device": "cpu, 2 cores"}
        for stage, (c, e) in grows.items()
        for n in (50, 200, 1280)
    ]
    assert exponents(rows) == pytest.approx({("N", "check"): 1.0, ("N", "open"): 0.5})


def test_what_is_measured():
    found = list(points())
    assert [p.value for p in found if p.axis == "N"] == [50_000, 200_000, 1_281_167]
    assert [p.value for p in found if p.axis == "workers"] == [1, 2, 4]
    assert [p.value for p in found if p.axis == "M"] == [1, 102, 202]
    assert [p.value for p in points(["N"], most=200_000)] == [50_000, 200_000]
    with pytest.raises(InputError, match="unknown axis 'B'"):
        list(points(["B"]))


def test_bench_scale(tmp_path):
    done = CliRunner().invoke(app, ["bench", "scale", "--quick", "--axis", "N", "--axis", "M", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "One round against N" in done.output
    assert "exponent" in done.output
    rows = [json.loads(line) for line in (tmp_path / "scale.jsonl").read_text().splitlines()]
    assert {row["axis"] for row in rows} == {"N", "M"}
    assert {"predict", "check", "whole round"} <= {row["stage"] for row in rows}
    assert (tmp_path / "scale.png").stat().st_size > 10_000


def test_plan_by_numbers():
    numbers = ["--examples", "40000", "--classes", "5", "--features", "8", "--batch", "50"]
    done = CliRunner().invoke(app, ["plan", *numbers])
    assert done.exit_code == 0, done.output
    assert "A round of 50 of 40,000 examples, 5 classes" in done.output
    assert "open badge" in done.output


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((None, None, 3, 8, 10, False, None), "name a run's folder, or give --examples and --classes"),
        ((None, 100, 3, 8, 80, False, None), "a batch of 80 after 80 labelled ones does not fit a pool of 100"),
        ((None, 100, 3, 8, 10, False, ["bald"]), "bald needs dropout passes, which can't be estimated"),
        ((None, 100, 3, 8, 10, False, ["galaxi"]), "unknown arm family 'galaxi': did you mean 'galaxy'"),
    ],
)
def test_plan_says_what_is_wrong(given, message):
    with pytest.raises(InputError, match=message):
        planned_size(*given)
