"""tailor.toml: what is written is read back, and errors name the line."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from tailor.errors import InputError
from tailor.run import config
from tailor.run.config import SCHEMA

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
BASE = {"task": {"classes": ["a", "b"]}, "pool": {"path": "x"}}


@profile(max_examples=150, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=4), TEXT, st.floats(0, 1), st.integers(0, 2**62))
@example(
    ['say "hi"', "back\\slash", "new\nline", "\x00\x7f\x1b", "\x85\u2028", "# no", "ключ", "'"],
    "\\",
    0.1,
    0,
)
def test_odd_names_come_back(classes, path, holdout, seed):
    values = {
        "task": {"classes": classes},
        "pool": {"path": path},
        "selection": {"holdout": holdout, "seed": seed},
    }
    with tempfile.TemporaryDirectory() as folder:
        written = config.write(Path(folder) / "run", values)
        found = config.read(Path(folder) / "run")
        assert written.name == config.FILE
        assert found.values["task"] == {"kind": "multi-class", "classes": classes}
        assert found.section("pool") == {"path": path}
        assert (found.values["selection"]["holdout"], found.values["selection"]["seed"]) == (
            holdout,
            seed,
        )


def test_defaults_are_filled_in_and_nothing_else_is_set(tmp_path):
    config.write(tmp_path, BASE)
    found = config.read(tmp_path)
    for section, keys in SCHEMA.items():
        given = {**config.NEW_RUN.get(section, {}), **BASE.get(section, {})}
        for key, wanted in keys.items():
            assert found.values[section][key] == given.get(key, wanted.default)
    assert found.section("stop") == {}


def test_a_model_that_knows_no_correction_is_begun_without_it(tmp_path):
    config.write(tmp_path, {**BASE, "model": {"name": "sklearn(estimator=naive_bayes.GaussianNB)"}})
    assert "prior_correction" not in config.read(tmp_path).section("model")


def test_a_file_without_the_keys_of_today_is_read_as_it_was(tmp_path):
    (tmp_path / config.FILE).write_text('[task]\nclasses = ["a", "b"]\n[pool]\npath = "x"\n')
    found = config.read(tmp_path)
    selection = found.section("selection")
    assert selection["strategies"] == []
    assert selection["selector"] == "tailor"
    assert selection["start"] == "random"
    assert selection["cover"] is False
    assert "prior_correction" not in found.section("model")


def test_every_key_is_explained_in_the_file(tmp_path):
    text = config.write(tmp_path, BASE).read_text()
    parts = dict(zip(SCHEMA, text.split("\n[")[1:]))
    for section, keys in SCHEMA.items():
        assert parts[section].startswith(f"{section}]")
        for key, wanted in keys.items():
            lines = [
                line
                for line in parts[section].split("\n")
                if line.startswith((f"{key} = ", f"# {key} ="))
            ]
            assert len(lines) == 1, (section, key)
            assert lines[0].endswith(f"# {wanted.doc}")


def test_a_commented_key_can_be_taken_in_as_it_stands(tmp_path):
    """Removing the # and writing a value is all that it takes."""
    path = config.write(tmp_path, BASE)
    path.write_text(path.read_text().replace("# budget =  ", "budget = 50"))
    assert config.read(tmp_path).section("stop") == {"budget": 50}


def test_nothing_is_written_over_or_left_half_written(tmp_path):
    config.write(tmp_path, BASE)
    before = (tmp_path / config.FILE).read_text()
    with pytest.raises(InputError, match="exists: edit it"):
        config.write(tmp_path, {"task": {"classes": ["c"]}, "pool": {"path": "y"}})
    assert (tmp_path / config.FILE).read_text() == before
    with pytest.raises(InputError, match="can't be written"):
        config.write(tmp_path / "other", {"task": {"classes": ["\udcff"]}, "pool": {"path": "y"}})
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("task = 3\n", "line 1: task is a section: write .task."),
        ("[task]\nclasses = ['a']\n", r"\[pool\] needs path"),
        ("[task]\nclasses = 'a'\n", "line 2: classes = 'a' must be list"),
        (
            "[task]\nclases = ['a']\n",
            "line 2: unknown key in .task. 'clases': did you mean 'classes'",
        ),
        ("\n[tasks]\n", "line 2: unknown section 'tasks': did you mean 'task'"),
        ("[stop]\naccuracy = '0.9'\n", "line 2: accuracy = '0.9' must be int or float"),
        ("[task\n", "line 1"),
    ],
)
def test_errors_name_the_line(tmp_path, text, words):
    (tmp_path / config.FILE).write_text(text)
    with pytest.raises(InputError, match=words):
        config.read(tmp_path)


def test_a_key_may_have_the_name_that_an_older_version_gave_it(tmp_path):
    head = "[task]\nclasses = ['a', 'b']\n[pool]\npath = 'x'\n[selection]\n"
    (tmp_path / config.FILE).write_text(head + "families = ['galaxy']\n")
    assert config.read(tmp_path).section("selection")["strategies"] == ["galaxy"]
    (tmp_path / config.FILE).write_text(head + "families = []\nstrategies = []\n")
    with pytest.raises(InputError, match="families and strategies are the same setting"):
        config.read(tmp_path)
