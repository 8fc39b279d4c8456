"""The plan and the growth of a round over shards."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import parts
import pytest
from typer.testing import CliRunner

from tailor import InputError, TailorError
from tailor.capacity import forecast as forecasts
from tailor.capacity.forecast import (
    LARGE,
    SMALL,
    CostEstimate,
    altogether,
    extrapolate,
    forecast,
    probe_rows,
)
from tailor.capacity.machine import Machine, measure_machine
from tailor.capacity.planning import in_memory, planned_size, shortages
from tailor.capacity.sharded_pool import experience, write_pool
from tailor.capacity.stages import Stage, measure_round
from tailor.capacity.synthetic_pool import SIZES, make_pool
from tailor.capacity.whole_round import START, _engine, in_own_process, median, whole_round
from tailor.cli.app import app
from tailor.compute import LocalEngine
from tailor.strategies import make_strategy
from tailor_experiments.speed.scale import points, skipped, total
from tailor_experiments.speed.scale_report import (
    against_plan,
    exponents,
    growth,
    read_rows,
    verdict,
)

TINY = replace(SIZES["kuzushiji"], pool=3000, classes=6, batch=100, features=8)


@pytest.fixture(autouse=True)
def measured_briefly(monkeypatch):
    """What a plan says in seconds is not tested, so each stage need not be measured for long."""
    monkeypatch.setattr(forecasts, "ENOUGH", 0.05)


@pytest.mark.parametrize("multilabel", [False, True])
def test_the_pool_on_disk_is_the_one_in_memory(tmp_path, multilabel):
    size = replace(TINY, multilabel=multilabel, families=("emal",) if multilabel else TINY.families)
    wanted = make_pool(size)
    made = write_pool(size, tmp_path)
    assert np.array_equal(
        made.predictions.take("probs", slice(0, 3000)), wanted.probs.astype(np.float16)
    )
    assert np.array_equal(
        made.predictions.take("features", slice(0, 3000)), wanted.features.astype(np.float16)
    )
    assert np.array_equal(made.labels, wanted.labels[wanted.labelled])


def test_every_stage_is_measured(tmp_path):
    stages, walk = measure_round(write_pool(TINY, tmp_path), LocalEngine())
    assert [s.name for s in stages] == [
        "check",
        "plan",
        "open galaxy",
        "open confidence",
        "open badge",
        "take",
    ]
    assert all(s.seconds > 0 and s.peak_mib > 50 for s in stages)
    assert walk.over


def test_the_limit_is_what_must_be_read_and_multiplied():
    machine = Machine(read=10, multiply=100, write=1, cores=1)
    assert Stage("x", 9, 9, 9, bytes=20, flops=300).limit(machine) == 2 + 3
    found = measure_machine(tries=2)
    assert min(found.read, found.multiply, found.write) > 1e5


def test_galaxy_has_to_read_the_probabilities_and_no_more():
    machine = Machine(read=10, multiply=100, write=1, cores=1)
    for family in ("galaxy", "galaxy-all"):
        work = make_strategy(family).opening_work(TINY.shape)
        stage = Stage("open", 9, 9, 9, bytes=work.bytes_read, flops=work.flops)
        assert stage.limit(machine) == 2 * 3000 * 6 / 10


def test_shards_may_be_small(tmp_path):
    whole = write_pool(TINY, tmp_path / "one")
    cut = write_pool(TINY, tmp_path / "many", shard=256)
    assert len(cut.predictions) == 12
    for name in ("probs", "features"):
        assert np.array_equal(
            *(made.predictions.take(name, slice(0, 3000)) for made in (whole, cut))
        )


@pytest.mark.parametrize("multilabel", [False, True])
def test_the_plan_is_the_same_for_pools_of_any_size(multilabel):
    size = replace(TINY, multilabel=multilabel)
    for one, other in zip(experience(size), experience(replace(size, pool=10**6))):
        assert np.array_equal(one, other)
    weights, found = experience(size)
    assert weights.shape == (6,)
    assert found.shape == (100, 6)
    assert multilabel or (found.sum(1) == 1).all()


def test_a_forecast_names_every_stage():
    found = {e.stage: e for e in forecast(replace(TINY, pool=10**6))}
    assert list(found) == [
        "train",
        "predict",
        "check",
        "plan",
        "open galaxy",
        "open confidence",
        "open badge",
        "take",
    ]
    assert found["predict"].disk == pytest.approx(2 * 10**6 * (6 + 8), rel=0.01)
    assert found["take"].memory > 10**6 * 113
    assert all(e.seconds > 0 for e in found.values())


def made_up(name, pool):
    """What a stage took: a fixed cost and one for each example, other numbers for other stages."""
    known = {
        "train": (2, 0),
        "check": (1, 3e-5),
        "plan": (4, 5e-5),
        "open galaxy": (2, 7e-5),
        "take": (3, 9e-5),
    }
    fixed, each = known[name]
    cpu = fixed + each * pool
    return Stage(
        name,
        seconds=cpu / 2,
        cpu_seconds=cpu,
        peak_mib=100 + pool / 2**20,
        disk=2 * pool,
        held_per_example=35.0,
    )


def test_a_forecast_follows_what_two_small_rounds_took(monkeypatch):
    size = replace(TINY, pool=10**6, features=0, families=("galaxy",))
    small, large = (probe_rows(size, *least) for least in (SMALL, LARGE))
    rounds = []

    def run(function, probe, folder, *, device, enough, steps=None):
        assert (function, folder, device) == (whole_round, None, "cpu")
        rounds.append((probe, steps))
        return [
            made_up(name, probe.pool) for name in ("train", "check", "plan", "open galaxy", "take")
        ]

    monkeypatch.setattr(forecasts, "in_own_process", run)
    found = {e.stage: e for e in forecast(size)}
    assert rounds == [(replace(size, pool=small), None), (replace(size, pool=large), 1)]
    for stage in ("check", "open galaxy", "take"):  # every example is looked at
        wanted = made_up(stage, size.pool)
        assert found[stage].seconds == pytest.approx(wanted.seconds)
        assert found[stage].cpu_seconds == pytest.approx(wanted.cpu_seconds)
        assert found[stage].disk == pytest.approx(wanted.disk)
    for stage in ("train", "plan"):  # these never look at the pool
        assert found[stage].cpu_seconds == made_up(stage, small).cpu_seconds
    kept = {"check": forecasts.KEPT, "open galaxy": forecasts.KEPT + 9, "take": forecasts.KEPT + 9}
    for stage, each in kept.items():
        held = made_up(stage, large).peak_mib * 2**20
        assert found[stage].memory == pytest.approx(held + (each + 35.0) * (size.pool - large))


LIVE_FAMILIES = ("galaxy(pending=revealed)", "confidence")
LIVE = replace(TINY, pool=300_000, classes=12, batch=500, features=0, families=LIVE_FAMILIES)


@pytest.mark.parametrize("multilabel", [False, True])
def test_where_arms_use_labels_that_come_somebody_answers(tmp_path, multilabel):
    size = replace(LIVE, pool=3000, multilabel=multilabel, families=LIVE_FAMILIES[:1])
    wanted = make_pool(size)
    made = write_pool(size, tmp_path)
    assert np.array_equal(made.answer([7, 2999, 8]), wanted.labels[[7, 2999, 8]])
    stages, walk = measure_round(made, LocalEngine())
    told = walk.view.ledger.revealed
    assert [index for index, _ in told] == walk.view.ledger.taken.tolist()
    assert all(np.array_equal(label, wanted.labels[index]) for index, label in told)
    assert 0 < stages[-2].held_per_example < stages[-1].held_per_example  # cuts opened elsewhere
    assert (
        write_pool(replace(size, families=("galaxy(pending=predicted)",)), tmp_path / "b").answers
        is None
    )


class Visits(LocalEngine):
    """Counts the examples whose shards are read through, once for each time."""

    def __init__(self):
        self.examples = 0

    def map(self, function, calls, shared=None):
        self.examples += sum(len(piece.shard) for (piece,) in calls)
        return super().map(function, calls, shared)


def visited(pool):
    """Examples that one round over the pool visits."""
    engine = Visits()
    measure_round(pool, engine)
    return engine.examples


def test_a_plan_knows_how_often_labels_that_come_make_shards_be_read_again(tmp_path):
    """What is extrapolated from the probes is what the round does, and not what it does without
    labels.
    """
    sizes = [
        replace(LIVE, pool=rows)
        for rows in (probe_rows(LIVE, *SMALL), probe_rows(LIVE, *LARGE), LIVE.pool)
    ]
    pools = [write_pool(size, tmp_path / str(size.pool)) for size in sizes]
    small, large, whole = ((pool.size.pool, visited(pool)) for pool in pools)
    assert extrapolate(small, large, LIVE.pool) == pytest.approx(whole[1], rel=0.1)
    assert whole[1] > 2 * visited(replace(pools[-1], answers=None))


def test_a_plan_knows_the_memory_that_labels_that_come_take():
    planned = {e.stage: e for e in forecast(LIVE)}
    took = {s.name: s for s in in_own_process(whole_round, LIVE)}
    assert list(planned) == list(took)
    for name, one in took.items():
        assert one.peak_mib * 2**20 == pytest.approx(planned[name].memory, rel=0.3)


def test_a_plan_says_what_memory_would_hold():
    size = replace(TINY, pool=2**20, classes=256, features=0)
    assert in_memory(size).endswith("a run in memory holds more: predictions take 1.0 GiB of it")
    assert "up to 8.2 GiB" in in_memory(replace(size, families=("galaxy(pending=predicted)",)))


def test_probes_are_small_but_hold_several_batches():
    assert [probe_rows(TINY, *least) for least in (SMALL, LARGE)] == [2 * 16384, 8 * 16384]
    full = SIZES["imagenet"]
    small, large = (probe_rows(full, *least) for least in (SMALL, LARGE))
    assert 5 * full.batch <= small < large / 2
    assert large < full.pool / 4


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [
        ((1.0, 2.0), 10.0),  # every row is read
        ((3.0, 4.0), 12.0),  # and the labelled besides, however large the pool
        ((4.0, 3.0), 3.0),  # it does not get quicker than the larger pool
        ((0.5, 2.0), 2.5 / 300 * 1000),  # nothing costs less than nothing to begin with
        ((0.0, 0.0), 0.0),
    ],
)
def test_how_a_stage_is_extrapolated(seconds, wanted):
    assert extrapolate((100, seconds[0]), (200, seconds[1]), 1000) == pytest.approx(wanted)


def test_a_plan_says_what_the_machine_lacks():
    found = [
        CostEstimate("predict", 1, 1, 2 * 2**30, disk=4 * 2**30),
        CostEstimate("take", 1, 1, 3 * 2**30),
    ]
    assert altogether(found) == CostEstimate("whole round", 2, 2, 3 * 2**30, disk=4 * 2**30)
    assert shortages(found, 5 * 2**30, 8 * 2**30) == []
    assert shortages(found, 5 * 2**30, None) == []
    assert shortages(found, 2**30, 8 * 2**30) == [
        "Too little disk: 4.0 GiB are needed, 1.0 GiB are free"
    ]
    assert shortages(found, 5 * 2**30, 2**30) == [
        "Too little memory: 3.0 GiB are needed, 1.0 GiB are free"
    ]
    (said,) = shortages(found, 5 * 2**30, 6 * 2**30)
    assert said.startswith("The shards do not all stay in memory (6.0 GiB free)")


def test_exponents():
    grows = {"check": (1e-3, 1.0), "open": (1e-3, 0.5), "short": (1e-7, 1.0)}
    rows = [
        {
            "axis": "N",
            "stage": stage,
            "value": n,
            "seconds": 1,
            "cpu_seconds": c * n**e,
            "device": "cpu, 2 cores",
        }
        for stage, (c, e) in grows.items()
        for n in (50, 200, 1280)
    ]
    assert exponents(rows) == pytest.approx({("N", "check"): 1.0, ("N", "open"): 0.5})


def row(stage, value=100, **given):
    plain = {
        "axis": "N",
        "value": value,
        "stage": stage,
        "seconds": 2.0,
        "cpu_seconds": 4.0,
        "peak_mib": 1000,
        "device_mib": 0,
        "disk": 0,
        "limit_seconds": 1.0,
        "of_limit": 0.5,
        "pool": value,
        "classes": 5,
        "arms": 7,
        "batch": 10,
        "features": 3,
        "workers": 1,
        "device": "cpu, 2 cores",
        "planned_seconds": 2.0,
        "planned_cpu_seconds": 4.0,
        "planned_peak_mib": 1000,
        "planned_device_mib": 0,
        "planned_disk": 0,
    }
    return plain | given


def test_a_table_of_growth():
    rows = [row(s, n, cpu_seconds=n / 100) for n in (100, 1000) for s in ("whole round", "check")]
    rows += [row("plan", 1000, limit_seconds=0.0)]
    assert growth(rows, "N").splitlines() == [
        "| N | 100 | 1,000 | exponent | limit's share |",
        "|---|---|---|---|---|",
        "| check | 2.00 (1.0) s, 1,000 MiB | 2.00 (10.0) s, 1,000 MiB | 1.00 | 50% |",
        "| plan |  | 2.00 (4.0) s, 1,000 MiB |  |  |",
        "| whole round | 2.00 (1.0) s, 1,000 MiB | 2.00 (10.0) s, 1,000 MiB | 1.00 | 50% |",
    ]


def test_a_plan_beside_what_happened():
    rows = [
        row("check", seconds=1.8, cpu_seconds=4.4),
        row("whole round", disk=2**30, planned_disk=2**30),
    ]
    text = against_plan(rows)
    assert "| check | 2.0 (4.0) | 1.8 (4.4) | -10% | +10% | 1,000 MiB | 1,000 MiB | +0% |" in text
    assert "Disk: 1.00 GiB planned, 1.00 GiB written." in text
    assert text.endswith(
        "Every stage of 1 s or more is within 30%; the worst is check, CPU seconds: +10%."
    )
    wrong = [row("take", peak_mib=1500), row("plan", seconds=0.4, planned_seconds=0.9)]
    assert (
        verdict(wrong)
        == "Off by more than 30% among stages of 1 s or more: take, peak memory: +50%."
    )
    assert verdict(wrong[1:]) == "No stage is longer than 1 s."


def test_rows_of_several_files(tmp_path):
    first = tmp_path / "a.jsonl"
    second = tmp_path / "b.jsonl"
    first.write_text("".join(json.dumps(row(stage, 200)) + "\n" for stage in ("check", "plan")))
    second.write_text("".join(json.dumps(row("check", n, seconds=9.0)) + "\n" for n in (200, 100)))
    found = [(r["value"], r["stage"], r["seconds"]) for r in read_rows([first, second])]
    assert found == [(100, "check", 9.0), (200, "check", 9.0), (200, "plan", 2.0)]
    first.write_text("no rows")
    with pytest.raises(InputError, match="holds no rows of `tailor bench scale`"):
        read_rows([first])


def test_what_is_measured():
    found = list(points())
    assert [p.value for p in found if p.axis == "N"] == [50_000, 200_000, 1_281_167]
    assert [p.value for p in found if p.axis == "workers"] == [1, 2, 4]
    assert [p.value for p in found if p.axis == "M"] == [1, 102, 202]
    assert [p.value for p in points(["N"], most=200_000)] == [50_000, 200_000]
    assert [p.value for p in points(["N"], least=200_001)] == [1_281_167]
    with pytest.raises(InputError, match="unknown axis 'B'"):
        list(points(["B"]))


def test_workers_that_start_are_no_part_of_the_round():
    assert total([Stage(START, 9, 9, 900), Stage("check", 1, 1, 90)]) == Stage(
        "whole round", 1, 1, 90
    )
    assert list(skipped(["N", "workers"], "cuda")) == ["workers"]


def test_the_median_of_a_stage_with_the_memory_of_its_first_run():
    runs = [Stage("check", 1, busy, peak) for busy, peak in ((3, 10), (1, 20), (2, 30))]
    assert median(runs) == Stage("check", 1, 2, 10)


def test_a_round_that_is_killed_is_named():
    with pytest.raises(TailorError, match="the process that ran the round was killed"):
        in_own_process(os._exit, 9)


def test_a_round_over_warm_workers():
    parts.need("Ray")
    stages = {s.name: s for s in in_own_process(whole_round, TINY, workers=2)}
    assert next(iter(stages)) == START
    assert stages["predict"].disk >= 2 * 3000 * (6 + 8)


def warmed(size, folder, workers):
    """The processes that were warmed up when an engine begins."""
    with _engine(size, folder, "cpu", workers, []):
        return [int(file.read_text()) for file in folder.glob("workers/*.ready")]


def test_every_worker_is_warmed_up_before_anything_is_measured(tmp_path):
    parts.need("Ray")
    found = in_own_process(warmed, TINY, tmp_path, 2)
    assert len(found) == len(set(found)) == 2


def test_bench_scale_against_its_plan(tmp_path):
    words = [
        "bench",
        "scale",
        "--quick",
        "--axis",
        "N",
        "--most",
        "3000",
        "--against-plan",
        "--out",
        str(tmp_path),
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert done.output.index("A round of 200 of 3,000 examples") < done.output.index(
        "| N | 3,000 | exponent |"
    )
    assert "Planned before it was run, and taken: 3,000 examples" in done.output
    rows = [json.loads(line) for line in (tmp_path / "scale.jsonl").read_text().splitlines()]
    assert {"train", "predict", "check", "take", "whole round"} <= {row["stage"] for row in rows}
    assert all(0.5 < row["peak_mib"] / row["planned_peak_mib"] < 2 for row in rows)
    assert all(row["disk"] == row["planned_disk"] for row in rows)
    assert all(row["planned_seconds"] > 0 and row["machine"]["read"] > 0 for row in rows)
    assert (tmp_path / "scale.png").stat().st_size > 10_000
    again = CliRunner().invoke(app, ["bench", "scale", "--report", str(tmp_path / "scale.jsonl")])
    assert again.output == (tmp_path / "scale.md").read_text()
    assert again.output in done.output


def test_a_report_measures_nothing():
    done = CliRunner().invoke(app, ["bench", "scale", "--report", "scale.jsonl", "--quick"])
    assert isinstance(done.exception, InputError)
    assert "leave --axis, --against-plan and --quick out" in str(done.exception)


def test_plan_by_numbers(monkeypatch):
    # In this process, which is quicker to start: how much memory it takes is not looked at.
    monkeypatch.setattr(
        forecasts, "in_own_process", lambda function, *given, **options: function(*given, **options)
    )
    numbers = ["--examples", "40000", "--classes", "5", "--features", "8", "--batch", "50"]
    done = CliRunner().invoke(app, ["plan", *numbers])
    assert done.exit_code == 0, done.output
    assert "A round of 50 of 40,000 examples, 5 classes" in done.output
    assert "open badge" in done.output
    assert "a run in memory holds more" in done.output


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            (None, None, 3, 8, 10, False, None),
            "name a run's folder, or give --examples and --classes",
        ),
        (
            (None, 100, 3, 8, 80, False, None),
            "a batch of 80 after 80 labelled ones does not fit a pool of 100",
        ),
        (
            (None, 100, 3, 8, 10, False, ["bald"]),
            "bald needs dropout passes, which can't be estimated",
        ),
        (
            (None, 100, 3, 8, 10, False, ["galaxi"]),
            "unknown arm family 'galaxi': did you mean 'galaxy'",
        ),
    ],
)
def test_plan_says_what_is_wrong(given, message):
    with pytest.raises(InputError, match=message):
        planned_size(*given)
