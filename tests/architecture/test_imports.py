"""`import tailor` is quick, and arrows between the rooms point one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tailor

ROOT = Path(tailor.__file__).parent
HEAVY = ("torch", "numba", "sklearn", "matplotlib", "scipy", "typer", "rich")


def loaded_by(code):
    script = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()} & set(HEAVY)


def test_import_tailor_loads_nothing_heavy():
    assert loaded_by("import tailor; dir(tailor)") == set()


def test_importing_the_engine_loads_nothing_heavy():
    """The algorithms import without their heavy tools: those come when an arm is opened."""
    assert loaded_by(
        "from tailor import Loop, MultiClass; Loop(MultiClass(2), 5, families=['random'])"
    ) <= {
        "numba",
        "scipy",
    }


def test_every_public_name_is_there():
    for name in tailor.__all__:
        assert getattr(tailor, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tailor.nothing


def imports(path):
    """All modules that a file imports, at the top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are written in full"
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def room(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0]


def rooms_of(names):
    return {name.split(".")[1] for name in names if name.startswith("tailor.")}


FILES = sorted(ROOT.rglob("*.py"))
ALL = {room(path) for path in FILES}
BASE = {"errors", "common", "task", "registry"}
#: what each package of the core may import besides itself
ALLOWED = {
    "errors": set(),
    "common": {"errors"},
    "task": {"errors", "common"},
    "registry": {"errors", "common"},
    "strategies": BASE | {"selection"},
    "bandits": BASE,
    "selection": BASE | {"strategies", "bandits"},
}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_arrows_point_one_way(path):
    mine = room(path)
    names = imports(path)
    used = (rooms_of(names) & ALL) - {mine}
    if mine in ALLOWED:
        assert used <= ALLOWED[mine], f"{path.name} imports {sorted(used - ALLOWED[mine])}"
    if mine == "strategies":  # what arms see, not who chooses them
        of_selection = {name for name in names if name.startswith("tailor.selection.")}
        assert all(name.startswith("tailor.selection.pool_view") for name in of_selection)
    if mine not in ("annotation", "web", "integrations", "cli"):
        assert not used & {"annotation", "web", "integrations"}
    if mine not in ("cli", "__main__"):
        assert "cli" not in used
        assert not {name.partition(".")[0] for name in names} & {"typer", "rich"}
    assert not any(name.startswith("tailor_experiments") for name in names)
