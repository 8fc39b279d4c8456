"""What the pages publish follows from the rows that are kept beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from runpy import run_path

import pytest

from tailor_experiments.speed.scale_report import growth, read_rows

HOME = Path(__file__).parents[3]
RESULTS = HOME / "benchmarks" / "results"


@pytest.mark.parametrize("name", ["scale_cpu.jsonl", "scale_h200.jsonl"])
def test_no_stage_is_faster_than_its_limit(name):
    """Galaxy can't do without reading all probabilities, of 16 bits each, once."""
    rows = read_rows([RESULTS / name])
    assert all(
        row["of_limit"] == pytest.approx(row["limit_seconds"] / row["seconds"]) for row in rows
    )
    assert max(row["of_limit"] for row in rows) < 1
    for row in (r for r in rows if r["stage"] == "open galaxy"):
        assert row["limit_seconds"] == pytest.approx(
            2 * row["pool"] * row["classes"] / row["machine"]["read"]
        )
        point = [
            r["limit_seconds"]
            for r in rows
            if (r["axis"], r["value"]) == (row["axis"], row["value"])
        ]
        assert 2 * max(point) == pytest.approx(
            sum(point)
        )  # the whole round's is that of its stages


def test_the_tables_of_growth_are_those_of_the_rows():
    page = (HOME / "benchmarks" / "README.md").read_text()
    rows = read_rows([RESULTS / "scale_cpu.jsonl"])
    for axis in ("N", "K", "M", "workers"):
        assert growth(rows, axis) in page


def test_the_cost_of_a_cluster_is_that_of_the_rows(capsys):
    rows = [json.loads(line) for line in (RESULTS / "scale_cpu.jsonl").read_text().splitlines()]
    run_path(str(HOME / "benchmarks" / "scale_simulation.py"))["print_plans"](rows)
    rates, *plans = capsys.readouterr().out.splitlines()
    page = (HOME / "docs" / "concepts" / "scale.md").read_text()
    predict, passes = (round(float(found)) for found in re.findall(r"([\d.]+) us", rates))
    assert f"measured {predict} µs a row and core for\npredicting and {passes} µs for check" in page
    published = re.findall(
        r"\| 10\^(\d) \| (\d+) \| [\d.]+ TB \| (\d+) s \| (\d+) s \| .* \| \$([\d.]+) \|\n", page
    )
    found = [
        re.search(r"e\+0(\d).* (\d+) nodes +read +(\d+) s +compute +(\d+) s.*\$ *([\d.]+)", p)
        for p in plans
    ]
    assert published == [one.groups() for one in found]


@pytest.mark.parametrize("script", ["tables.py", "few_labels.py"])
def test_the_tables_of_experiments_are_those_of_the_rows(script):
    page = set((HOME / "benchmarks" / "README.md").read_text().splitlines())
    for name, lines in run_path(str(HOME / "benchmarks" / script))["published"]():
        found = list(lines)
        assert found, name
        assert [line for line in found if line not in page] == [], name
