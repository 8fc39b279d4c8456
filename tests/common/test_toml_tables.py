"""TOML files with declared keys: the lines of keys, types, and arrays of tables."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tailor.common.toml_tables import (
    NUMBER,
    SWITCH,
    TEXT,
    TEXTS,
    WHOLE,
    Key,
    TomlFile,
    as_toml,
    line_of_key,
)
from tailor.errors import InputError

TEXT_VALUES = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = {
    "name": Key(TEXT, None, "what it is called", required=True),
    "batch": Key(WHOLE, 100, "examples a round"),
    "rate": Key(NUMBER, None, "how fast"),
    "classes": Key(TEXTS, [], "in order"),
    "fast": Key(SWITCH, False, "whether to hurry"),
}


@pytest.mark.parametrize(
    ("section", "key", "line"),
    [
        ("task", "kind", 4),
        ("pool", "kind", 8),
        ("selection", "batch", 12),
        ("selection", None, 10),
        ("stop", "x", 1),
    ],
)
def test_the_line_of_a_key(section, key, line):
    text = (
        '# \x85 line\n\n[task]\nkind = "a"\n\n[pool]\n# kind = "c"\n kind = "b"\n\n[ '
        'selection ]\n\n"batch" = 3\n'
    )
    assert line_of_key(text, section, key) == line


def test_the_line_of_a_key_in_one_of_several_entries():
    text = "[[arm]]\nname = 1\n[other]\nname = 2\n[[ arm ]]\n\nname = 3\n"
    assert [line_of_key(text, "arm", "name", entry) for entry in (0, 1)] == [2, 7]
    assert [line_of_key(text, "arm", None, entry) for entry in (0, 1)] == [1, 5]
    assert line_of_key(text, "other", "name") == 4


def read(tmp_path, text):
    path = tmp_path / "file.toml"
    path.write_text(text)
    return TomlFile.read(path)


def test_defaults_are_filled_in(tmp_path):
    file = read(tmp_path, "[a]\nname = 'x'\nrate = 1\nfast = true\n")
    file.check({"a": KEYS})
    assert file.table("a", KEYS) == {
        "name": "x",
        "batch": 100,
        "rate": 1,
        "classes": [],
        "fast": True,
    }
    assert file.entries("b", KEYS) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("batch = 1.5", "line 3: batch = 1.5 must be int: examples a round"),
        ("batch = true", "line 3: batch = True must be int"),
        ("rate = 'x'", "line 3: rate = 'x' must be int or float: how fast"),
        ("classes = 'x'", "line 3: classes = 'x' must be list of texts: in order"),
        ("classes = ['x', 3]", "must be list of texts, which 3 is not: in order"),
        ("fast = 1", "line 3: fast = 1 must be true or false: whether to hurry"),
        ("nam = 'x'", "line 3: unknown key in .a. 'nam': did you mean 'name'"),
    ],
)
def test_a_wrong_value_is_refused_with_its_line(tmp_path, line, message):
    plain = read(tmp_path, f"[a]\nname = 'x'\n{line}\n")
    with pytest.raises(InputError, match=message):
        plain.check({"a": KEYS})
    several = read(tmp_path, f"[[a]]\nname = 'x'\n{line}\n[[a]]\nname = 'y'\n")
    with pytest.raises(InputError, match=message):
        several.check({}, {"a": KEYS})


def test_a_required_key_is_named_with_the_line_of_its_table(tmp_path):
    file = read(tmp_path, "\n[a]\nbatch = 1\n[[b]]\nname = 'x'\n[[b]]\n")
    with pytest.raises(InputError, match=r"line 2: \[a\] needs name: what it is called"):
        file.table("a", KEYS)
    with pytest.raises(InputError, match=r"line 6: \[b\] needs name"):
        file.entries("b", KEYS)
    with pytest.raises(InputError, match=r"file.toml: \[c\] needs name"):
        file.table("c", KEYS)


def test_tables_and_lists_of_tables_are_told_apart(tmp_path):
    file = read(tmp_path, "x = 1\n[a]\n[[b]]\n")
    plain = {"a": KEYS, "b": KEYS}
    with pytest.raises(InputError, match=r"line 1: x is a section: write \[x\]"):
        file.check({"x": KEYS})
    with pytest.raises(InputError, match=r"line 1: unknown section 'x'"):
        file.check(plain)
    file = read(tmp_path, "[a]\n[[b]]\n")
    with pytest.raises(InputError, match=r"line 2: b is a section: write \[b\]"):
        file.check(plain)
    with pytest.raises(InputError, match=r"line 1: a is a list: write \[\[a\]\]"):
        file.check({}, plain)
    file.check({"a": KEYS}, {"b": KEYS})


@given(st.one_of(TEXT_VALUES, st.integers(), st.booleans(), st.lists(TEXT_VALUES)))
@example("\x7f\x00\x1f\U0001f600\x85\u2028\\\"'")
@example(5e-324)
def test_what_is_written_is_read_back(value):
    assert tomllib.loads(f"key = {as_toml(value)}")["key"] == value
