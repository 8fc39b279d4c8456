"""The simulated bandit: right world, right regret, and a command that runs from end to end."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from tailor.bandits import FixedArm
from tailor.bandits.base import Contest
from tailor.task import MultiClass
from tailor_experiments.cli.regret import regret
from tailor_experiments.regret.claims import Slope, check_claims, fit_slope
from tailor_experiments.regret.simulation import (
    QUICK,
    QUICK_BASE,
    RegretSetting,
    World,
    draw_labels,
    draw_world,
    instance,
    play,
    simulate,
    sweeps,
)


def test_regret_of_a_fixed_arm_by_hand() -> None:
    # <v, theta>: arm 0 gets .5, arm 1 gets .1; 3 rounds of 4 slots lose .4 each
    theta = np.array([[1.0, 0.0], [0.6, 0.4]])
    world = World(np.stack([theta] * 3), np.array([[0.5, -0.5]] * 3))
    contest = Contest(MultiClass(2), ("a", "b"), ("a", "b"), (-1, -1), 3, 4)
    setting = RegretSetting(rounds=3, arms=2, classes=2, slots=4)
    rng = np.random.default_rng(0)
    assert play(setting, FixedArm(arm="b").begin(contest), world, rng) == pytest.approx(4.8)
    assert play(setting, FixedArm(arm="a").begin(contest), world, rng) == 0


@pytest.mark.parametrize("kind", ["multi-class", "multi-label"])
def test_labels_have_their_mean(kind: str) -> None:
    setting = RegretSetting(kind=kind, classes=3)
    theta = np.array([0.2, 0.5, 0.3])
    labels = draw_labels(setting, np.tile(theta, (20_000, 1)), np.random.default_rng(0))
    assert np.abs(labels.mean(axis=0) - theta).max() < 4 * np.sqrt(0.25 / 20_000)
    assert (kind == "multi-label") or (labels.sum(axis=1) == 1).all()


def test_worlds_stand_still_or_drift() -> None:
    still = draw_world(RegretSetting(), np.random.default_rng(0))
    assert (still.theta == still.theta[0]).all()
    assert np.abs(still.v).max() <= 1 / 10
    moving = draw_world(RegretSetting(drift=0.1), np.random.default_rng(0))
    changed = (moving.theta[1:] != moving.theta[:-1]).any(axis=2)
    assert abs(changed.mean() - 0.1) < 4 * np.sqrt(0.09 / changed.size)


def test_same_seed_same_regret_and_tailor_learns() -> None:
    setting = RegretSetting(kind="multi-label", rounds=30)
    first = instance(setting, 3, 0)
    again = instance(setting, 3, 0)
    assert first == again
    assert first["tailor"] < 0.5 * first["random"]


def test_slope_of_a_power_law() -> None:
    x = np.array([1.0, 2, 4, 8])
    slope = fit_slope(x, 3 * x**0.5, 0.01 * x**0.5)
    assert slope.value == pytest.approx(0.5)
    # sigma of each log is .01/3, sum of squares of log x about its mean is 5 ln(2)^2
    assert slope.error == pytest.approx(0.01 / 3 / np.sqrt(5) / np.log(2))
    assert Slope(0.55, 0.03).at_most(0.5)
    assert not Slope(0.55, 0.02).at_most(0.5)


def test_pool_and_single_process_agree() -> None:
    points = [("rounds", RegretSetting(rounds=3, arms=2, classes=2, slots=2))]
    alone = simulate(points, instances=3, workers=1)
    pooled = simulate(points, instances=3, workers=2)
    for one, other in zip(alone, pooled):
        np.testing.assert_array_equal(one.regret, other.regret)


def test_command_runs(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(regret)
    options = ["--quick", "--instances", "3", "--workers", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    assert "holds" in result.output
    assert len(list(tmp_path.glob("*.png"))) == 5
    with (tmp_path / "regret.csv").open() as file:
        written = list(csv.DictReader(file))
    assert len(written) == len(list(sweeps(QUICK))) * 6
    assert {r["relative"] for r in written if r["selector"] == "random"} == {"1"}


def test_every_claim_is_judged() -> None:
    small = list(sweeps(QUICK, QUICK_BASE))
    verdicts = check_claims(simulate(small, instances=3, workers=2))
    assert len(verdicts) == 4 * 7
    assert len({(v.claim, v.where) for v in verdicts}) == len(verdicts)
