"""One name for one thing: no public class of the project is called like another."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import tailor
import tailor_experiments

PACKAGES = [Path(package.__file__).parent for package in (tailor, tailor_experiments)]


def public_classes():
    """(name, file) of every class whose name has no underscore in front."""
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield node.name, path


def test_no_class_name_is_used_twice():
    files = defaultdict(list)
    for name, path in public_classes():
        files[name].append(path.relative_to(path.parents[1]).as_posix())
    twice = {name: paths for name, paths in files.items() if len(paths) > 1}
    assert files
    assert not twice
