"""Every command, on digits with one class each and with several; exports have a file of their
own.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter

import parts
import pytest
from PIL import Image
from runs import (
    BROKEN,
    NAMES,
    begin,
    begin_several,
    edit,
    labels,
    pictures,
    python_m,
    read_csv,
    state,
    tailor,
    truth,
    vectors,
    write_csv,
    write_jsonl,
)

from tailor import bandits, strategies
from tailor.cli.arms import describe
from tailor.pools import open_pool
from tailor.run import config

# ---------------------------------------------------------------------- init and run


def test_init_writes_what_it_found(tmp_path):
    pictures(tmp_path / "pictures", 20)
    said = tailor(
        "init",
        tmp_path / "pictures",
        "--run",
        tmp_path / "run",
        "--labels",
        "folder",
        "--budget",
        30,
        "--seed",
        5,
    )
    assert "20 examples, 4 classes (multi-class)" in said
    assert "tailor run --run" in said
    written = config.read(tmp_path / "run")
    assert sorted(written.values["task"]["classes"]) == sorted(NAMES.values())
    assert written.section("stop") == {"budget": 30}
    assert written.values["selection"]["seed"] == 5
    assert (tmp_path / "run" / written.values["pool"]["path"]).resolve() == (
        tmp_path / "pictures"
    ).resolve()


def test_init_takes_classes_by_name_and_lists_as_several_labels(tmp_path):
    pictures(tmp_path / "pictures", 20)
    said = tailor(
        "init",
        tmp_path / "pictures",
        "--run",
        tmp_path / "a",
        "--classes",
        "cat, dog",
        "--multi-label",
    )
    assert "tailor ask" in said
    assert config.read(tmp_path / "a").values["task"] == {
        "kind": "multi-label",
        "classes": ["cat", "dog"],
    }
    vectors(tmp_path / "v.parquet", 30)
    tailor("init", tmp_path / "v.parquet", "--run", tmp_path / "b", "--labels", "labels")
    assert config.read(tmp_path / "b").values["task"] == {
        "kind": "multi-label",
        "classes": ["even", "large", "round"],
    }


def test_the_pool_is_found_from_a_linked_folder(tmp_path):
    pictures(tmp_path / "pictures", 20)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "er")
    tailor("init", tmp_path / "pictures", "--run", tmp_path / "link" / "run", "--labels", "folder")
    path = config.read(tmp_path / "link" / "run").values["pool"]["path"]
    assert (tmp_path / "link" / "run" / path).samefile(tmp_path / "pictures")


def test_a_run_labels_what_was_planned(home):
    found = state(home / "run")
    assert (found["examples"], found["answered"], found["waiting"], found["round"]) == (
        150,
        60,
        0,
        2,
    )
    assert 3 <= found["holdout"] <= 25
    assert list(found["aside"]) == [BROKEN]
    rows = labels(home / "run")
    assert Counter(row[1] for row in rows) == {k: v for k, v in found["counts"].items() if v}
    assert all(row[0].startswith(f"{row[1]}/") for row in rows)
    several_rows = labels(home / "several")
    assert len(several_rows) == 60
    assert all(row[1] == str(truth(row[0])) for row in several_rows)


def test_a_second_run_goes_on(home, copy):
    before = labels(copy / "run")
    assert "all planned rounds are done" in tailor("run", "--run", copy / "run")
    assert labels(copy / "run") == before
    tailor("run", "--run", copy / "run", "--rounds", 1)
    after = labels(copy / "run")
    assert set(before) < set(after)
    assert len(after) == 80


def test_the_same_seed_gives_the_same_run(home, tmp_path):
    for begun, name in ((begin, "run"), (begin_several, "several")):
        run = begun(tmp_path)
        tailor("run", "--run", run, "--rounds", 2)  # in two steps
        tailor("run", "--run", run)
        assert labels(run) == labels(home / name)
    other = begin(tmp_path / "other", seed=1)
    tailor("run", "--run", other)
    assert labels(other) != labels(home / "run")


def test_a_run_stops_at_its_budget(tmp_path):
    run = begin(tmp_path, budget=33)
    assert "the budget of 33 labels is spent" in tailor("run", "--run", run)
    assert state(run)["answered"] == 33


def test_noise_gives_wrong_answers(tmp_path):
    run = begin(tmp_path)
    tailor("run", "--run", run, "--noise", "1.0", "--rounds", 1)
    rows = labels(run)
    assert len(rows) == 20
    assert not any(row[0].startswith(f"{row[1]}/") for row in rows)


# ---------------------------------------------------------------------- ask and tell


def test_status_before_anything_was_asked(tmp_path):
    run = begin(tmp_path)
    assert state(run)["answered"] == 0
    assert "0 labels" in tailor("status", "--run", run)


def test_ask_fill_tell_in_csv_and_jsonl(tmp_path):
    run = begin(tmp_path)
    assert "20 examples" in tailor("ask", "--run", run, "--out", tmp_path / "ask.csv")
    asked = read_csv(tmp_path / "ask.csv")
    assert {row["label"] for row in asked} == {""}
    assert {row["arm"] for row in asked} <= {"coverage start", "hold-out"}
    tailor(
        "ask", "--run", run, "--out", tmp_path / "again.csv", "-n", 5
    )  # not answered: the same ones again
    assert read_csv(tmp_path / "again.csv") == asked[:5]

    filled = [row | {"label": truth(row["id"])} for row in asked]
    filled[0] |= {"label": "", "skip": "x"}
    filled[1] |= {"label": ""}
    said = tailor("tell", write_csv(tmp_path / "filled.csv", filled), "--run", run, "--by", "Zoë")
    assert said == "18 answers, 1 skipped; 1 still waiting.\n"
    assert (state(run)["answered"], state(run)["skipped"], state(run)["waiting"]) == (18, 1, 1)
    tailor(
        "tell",
        write_jsonl(
            tmp_path / "last.jsonl", [{"id": asked[1]["id"], "label": truth(asked[1]["id"])}]
        ),
        "--run",
        run,
    )

    tailor("ask", "--run", run, "--out", tmp_path / "ask.jsonl")
    second = [json.loads(line) for line in (tmp_path / "ask.jsonl").read_text().splitlines()]
    assert len(second) == 20
    assert all(row["prediction"] in NAMES.values() and row["round"] == 1 for row in second)
    assert not {row["id"] for row in second} & {row["id"] for row in asked}
    tailor(
        "tell",
        write_jsonl(tmp_path / "b.jsonl", [row | {"label": truth(row["id"])} for row in second]),
        "--run",
        run,
    )
    rows = labels(run)
    assert len(rows) == 39
    assert {row[-3] for row in rows} == {"Zoë", "None"}
    assert asked[0]["id"] not in {row[0] for row in rows}


def test_an_answer_is_corrected_by_telling_again(copy):
    run = copy / "run"
    before = state(run)["counts"]
    one = next(row[0] for row in labels(run) if row[1] == "two")
    tailor(
        "tell",
        write_csv(copy / "fix.csv", [{"id": one, "label": "three"}]),
        "--run",
        run,
        "--by",
        "me",
    )
    after = state(run)["counts"]
    assert (after["two"], after["three"]) == (before["two"] - 1, before["three"] + 1)
    assert next(row[1] for row in labels(run) if row[0] == one) == "three"


def test_several_labels_are_asked_and_told(copy):
    run = copy / "several"
    tailor("ask", "--run", run, "--out", copy / "ask.csv", "-n", 6)
    asked = read_csv(copy / "ask.csv")
    assert len(asked) == 6
    allowed = {"even", "large", "round", "none"}
    assert all(set(row["prediction"].split("|")) - {""} <= allowed for row in asked)
    given = ["even|large", "round", "none", "-", "even | round", "large"]
    tailor(
        "tell",
        write_csv(copy / "t.csv", [r | {"label": g} for r, g in zip(asked, given)]),
        "--run",
        run,
    )
    found = {row[0]: row[1] for row in labels(run)}
    expected = [["even", "large"], ["round"], [], [], ["even", "round"], ["large"]]
    assert [found[row["id"]] for row in asked] == [str(e) for e in expected]
    tailor(
        "tell", write_jsonl(copy / "t.jsonl", [{"id": asked[0]["id"], "label": []}]), "--run", run
    )
    assert {row[0]: row[1] for row in labels(run)}[asked[0]["id"]] == "[]"


def test_what_was_not_asked_is_taken_as_outside_knowledge(copy):
    run = copy / "run"
    told = {row[0] for row in labels(run)}
    one = next(i for i in open_pool(copy / "pictures").ids if i not in told and i != BROKEN)
    tailor("tell", write_csv(copy / "t.csv", [{"id": one, "label": "one"}]), "--run", run)
    row = next(row for row in labels(run) if row[0] == one)
    assert row[1:4] == ("one", "told", "False")


# ---------------------------------------------------------------------- status


def test_status_shows_classes_arms_holdout_and_what_is_set_aside(home):
    said = python_m("status", "--run", home / "run").stdout
    for word in (
        "60 labels of 150 examples",
        "zero [0]",
        "Accuracy on the hold-out",
        "coverage start",
        "herding",
        f"set aside: {BROKEN}",
    ):
        assert word in said
    found = state(home / "run")
    assert (
        found["estimates"][-1]["lower"]
        <= found["estimates"][-1]["accuracy"]
        <= found["estimates"][-1]["upper"]
    )
    assert sum(arm["picks"] for arm in found["arms"].values()) == 60
    total = Counter()
    for arm in found["arms"].values():
        total.update(arm["labels"])
    assert dict(total) == found["counts"]


def test_a_class_called_like_a_column_is_counted(tmp_path):
    (tmp_path / "pictures").mkdir()
    pool = pictures(tmp_path / "pictures", 40)
    (pool / "one").rename(pool / "picks")
    run = begin(tmp_path)
    tailor("run", "--run", run, "--rounds", 1)
    found = state(run)
    assert sum(arm["labels"]["picks"] for arm in found["arms"].values()) == found["counts"]["picks"]
    assert sum(arm["picks"] for arm in found["arms"].values()) == 20


# ---------------------------------------------------------------------- what there is


def test_arms_are_listed_by_their_whole_names():
    said = tailor("arms")
    assert all(f" {name} " in said for name in (*strategies.registry, *bandits.registry))
    fixed = bandits.registry.find("fixed")
    galaxy = strategies.registry.find("galaxy")
    described = describe(fixed, bandits.registry.options("fixed"))
    assert described.endswith("arm=[/]")  # it has no default
    assert describe(galaxy, {}) == "GALAXY, one arm a class"


def test_an_idea_is_one_sentence():
    class Published:
        """As in Zhang et al. 2022, one arm
        a class. Its cost is small.

        More on it.
        """

    assert describe(Published, {}) == "As in Zhang et al. 2022, one arm a class"


# ---------------------------------------------------------------------- train and predict


def test_train_and_predict(home, tmp_path):
    said = tailor("train", tmp_path / "model", "--run", home / "run")
    assert "accuracy on the hold-out" in said
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    found = state(home / "run")
    assert card["trained_on"] == found["answered"] - found["holdout"]
    assert sum(card["labels_per_class"].values()) == card["trained_on"]
    assert card["holdout"]["examples"] == found["holdout"]
    assert sorted(card["classes"]) == sorted(NAMES.values())
    assert (tmp_path / "model" / "model.safetensors").stat().st_size > 100

    tailor("predict", tmp_path / "model", "--run", home / "run", "--out", tmp_path / "p.csv")
    rows = read_csv(tmp_path / "p.csv")
    assert len(rows) == 149
    for row in rows:
        probs = {name: float(row[f"p_{name}"]) for name in NAMES.values()}
        assert sum(probs.values()) == pytest.approx(1, abs=1e-4)
        assert row["prediction"] == max(probs, key=probs.get)
    assert sum(row["prediction"] == truth(row["id"]) for row in rows) > 0.8 * 149

    other = pictures(tmp_path / "others", 30)
    said = tailor(
        "predict",
        tmp_path / "model",
        "--run",
        home / "run",
        "--pool",
        other,
        "-o",
        tmp_path / "o.jsonl",
    )
    assert "29 predictions" in said
    assert "1 could not be read" in said
    others = {r["id"]: r for r in map(json.loads, (tmp_path / "o.jsonl").read_text().splitlines())}
    same = [row for row in rows if row["id"] in others]
    assert len(same) == 29
    assert all(others[row["id"]]["prediction"] == row["prediction"] for row in same)


@pytest.mark.parametrize(
    "model", ["finetune(network=small-cnn, epochs=1)", "probe(backbone=efficientnet-lite0)"]
)
def test_pictures_of_other_sizes_are_brought_to_the_size_that_the_model_knows(tmp_path, model):
    """Without a size in tailor.toml it is chosen by the run's own pictures, which are small."""
    if model.startswith("probe"):
        parts.need("EfficientNet-Lite0")
    run = tmp_path / "run"
    tailor(
        "init",
        pictures(tmp_path / "pictures"),
        "--run",
        run,
        "--labels",
        "folder",
        "--model",
        model,
    )
    edit(run, device="cpu")
    tailor("run", "--run", run, "--rounds", 1)
    tailor("train", tmp_path / "model", "--run", run)
    other = tmp_path / "other"
    other.mkdir()
    for number, size in enumerate([(20, 12), (8, 8), (90, 70), (1, 3)]):
        Image.new("RGB", size, (200, 0, 0)).save(other / f"{number}.png")
    out = tmp_path / "p.csv"
    tailor("predict", tmp_path / "model", "--run", run, "--pool", other, "--out", out)
    assert [row["id"] for row in read_csv(out)] == ["0.png", "1.png", "2.png", "3.png"]


def test_a_model_is_written_over_only_when_forced(home, tmp_path):
    from tailor.errors import InputError

    model = tmp_path / "model"
    run = home / "run"
    tailor("train", model, "--run", run)
    (model / "notes.txt").write_text("mine")
    (model / "model.json").write_text("{}")
    with pytest.raises(
        InputError, match="holds a model already: name a new folder, or write over it with --force"
    ):
        tailor("train", model, "--run", run)
    assert (model / "model.json").read_text() == "{}"
    tailor("train", model, "--run", run, "--force")
    tailor("predict", model, "--run", run, "--out", tmp_path / "p.csv")
    assert (model / "notes.txt").read_text() == "mine"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty: name a new folder"):
        tailor("train", tmp_path / "full", "--run", run, "--force")


def test_train_and_predict_several(home, tmp_path):
    tailor("train", tmp_path / "model", "--run", home / "several")
    tailor("predict", tmp_path / "model", "--run", home / "several", "--out", tmp_path / "p.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert len(rows) == 150
    for row in rows:
        assert row["prediction"] == [
            name for name in ("even", "large", "round") if row[f"p_{name}"] > 0.5
        ]
    hits = sum(
        (name in row["prediction"]) == (name in truth(row["id"]))
        for row in rows
        for name in ("even", "large", "round")
    )
    assert hits > 0.75 * 450


def test_a_new_file_joins_and_can_be_asked(copy):
    run = copy / "run"
    shutil.copy(
        copy / "pictures" / labels(copy / "run")[0][0], copy / "pictures" / "one" / "0000-new.png"
    )
    edit(run, batch=100)
    tailor("run", "--run", run, "--rounds", 1)
    assert state(run)["examples"] == 151
    assert "one/0000-new.png" in {row[0] for row in labels(run)}


def test_the_real_command(tmp_path):
    """From nothing to a table in processes of their own, as a user types it; no progress bar
    without a terminal.
    """
    pool = pictures(tmp_path / "pictures", 40)
    words = (
        "--labels",
        "folder",
        "--model",
        "probe(steps=40)",
        "--backbone",
        "pixels(size=8)",
        "--batch",
        10,
    )
    begun = python_m("init", pool, *words, cwd=tmp_path)
    assert begun.returncode == 0, begun.stderr
    ran = python_m("run", "--rounds", 2, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert [line.split(":")[0] for line in ran.stderr.splitlines()] == ["round 0", "round 1"]
    assert "20 labels of 40 examples" in ran.stdout
    exported = python_m("export", "labels.csv", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    assert len(read_csv(tmp_path / "labels.csv")) == 20
