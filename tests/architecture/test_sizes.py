"""No class grows past what a reader can keep in mind."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_METHODS = 20


def method_counts(folder):
    """(path and class, its methods and properties) of every class below a folder.

    What it inherits does not count. A property counts once, whether or not it has a setter.
    """
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef):
                continue
            names = set()
            for statement in node.body:
                if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    names.add(statement.name)
            yield f"{path.relative_to(folder.parent)}: {node.name}", len(names)


@pytest.mark.parametrize("package", ["tailor", "tailor_experiments"])
def test_no_class_has_too_many_methods(package):
    counts = dict(method_counts(ROOT / package))
    too_large = {name: count for name, count in counts.items() if count > MOST_METHODS}
    assert too_large == {}


def test_methods_and_properties_count_once_each(tmp_path):
    module = tmp_path / "package" / "module.py"
    module.parent.mkdir()
    module.write_text(
        "class Base:\n"
        "    def inherited(self): ...\n"
        "class Example(Base):\n"
        "    attribute = 1\n"
        "    def method(self):\n"
        "        def local(): ...\n"
        "    async def waits(self): ...\n"
        "    @property\n"
        "    def size(self): ...\n"
        "    @size.setter\n"
        "    def size(self, value): ...\n"
    )
    counts = dict(method_counts(module.parent))
    assert counts == {"package/module.py: Base": 1, "package/module.py: Example": 3}
