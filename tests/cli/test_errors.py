"""What a user can do wrong: status 2, one message that says what and where, and nothing is
changed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from runs import (
    app,
    begin,
    begin_several,
    edit,
    labels,
    python_m,
    refused,
    state,
    tailor,
    write_csv,
    write_jsonl,
)
from stores import append_raw, rewrite
from typer.testing import CliRunner

from tailor.errors import InputError, TailorError
from tailor.run.project import Project
from tailor.storage import SqliteStore, StoreBusy, StoreError


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A run with one batch answered."""
    folder = tmp_path_factory.mktemp("home")
    tailor("run", "--run", begin(folder), "--rounds", 1)
    return folder


@pytest.fixture
def run(home, tmp_path):
    return shutil.copytree(home, tmp_path / "copy") / "run"


def files(folder):
    """What must not change; the lock and SQLite's own side files come and go."""
    return {
        p.name: p.read_bytes()
        for p in folder.iterdir()
        if p.is_file() and p.name in ("run.db", "tailor.toml")
    }


def line_of(run, text):
    lines = (run / "tailor.toml").read_text().split("\n")
    return next(number for number, line in enumerate(lines, 1) if text in line)


def refusal(*words):
    """The error of a command in this process, which is quicker than one of its own."""
    from runs import app
    from typer.testing import CliRunner

    result = CliRunner().invoke(app, [str(w) for w in words])
    assert isinstance(result.exception, TailorError), result.output
    return str(result.exception)


# ---------------------------------------------------------------------- tailor.toml


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("batch = 20", "bach = 20", ["unknown key in [selection] 'bach'", "did you mean 'batch'"]),
        ("[selection]", "[selecton]", ["unknown section 'selecton'", "did you mean 'selection'"]),
        ("batch = 20", 'batch = "many"', ["batch = 'many' must be int"]),
        ("batch = 20", "batch = true", ["batch = True must be int"]),
        ("batch = 20", "batch = 0", ["batch is 0", "at least 1"]),
        ("holdout = 0.2", "holdout = 1.5", ["holdout is 1.5", "[0, 1)"]),
        ('kind = "multi-class"', 'kind = "multiclass"', ["kind is 'multiclass'", "multi-class"]),
        ('selector = "auto"', 'selector = "tailr"', ["'tailr'", "did you mean 'tailor'"]),
        ('reward = "diversity"', 'reward = "diversty"', ["'diversty'", "did you mean 'diversity'"]),
        (
            'strategies = ["auto"]',
            'strategies = ["random", "galaxi"]',
            ["'galaxi'", "did you mean 'galaxy'"],
        ),
        ("seed = 0", "seed = -1", ["seed is -1"]),
    ],
)
def test_a_bad_key_or_value_names_the_line_and_the_nearest(run, old, new, words):
    path = run / "tailor.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    message = refusal("status", "--run", run)
    assert f"{path}, line {line_of(run, new)}" in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("path", "../picturs", ["nothing at", "did you mean 'pictures'"]),
        ("labels", "fodler", ["labels is 'fodler'", "'folder'"]),
        ("kind", "image-foldr", ["'image-foldr'", "did you mean 'image-folder'"]),
        ("key", "name", ["'key'"]),
        ("name", "prob", ["'prob'", "did you mean 'probe'"]),
        ("backbone", "pixls", ["'pixls'", "did you mean 'pixels'"]),
        ("head", "liner", ["'liner'", "did you mean 'linear'"]),
        ("network", "resnet18", ["'network'"]),
        ("backbone", "given", ["backbone 'given' reads vector, the pool is of kind 'image'"]),
        ("budget", 0, ["budget is 0"]),
        ("accuracy", 1.5, ["target accuracy is 1.5"]),
        ("plateau", 0, ["plateau of 0"]),
        ("per_class", -1, ["class count is -1"]),
    ],
)
def test_a_value_that_is_wrong_only_in_use_names_the_line_too(run, key, value, words):
    if key == "kind":
        path = run / "tailor.toml"
        path.write_text(path.read_text().replace("# kind =", f'kind = "{value}" #', 1))
    else:
        edit(run, **{key: value})
    before = files(run)
    message = refusal("run", "--run", run, "--rounds", 1)
    shown = f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}"
    assert f"{run / 'tailor.toml'}, line {line_of(run, shown)}" in message
    for word in words:
        assert word in message
    assert files(run) == before


def test_a_missing_key_and_no_toml_at_all(run):
    path = run / "tailor.toml"
    text = path.read_text()
    path.write_text("\n".join(line for line in text.split("\n") if not line.startswith("classes")))
    assert "[task] needs classes" in refusal("status", "--run", run)
    path.write_text(text + "\nthis is = = no toml")
    assert f"line {text.count(chr(10)) + 2}" in refusal("status", "--run", run)
    path.write_bytes(b"# caf\xe9\n" + text.encode())
    assert "utf-8" in refusal("status", "--run", run)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())  # as some editors save it
    assert state(run)["answered"] == 20


def test_a_begun_run_keeps_its_settings(run):
    edit(run, seed=9)
    for command in ("status", "run"):
        assert "this run has seed = 0, now it is 9" in refusal(command, "--run", run)


# ---------------------------------------------------------------------- the contract, in processes
# of their own


def test_init_refuses_to_overwrite(run):
    before = files(run)
    message = refused("init", run.parent / "pictures", "--run", run, "--labels", "folder")
    assert "exists: edit it" in message
    assert files(run) == before


def test_init_says_what_is_missing(tmp_path):
    assert "name the pool" in refused("init", "--run", tmp_path / "run")
    (tmp_path / "empty").mkdir()
    assert "is empty" in refused("init", tmp_path / "empty", "--run", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words", [("status",), ("run",), ("ask",), ("export", "a.csv"), ("train",), ("predict",)]
)
def test_a_folder_without_a_run(tmp_path, words):
    message = refusal(*words, "--run", tmp_path / "nowhere")
    assert "no tailor.toml in" in message
    assert "tailor init" in message
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "words", [("status",), ("run",), ("tell", "a.csv"), ("export", "a.csv"), ("train",)]
)
def test_without_run_those_that_lie_here_are_suggested(run, tmp_path, monkeypatch, words):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert "name the run's folder with --run" in refusal(*words)
    monkeypatch.chdir(run.parent)
    assert "did you mean --run run?" in refusal(*words)
    shutil.copytree(run, run.parent / "another")
    assert "did you mean --run another or --run run?" in refusal(*words)


@pytest.mark.parametrize("words", [("train", "run"), ("export", "run"), ("predict", "run")])
def test_a_run_in_the_place_of_another_argument(run, monkeypatch, words):
    monkeypatch.chdir(run.parent)
    assert "run is the folder of a run" in refusal(*words)
    assert "name it with --run run" in refusal(*words)


def test_an_unwritable_place_is_said_in_one_line(run):
    message = refused("export", run / "no" / "such" / "labels.csv", "--run", run)
    assert "No such file or directory" in message
    assert message.count("\n") == 1


def test_bad_options_are_refused_by_the_parser():
    result = python_m("run", "--noise", "2")
    assert result.returncode == 2
    assert "--noise" in result.stderr


# ---------------------------------------------------------------------- tell


@pytest.mark.parametrize(
    ("rows", "line", "words"),
    [
        (
            [{"id": "GOOD", "label": "one"}, {"id": "one/nope.png", "label": "one"}],
            3,
            ["unknown example"],
        ),
        (
            [{"id": "GOOD", "label": "one"}, {"id": "OTHER", "label": "oen"}],
            3,
            ["'oen'", "did you mean 'one'"],
        ),
        ([{"id": "GOOD", "label": "one"}, {"id": "GOOD", "label": "two"}], 3, ["is there twice"]),
        ([{"id": "GOOD", "class": "one"}], 2, ["columns id and label are needed, found id, class"]),
    ],
)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_bad_answer_names_its_line_and_none_is_taken(run, rows, line, words, form):
    tailor("ask", "--run", run, "--out", run.parent / "ask.csv")
    good, other = (s.id for s in _waiting(run)[:2])
    rows = [{**row, "id": {"GOOD": good, "OTHER": other}.get(row["id"], row["id"])} for row in rows]
    path = (write_csv if form == "csv" else write_jsonl)(run.parent / f"t.{form}", rows)
    before = labels(run)
    message = refusal("tell", path, "--run", run)
    assert f"{path}, line {line - (form == 'jsonl')}: " in message
    for word in words:
        assert word in message
    assert labels(run) == before
    assert len(_waiting(run)) == 20


def _waiting(run):
    session = Project(run).session()
    try:
        return session.waiting()
    finally:
        session.store.close()


def test_a_labelled_example_is_not_skipped(run):
    one = labels(run)[0][0]
    path = write_csv(run.parent / "t.csv", [{"id": one, "label": "", "skip": "yes"}])
    assert "can be corrected, but not skipped" in refusal("tell", path, "--run", run)
    assert state(run)["skipped"] == 0


def test_other_kinds_of_file_are_refused(run):
    (run / "t.txt").write_text("id,label\n")
    assert "give a .csv or .jsonl file" in refusal("tell", run / "t.txt", "--run", run)
    assert "no file at" in refusal("tell", run / "t.csv", "--run", run)
    assert "give a .csv or .jsonl file" in refusal("ask", "--out", run / "ask.xlsx", "--run", run)
    (run / "t.csv").write_bytes(b"id,label\ncaf\xe9,one\n")
    assert "not UTF-8" in refusal("tell", run / "t.csv", "--run", run)


# ---------------------------------------------------------------------- the run's own files


def test_a_second_process_is_told_and_changes_nothing_while_status_works(run):
    before = labels(run)
    store = SqliteStore(run / "run.db")
    try:
        message = refused("run", "--run", run)
        assert f"in use by process {os.getpid()}" in message
        assert "nothing was changed" in message
        path = write_csv(run.parent / "t.csv", [{"id": before[0][0], "label": "two"}])
        with pytest.raises(StoreBusy):
            _raised("tell", path, "--run", run)
        with pytest.raises(StoreBusy):
            _raised("ask", "--run", run, "--out", run.parent / "ask.csv")
        assert not (run.parent / "ask.csv").exists()
        meanwhile = python_m("status", "--run", run)
        assert meanwhile.returncode == 0, meanwhile.stderr
        assert "20 labels of 150" in meanwhile.stdout
        tailor("export", run.parent / "meanwhile.csv", "--run", run)
        assert labels(run) == before
    finally:
        store.close()
    tailor("run", "--run", run, "--rounds", 1)
    assert len(labels(run)) == 40


def _raised(*words):
    from runs import app
    from typer.testing import CliRunner

    raise CliRunner().invoke(app, [str(w) for w in words]).exception


@pytest.mark.parametrize("damage", ["garbage", "cut"])
def test_a_corrupt_store_is_left_as_it_is(run, damage):
    path = run / "run.db"
    whole = path.read_bytes()
    path.write_bytes(b"not a database " * 500 if damage == "garbage" else whole[: len(whole) // 2])
    before = path.read_bytes()
    for command in ("status", "run"):
        message = refused(command, "--run", run)
        assert "run.db" in message
        assert "left as it is" in message
    assert path.read_bytes() == before


BAD_EVENTS = {
    "unknown": ("dreamt", "{}", "is a 'dreamt', which this tailor does not know: upgrade it"),
    "unknown among several": (
        "several",
        '{"events": [["dreamt", {}]]}',
        "is a 'dreamt', which this tailor does not",
    ),
    "no JSON": ("told", '{"answers": [', "is damaged"),
    "a list": ("told", "[1, 2]", "is damaged"),
    "nothing in it": ("told", "{}", "can't be taken in"),
    "no such example": (
        "told",
        '{"answers": [[99999999, [0]]], "skipped": []}',
        "can't be taken in",
    ),
    "no list": ("asked", '{"round": 0}', "can't be taken in"),
    "classes": ("classes", '{"classes": 7}', "is damaged"),
}


@pytest.mark.parametrize("kind", list(BAD_EVENTS))
def test_an_event_that_cant_be_understood_is_told_in_one_sentence(run, kind):
    name, body, expected = BAD_EVENTS[kind]
    append_raw(run / "run.db", name, body, b"\x01")
    for words in (("status",), ("export", run / "x.csv")):
        assert expected in refusal(*words, "--run", run)
    message = refused("run", "--run", run)
    assert expected in message
    assert message.count("\n") == 1


@pytest.mark.parametrize("first", ["{}", '{"settings": {"classes": ["a", "b"]}}'])
def test_a_store_that_does_not_begin_as_a_run_does(run, first):

    def change(event):
        return replace(event, body=json.loads(first)) if event.number == 1 else event

    rewrite(run / "run.db", change)
    assert "event 1 (opened) is" in refusal("status", "--run", run)
    assert "event 1 (opened) is" in refused("run", "--run", run)


def test_damaged_pages_are_told_in_one_sentence(run):
    """Each page in turn, gone or full of noise: the run opens, or says what is wrong."""
    path = run / "run.db"
    whole = path.read_bytes()
    noise = np.random.default_rng(0).bytes(4096)
    said = []
    for start in range(0, len(whole), 4096):
        for page in (bytes(4096), noise):
            for other in run.glob("run.db-*"):
                other.unlink()
            path.write_bytes(whole[:start] + page + whole[start + 4096 :])
            result = CliRunner().invoke(app, ["status", "--run", str(run)])
            assert result.exception is None or isinstance(result.exception, TailorError), (
                result.exception
            )
            said.append(str(result.exception))
    # A page may be one that reading does not need: the index of ids.
    assert sum("damaged" in text for text in said) > len(said) / 2
    path.write_bytes(whole[:4096] + noise * (len(whole) // 4096 - 1))
    message = refused("run", "--run", run)
    assert "is damaged; it was left as it is" in message


BAD_SETTINGS = {
    "a list": "[]",
    "a text": '"model"',
    "cut": "{",
    "empty": "{}",
    "format alone": '{"format": 1}',
    "classes": '{"format": 1, "model": "probe", "input": "x", "classes": 3}',
    "deep": "[" * 9999,
}


@pytest.mark.parametrize("kind", list(BAD_SETTINGS))
def test_a_damaged_model_is_told_in_one_sentence(run, kind):
    text = BAD_SETTINGS[kind]
    model = run.parent / "model"
    tailor("train", model, "--run", run)
    (model / "model.json").write_text(text)
    message = refusal("predict", model, "--run", run, "--out", run / "p.csv")
    assert str(model) in message
    assert "damaged" in message or "has format" in message
    if kind == "a list":
        refused("predict", model, "--run", run, "--out", run / "p.csv")
    assert not (run / "p.csv").exists()


@pytest.mark.parametrize("shape", ['"x"', "[-3]", "null", "[1.5]"])
def test_a_damaged_shape_of_a_model(run, shape):
    import json

    model = run.parent / "model"
    tailor("train", model, "--run", run)
    settings = json.loads((model / "model.json").read_text())
    (model / "model.json").write_text(json.dumps(settings | {"shape": json.loads(shape)}))
    assert "damaged: its shape is" in refusal(
        "predict", model, "--run", run, "--out", run / "p.csv"
    )


def test_a_tiny_file_that_claims_a_trillion_rows(tmp_path):
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (10**12, 8)}
        )
    message = refused("init", path, "--run", tmp_path / "run", "--classes", "a,b")
    assert (
        "claims an array of shape (1000000000000, 8) with 32000000000000 bytes, 0 follow it"
        in message
    )
    assert not (tmp_path / "run").exists()


def bound_by_permissions():
    """In a child, before it starts: root gives up the right to write where the permissions forbid
    it.
    """
    import ctypes

    if os.geteuid() == 0:
        drop, override = 24, 1  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
        ctypes.CDLL(None).prctl(drop, override, 0, 0, 0)


@pytest.mark.parametrize("lock", [True, False])
def test_a_read_only_folder_is_explained(run, lock):
    if not lock:
        (run / "run.db.lock").unlink()
    before = files(run)
    for path in (*run.iterdir(), run):
        path.chmod(0o555 if path.is_dir() else 0o444)
    tried = subprocess.run(
        ["touch", run / "x"], capture_output=True, preexec_fn=bound_by_permissions
    )
    if tried.returncode == 0:
        pytest.skip("this system lets root write to read-only folders, and root can't give that up")
    message = refused("run", "--run", run, preexec_fn=bound_by_permissions)
    assert "run.db" in message
    assert "writable" in message or "may be written" in message
    assert files(run) == before


# ---------------------------------------------------------------------- export, train, predict


def test_nothing_is_written_over(run):
    folder = run.parent / "full"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    for form in ("folders", "huggingface"):
        assert "is not empty: name a new folder" in refusal(
            "export", folder, "--run", run, "--format", form
        )
        assert "is a file" in refusal("export", folder / "mine.txt", "--run", run, "--format", form)
    assert "is not empty" in refusal("train", folder, "--run", run)
    assert "is a file" in refusal("train", folder / "mine.txt", "--run", run)
    assert [p.name for p in folder.iterdir()] == ["mine.txt"]
    assert (folder / "mine.txt").read_text() == "mine"


def test_formats_are_named(run):
    assert "did you mean 'folders'" in refusal(
        "export", run / "x", "--run", run, "--format", "folder"
    )
    assert "name a --format" in refusal("export", run / "x", "--run", run)


def test_folders_need_a_folder_of_images(tmp_path):
    run = begin_several(tmp_path)
    tailor("run", "--run", run, "--rounds", 1)
    assert "a folder of images only" in refusal(
        "export", tmp_path / "out", "--run", run, "--format", "folders"
    )
    assert not (tmp_path / "out").exists()


def test_training_without_answers(tmp_path):
    assert "nothing is labelled yet" in refusal(
        "train", tmp_path / "model", "--run", begin(tmp_path)
    )
    assert not (tmp_path / "model").exists()


def test_a_model_of_other_classes_is_refused(run):
    tailor("train", run.parent / "model", "--run", run)
    other = run.parent / "other"
    tailor(
        "init",
        run.parent / "pictures",
        "--run",
        other,
        "--classes",
        "cat,dog",
        "--backbone",
        "pixels(size=8)",
    )
    out = run.parent / "p.csv"
    message = refused("predict", run.parent / "model", "--run", other, "--out", out)
    assert "is multi-class for one, three, two, zero [0]" in message
    assert "this run is multi-class for cat, dog" in message
    (run.parent / "model" / "card.json").write_text("{")
    assert "is damaged" in refusal("predict", run.parent / "model", "--run", run, "--out", out)
    assert "no model in" in refusal("predict", run.parent / "nowhere", "--run", run, "--out", out)
    assert not out.exists()


def test_a_pool_without_labels_cannot_be_simulated(tmp_path):
    run = begin(tmp_path)
    path = run / "tailor.toml"
    path.write_text(path.read_text().replace('labels = "folder"', '# labels = "folder"'))
    message = refusal("run", "--run", run)
    assert "no known labels" in message
    assert "tailor ask" in message


def test_errors_are_of_the_package(run):
    """What the commands turn into status 2 are the package's own errors; the store's are among
    them.
    """
    assert issubclass(InputError, TailorError)
    assert issubclass(StoreError, TailorError)
    code = (
        "from tailor.cli import main; import sys; sys.argv = ['tailor', 'status', '--run', "
        "sys.argv[1]]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, run / "no"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
