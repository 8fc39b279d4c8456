"""An editor knows the type of every public name, and sees a wrong use of it before it runs."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import parts
import pytest

parts.need("mypy")

from mypy import api

ROOT = Path(__file__).parents[2]
PACKAGES = ("tailor", "tailor.strategies", "tailor.bandits", "tailor.bandits.rewards")
PUBLIC_NAMES = [
    f"{package}.{name}" for package in PACKAGES for name in importlib.import_module(package).__all__
]
RIGHT = """
from tailor import Learner, MultiClass, open_run
from tailor.bandits import ThompsonSampling
from tailor.strategies import Badge
learner = Learner(MultiClass(3), 9, strategies=["galaxy", Badge()], selector=ThompsonSampling())
"""
WRONG = [
    "Learner(MultiClass(3), 9, famlies=['galaxy'])",
    "ThompsonSampling(forgt=0.9)",
    "open_run('photos', batsh=3)",
    "tailor.Lerner",
]


#: other packages' types are not read: that takes most of the time, and is not what is tested
SETTINGS = """
[mypy]
strict = true
follow_imports = silent
ignore_missing_imports = true
[mypy-torch.*,numpy.*,PIL.*,typer.*,rich.*,fastapi.*]
follow_imports = skip
follow_imports_for_stubs = true
"""


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """Line -> what mypy says of it, for a user's file that names everything."""
    folder = tmp_path_factory.mktemp("user")
    lines = [
        *(f"import {package}" for package in PACKAGES),
        *RIGHT.strip().splitlines(),
        *(f"reveal_type({name})" for name in PUBLIC_NAMES),
        *WRONG,
    ]
    (folder / "uses_tailor.py").write_text("\n".join(lines) + "\n")
    (folder / "mypy.ini").write_text(SETTINGS)
    options = ["--config-file=mypy.ini", "--cache-dir=cache", "--no-error-summary"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPYPATH", str(ROOT))
        patch.chdir(folder)
        report, errors, _ = api.run([*options, "uses_tailor.py"])
    assert not errors
    found = {}
    for finding in report.splitlines():
        _, number, text = finding.split(":", 2)
        found.setdefault(lines[int(number) - 1], text.strip())
    return found


def test_every_public_name_has_a_type(findings):
    types = {}
    for name in PUBLIC_NAMES:
        match = re.search(r'Revealed type is "(.*)"', findings[f"reveal_type({name})"])
        types[name] = match and match[1]
    untyped = [name for name, revealed in types.items() if revealed in (None, "Any", "...")]
    assert untyped == []
    assert types["tailor.Learner"].startswith("def (task: tailor.task.Task, pool:")
    assert types["tailor.Learner"].endswith("-> tailor.selection.learner.Learner")


def test_wrong_use_is_seen_and_right_use_is_not(findings):
    wrong = {line for line, finding in findings.items() if finding.startswith("error")}
    assert wrong == set(WRONG)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there(package):
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = module.nothing
