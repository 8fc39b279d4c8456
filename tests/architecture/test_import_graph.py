"""The picture of the imports: every package is in it, and every arrow points down."""

from __future__ import annotations

import re
from pathlib import Path
from runpy import run_path
from xml.etree import ElementTree

import parts
import pytest

parts.need("import-linter")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool():
    return run_path(str(ROOT / "tools" / "import_graph.py"))


@pytest.fixture(scope="module")
def edges(tool):
    return tool["package_imports"]()


def test_every_package_is_drawn_with_what_is_in_it(tool, edges):
    packages = {
        f"{path.parents[1].name}.{path.parent.name}"
        for root in ("tailor", "tailor_experiments")
        for path in (ROOT / root).glob("*/__init__.py")
    }
    assert packages <= set(edges)
    assert set(tool["CONTENTS"]) == set(edges)


def test_the_picture_is_an_image_with_a_box_for_each(tool, edges):
    picture = ElementTree.fromstring(tool["picture"]())
    names = [text.text for text in picture.iter() if text.get("class") == "name"]
    assert len(names) == len(edges)
    assert {"selection", "strategies", "comparison"} <= set(names)


def test_every_arrow_points_down(tool):
    lines = re.findall(r'<path class="arrow" d="M[\d.]+ ([\d.]+)C.* ([\d.]+)"', tool["picture"]())
    assert len(lines) > 20
    assert all(float(begin) < float(end) for begin, end in lines)


def test_arrows_that_follow_from_others_are_left_out(tool):
    chain = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert tool["without_implied"](chain) == {"a": {"b"}, "b": {"c"}, "c": set()}
    assert tool["rows_of"](chain) == {"a": 0, "b": 1, "c": 2}


def test_a_circle_is_named(tool):
    with pytest.raises(SystemExit, match="in a circle: a -> b -> a"):
        tool["from_top"]({"a": {"b"}, "b": {"a"}})
