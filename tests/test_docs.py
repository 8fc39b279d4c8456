"""What the docs show runs as it stands and prints what they say: Python blocks of pages, examples
in docstrings.
"""

from __future__ import annotations

import doctest
import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]
PYTHON_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
#: `print(...)  # what it prints; a remark`
PRINTED = re.compile(r"^\s*print\(.*\)\s+# ([^;\n]*)", re.MULTILINE)

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES_WITH_PYTHON = [page for page in PAGES if PYTHON_BLOCK.search(page.read_text())]
MODULES_WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "tailor").rglob("*.py"))
    if ">>>" in path.read_text()
]


def photos_and_an_annotator(folder: Path) -> dict[str, Any]:
    """A folder `photos` of 60 small pictures, and someone who knows what they show."""
    rng = np.random.default_rng(0)
    (folder / "photos").mkdir()
    for number in range(60):
        pixels = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"{number}.png")
    classes = ("cat", "dog", "fox")
    return {"my_answer": lambda example: classes[int(Path(example).stem) % 3]}


def a_run(folder: Path) -> dict[str, Any]:
    """A folder with a run that is ready to be labelled."""
    from tailor.run import config

    photos_and_an_annotator(folder)
    settings = {
        "task": {"kind": "multi-class", "classes": ["cat", "dog", "fox"]},
        "pool": {"path": str(folder / "photos")},
        "model": {"name": "probe", "backbone": "pixels(size=8)", "device": "cpu"},
    }
    config.write(folder / "run", settings)
    return {"folder": folder / "run"}


def cifar(folder: Path) -> dict[str, Any]:
    sys.path.insert(0, str(ROOT / "tests" / "experiments" / "datasets"))
    import official_files

    official_files.write_cifar10(folder / "path" / "to" / "cifar")
    return {}


#: what the reader of a page has that its code does not make
GIVEN: dict[str, Callable[[Path], dict[str, Any]]] = {
    "session.md": photos_and_an_annotator,
    "team.md": a_run,
    "datasets.md": cifar,
}


@pytest.mark.parametrize("page", PAGES_WITH_PYTHON, ids=lambda page: page.name)
def test_python_of_a_page_runs_and_prints_what_it_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = GIVEN[page.name](tmp_path) if page.name in GIVEN else {}
    blocks = PYTHON_BLOCK.findall(page.read_text())
    for block in blocks:
        exec(compile(block, str(page), "exec"), given)
    printed = capsys.readouterr().out.splitlines()
    promised = [text.strip() for block in blocks for text in PRINTED.findall(block)]
    assert printed[: len(promised)] == promised


def test_the_readme_promises_counts():
    """So that the comparison above has something to compare."""
    (block,) = PYTHON_BLOCK.findall((ROOT / "README.md").read_text())
    (promised,) = PRINTED.findall(block)
    assert sum(float(count) for count in re.findall(r"[\d.]+", promised)) == 130


@pytest.mark.parametrize("name", MODULES_WITH_EXAMPLES)
def test_examples_in_docstrings(name, tmp_path, monkeypatch):
    module = importlib.import_module(name)
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, tried = doctest.testmod(module, optionflags=flags)
    assert tried > 0, f"{name} has examples that are never run"
    assert failed == 0
