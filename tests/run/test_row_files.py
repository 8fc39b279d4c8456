"""Rows in files: nothing a spreadsheet would run, read back unchanged, written whole or not at
all.
"""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tailor.errors import InputError, UnknownName
from tailor.run.row_files import FORMULA, read_answers, read_rows, write_rows
from tailor.task import MultiClass, MultiLabel

CLASSES = MultiClass(["cat", "dog"])
SEVERAL = MultiLabel(["cat", "dog", "none", "a|b"])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FIRST = st.sampled_from(["=", "+", "-", "@", "'", "''", "\t", "\r", "\n"])
CELLS = st.one_of(TEXT, st.builds(str.__add__, FIRST, TEXT))


@settings(max_examples=200, deadline=None)
@given(st.lists(CELLS, min_size=1, max_size=5), st.sampled_from([".csv", ".jsonl"]))
@example(
    [
        "=1+1",
        "'=1",
        "''",
        "-",
        "'",
        "a,b",
        'say "hi"',
        "two\nlines",
        "\r\n",
        "\ufeffx",
        "é\u2028",
        "\x00",
    ],
    ".csv",
)
def test_any_text_comes_back_and_none_is_a_formula(ids, suffix):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rows{suffix}"
        assert write_rows(path, ({"id": one, "n": n} for n, one in enumerate(ids))) == len(ids)
        assert [row["id"] for row in read_rows(path)] == ids
        assert [str(row["n"]) for row in read_rows(path)] == [str(n) for n in range(len(ids))]
        if suffix == ".csv":
            with path.open(newline="", encoding="utf-8") as file:
                cells = [cell for row in csv.reader(file) for cell in row]
            assert not any(cell.startswith(FORMULA) for cell in cells)
        assert [p.name for p in Path(folder).iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_ids_of_any_form_can_be_told(tmp_path, suffix):
    ids = ["=cmd()", "a,b", "'quoted'", "two\nlines", "+1", "ünï"]
    path = tmp_path / f"t{suffix}"
    write_rows(path, ({"id": one, "label": "dog"} for one in ids))
    assert read_answers(path, CLASSES) == dict.fromkeys(ids, "dog")


def test_a_byte_order_mark_and_windows_line_ends(tmp_path):
    (tmp_path / "t.csv").write_bytes("id,label\r\nä,cat\r\n".encode("utf-8-sig"))
    assert read_answers(tmp_path / "t.csv", CLASSES) == {"ä": "cat"}
    (tmp_path / "t.jsonl").write_bytes('{"id": "ä", "label": "cat"}\r\n\r\n'.encode("utf-8-sig"))
    assert read_answers(tmp_path / "t.jsonl", CLASSES) == {"ä": "cat"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"id": "a", "label": "cat"}\n\n{"id": \n', r"line 3: Expecting value"),
        (
            '{"id": "a", "label": "cat"}\n["b", "dog"]\n',
            r"line 2: a JSON object is needed, got list",
        ),
        ('{"id": "a", "label": ["cat"]}\n', r"line 1: label \['cat'\]: one class is needed"),
        ('{"id": "a", "label": true}\n', r"line 1: unknown class 'True'"),
        ('{"id": "a", "label": 7}\n', r"line 1: unknown class '7': known: cat, dog"),
        ('{"label": "cat"}\n', r"line 1: columns id and label are needed, found label"),
    ],
)
def test_jsonl_errors_name_the_line(tmp_path, text, words):
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_answers(path, CLASSES)


def test_csv_errors_name_the_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('id,label\n"two\nlines",cat\nb,dgo\n')
    with pytest.raises(InputError, match="line 4: unknown class 'dgo': did you mean 'dog'"):
        read_answers(path, CLASSES)
    path.write_text(f"id,label\na,cat\nb,{'x' * 200_000}\n")
    with pytest.raises(InputError, match="line 3: field larger than field limit"):
        read_answers(path, CLASSES)
    path.write_bytes(b"id,label\ncaf\xe9,cat\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_answers(path, CLASSES)


def test_short_and_long_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,label\na\nb,dog,and,more\n")
    assert read_answers(path, CLASSES) == {"b": "dog"}


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("cat", ["cat"]),
        ("cat|dog", ["cat", "dog"]),
        (" cat | dog ", ["cat", "dog"]),
        ("-", []),
        ("none", ["none"]),  # a class of that name
        ("a|b", ["a|b"]),
    ],
)
def test_several_labels_in_a_cell(tmp_path, label, expected):
    write_rows(tmp_path / "t.csv", [{"id": "x", "label": label}])
    assert read_answers(tmp_path / "t.csv", SEVERAL) == {"x": expected}
    with pytest.raises(UnknownName):
        SEVERAL.encode([["a"]])


def test_none_means_no_class_where_no_class_is_called_so(tmp_path):
    write_rows(tmp_path / "t.csv", [{"id": "x", "label": "none"}])
    assert read_answers(tmp_path / "t.csv", MultiLabel(["cat", "dog"])) == {"x": []}


@pytest.mark.parametrize("word", ["1", "true", "YES", " x "])
def test_skips(tmp_path, word):
    write_rows(
        tmp_path / "t.csv",
        [{"id": "a", "label": "", "skip": word}, {"id": "b", "label": "", "skip": ""}],
    )
    assert read_answers(tmp_path / "t.csv", CLASSES) == {"a": None}
    rows = [{"id": "a", "label": None, "skip": True}, {"id": "b", "label": "cat", "skip": False}]
    write_rows(tmp_path / "t.jsonl", rows)
    assert read_answers(tmp_path / "t.jsonl", CLASSES) == {"a": None, "b": "cat"}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_an_error_half_way_leaves_nothing_and_harms_nothing(tmp_path, suffix):
    def failing():
        yield {"id": "a"}
        yield {"id": "b"}
        raise RuntimeError("half way")

    path = tmp_path / f"rows{suffix}"
    with pytest.raises(RuntimeError, match="half way"):
        write_rows(path, failing())
    assert list(tmp_path.iterdir()) == []
    path.write_text("old")
    with pytest.raises(RuntimeError, match="half way"):
        write_rows(path, failing())
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "old"


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"ends in \.xlsx: give a \.csv or \.jsonl"):
        write_rows(tmp_path / "a.xlsx", [])
    with pytest.raises(InputError, match="ends in nothing"):
        list(read_rows(tmp_path / "a"))
    assert list(tmp_path.iterdir()) == []


def test_lists_and_nothing_in_cells(tmp_path):
    write_rows(tmp_path / "a.csv", [{"id": "a", "label": ["=x", "y"], "round": None}])
    assert next(read_rows(tmp_path / "a.csv")) == {
        "id": "a",
        "label": "=x|y",
        "round": "",
        "line": 2,
    }
    write_rows(tmp_path / "a.jsonl", [{"id": "ü", "label": ["x", "y"], "round": None}])
    assert json.loads((tmp_path / "a.jsonl").read_text("utf-8")) == {
        "id": "ü",
        "label": ["x", "y"],
        "round": None,
    }
    assert "ü" in (tmp_path / "a.jsonl").read_text("utf-8")
