"""`tailor plan RUN`: the plan is that of the run's own features."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tailor import InputError
from tailor.capacity import forecast
from tailor.capacity.planning import planned_size
from tailor.cli.app import app

TOML = """
[task]
classes = ["a", "b"]
[pool]
path = "points.npy"
[model]
{model}
[selection]
strategies = ["confidence"]
batch = 20
"""


@pytest.fixture
def run_with(tmp_path):
    """A run over 400 vectors of 6 numbers."""
    np.save(
        tmp_path / "points.npy", np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32)
    )

    def begin(model):
        (tmp_path / "tailor.toml").write_text(TOML.format(model=model))
        return tmp_path

    return begin


@pytest.fixture
def planned(monkeypatch):
    """`tailor plan`, its rounds run in this process: their memory is not looked at."""
    monkeypatch.setattr(forecast, "ENOUGH", 0.1)
    monkeypatch.setattr(
        forecast, "in_own_process", lambda function, *given, **options: function(*given, **options)
    )

    def plan(*words):
        done = CliRunner().invoke(app, ["plan", *map(str, words)])
        assert done.exit_code == 0, done.output
        return done

    return plan


def test_as_many_bytes_are_planned_as_the_run_writes(run_with, planned):
    rows = map(json.loads, planned(run_with(""), "--json").stdout.splitlines())
    (disk,) = [row["disk"] for row in rows if row["stage"] == "predict"]
    numbers = 2 * 400 * (2 + 6)  # float16, of 2 classes and 6 features
    assert numbers < disk < numbers + 2000  # the files' headers


@pytest.mark.parametrize(
    ("model", "given", "wanted"),
    [("", None, 6), ("", 9, 9), ("", 0, 0), ('name = "probe(hidden=7)"\nhead = "hidden"', None, 7)],
)
def test_the_width_is_the_runs_unless_it_is_given(run_with, model, given, wanted):
    size, assumed = planned_size(run_with(model), None, None, given, None, False, None)
    assert (size.features, assumed) == (wanted, [])


def test_what_is_assumed_is_said(run_with, planned):
    """timm alone knows how wide its networks are."""
    done = planned(run_with('backbone = "timm:vit_tiny"'), "--trust")
    assert (
        "timm:vit_tiny is assumed to give 512 features an example: give --features" in done.stderr
    )
    assert "A round of 20 of 400 examples, 2 classes, 512 features" in done.stdout


def test_a_wrong_name_is_blamed_on_its_line(run_with):
    with pytest.raises(
        InputError, match="line 7: backbone: unknown backbone 'givn': did you mean 'given'"
    ):
        planned_size(run_with('backbone = "givn"'), None, None, None, None, False, None)


def test_a_run_of_wider_numbers_is_told_so(run_with):
    folder = run_with("")
    with (folder / "tailor.toml").open("a") as file:
        file.write('[engine]\nname = "local"\ndtype = "float32"\n')
    _, assumed = planned_size(folder, None, None, None, None, False, None)
    assert any("float32" in line for line in assumed)


def test_a_run_that_covers_has_a_stage_for_it(run_with, planned):
    folder = run_with("")
    settings = folder / "tailor.toml"
    settings.write_text(
        settings.read_text().replace("[selection]\n", "[selection]\ncover = true\n")
    )
    size, _ = planned_size(folder, None, None, None, None, False, None)
    assert size.cover
    rows = list(map(json.loads, planned(folder, "--json").stdout.splitlines()))
    stages = [row["stage"] for row in rows]
    assert stages.index("cover") == stages.index("take") - 1
    (cover,) = [row for row in rows if row["stage"] == "cover"]
    assert cover["seconds"] > 0
    assert cover["cpu_seconds"] > 0


def test_a_cover_without_features_is_refused(run_with):
    with pytest.raises(InputError, match="a cover needs features: give --features"):
        planned_size(run_with(""), None, None, 0, None, False, None, True)
