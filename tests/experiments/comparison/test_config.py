"""The TOML of an experiment: read whole, and errors name the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailor.errors import InputError
from tailor_experiments.comparison.config import read
from tailor_experiments.comparison.experiment import (
    Contender,
    Experiment,
    config_hash,
    default_contenders,
)
from tailor_experiments.comparison.paper import paper_experiment
from tailor_experiments.comparison.run import prepare
from tailor_experiments.comparison.trial import Trial


def test_everything_is_read(toml):
    found = read(toml)
    assert (found.name, found.batch, found.rounds, found.trials, found.seed) == (
        "small digits",
        15,
        3,
        2,
        5,
    )
    assert found.data == {"name": "digits", "options": {"classes": 3}}
    assert found.model == {"name": "probe(steps=30)", "device": "cpu"}
    full = found.complete("multi-class")
    assert full.contenders[0] == Contender(
        "TAILOR", "tailor", ("galaxy", "confidence", "badge"), "diversity"
    )
    assert full.contenders[2].families == ("confidence", "margin")
    assert full.contenders[2].folder == "albl-few"


OPTIONS = """
[[contender]]
label = "stationary, wide"
selector = "tailor(forget=1.0)"
families = ["wide"]
reward = "diversity(power=0.5)"

[[contender]]
label = "told one by one"
selector = "fixed(arm=galaxy)"
families = ["galaxy(pending=revealed)", "submodular(eta=0.5, queries=3)"]
reveal = true
"""


def test_contenders_have_options_of_their_own(toml, tmp_path):
    toml.write_text(toml.read_text() + OPTIONS)
    full = prepare(read(toml), tmp_path)
    wide, told = full.contenders[3:]
    assert wide.families == ("galaxy", "confidence", "badge", "most-likely-positive", "submodular")
    assert (wide.selector, wide.reward, wide.reveal) == (
        "tailor(forget=1.0)",
        "diversity(power=0.5)",
        False,
    )
    assert told.reveal
    trial = Trial(full, told, 5, tmp_path)
    last = trial.run()[-1]
    assert {arm.partition("[")[0] for arm in last["pulls"]} == {"galaxy"}
    learner = trial.session.run_state.learner
    assert learner.arms[0].strategy.pending == "revealed"
    assert (learner.arms[-1].strategy.eta, learner.arms[-1].strategy.queries) == (0.5, 3)
    learner = Trial(full, wide, 5, tmp_path).session.run_state.learner
    assert learner.selector.posterior.forget == 1.0
    assert learner.reward.power == 0.5


def test_what_is_asked_for_takes_the_place_of_the_files(toml):
    found = read(toml)
    changed = found.changed(device="cuda", batch=7, rounds=None, trials=1)
    assert (changed.batch, changed.rounds, changed.trials, changed.model["device"]) == (
        7,
        3,
        1,
        "cuda",
    )
    assert changed.data == found.data
    pool = Experiment("a", {"path": "here"})
    assert pool.changed("there").data == {"path": "there"}
    assert [c.label for c in found.changed(only=["random"]).contenders] == ["random"]
    for wrong, message in (
        (lambda: found.changed("there"), "dataset 'digits' has no path"),
        (
            lambda: two_files("train", "test").changed(__file__),
            "is one file: .* folder that holds train and test",
        ),
        (
            lambda: found.changed(only=["rondom"]),
            "unknown contender 'rondom': did you mean 'random'",
        ),
        (lambda: found.changed(batch=0), "batch is 0"),
    ):
        with pytest.raises(InputError, match=message):
            wrong()


def two_files(path, test):
    return Experiment("a", {"path": path, "test": test, "options": {}})


@pytest.mark.parametrize(
    ("path", "test", "moved"),
    [
        (
            "data/scene/train.parquet",
            "data/scene/test.parquet",
            ("there/train.parquet", "there/test.parquet"),
        ),
        ("a/../data/x/pool", "data/y/test.csv", ("there/x/pool", "there/y/test.csv")),
    ],
)
def test_a_pool_and_its_test_set_move_together(path, test, moved):
    """Data elsewhere lies there as it lay here, below the folder that held both."""
    found = two_files(path, test).changed("there")
    assert found.data == {"path": moved[0], "test": moved[1], "options": {}}


def test_every_experiment_of_the_project_takes_its_data_from_elsewhere():
    files = sorted((Path(__file__).parents[3] / "benchmarks" / "experiments").glob("*.toml"))
    assert files
    for file in files:
        data = read(file).changed("there").data
        assert Path(data["path"]).parts[0] == Path(data.get("test", "there")).parts[0] == "there"


def test_the_default_list():
    labels = [c.label for c in default_contenders(["galaxy", "random"])]
    assert labels == [
        "TAILOR",
        "random",
        "galaxy alone",
        "random meta",
        "ALBL",
        "COMB",
        "DEAL",
        "linear Thompson",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "rounds = 3",
            "round = 3",
            r"line 5: unknown key in \[experiment\] 'round': did you mean 'rounds'",
        ),
        ("rounds = 3", "rounds = 0", "line 5: rounds is 0: at least 1"),
        ("rounds = 3", "rounds = 'x'", "line 5: rounds = 'x' must be int"),
        ("[data]", "[date]", "line 9: unknown section 'date': did you mean 'data'"),
        ('name = "digits"', "", r"\[data\] needs name or path"),
        ('label = "random"', 'label = "TAILOR"', "two contenders have the label 'TAILOR'"),
        ('label = "random"', 'label = "tailor!"', "two contenders have the folder 'tailor'"),
        ('selector = "random-meta"', "selector = 3", "line 22: selector = 3 must be str"),
        (
            'families = ["random"]',
            "families = [3]",
            "line 23: families = .3. must be list of texts",
        ),
        ('label = "ALBL, few"', "", r"line 25: \[contender\] needs label"),
        ('device = "cpu"', 'devices = "cpu"', r"line 15: unknown key in \[model\] 'devices'"),
        (
            'label = "random"',
            'label = "random"\nreveal = 1',
            "line 22: reveal = 1 must be true or false",
        ),
        ("rounds = 3", "rounds = true", "line 5: rounds = True must be int"),
        ("[data]", "[data", "line 9"),
    ],
)
def test_errors_name_the_line(toml, old, new, message):
    text = toml.read_text()
    assert old in text
    toml.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as caught:
        read(toml)
    assert str(toml) in str(caught.value)


def test_the_hash_is_of_what_rows_depend_on():
    one = Experiment("a", {"name": "cifar10", "path": "/here/cifar"})
    two = Experiment("a", {"name": "cifar10", "path": "/there/cifar"}, trials=9)
    other = Experiment("a", one.data, batch=7)

    def hash_of(experiment, seed=0):
        return config_hash(experiment.trial_config(Contender("x"), seed))

    assert hash_of(one) == hash_of(two)
    assert hash_of(one) != hash_of(one, seed=1)
    assert hash_of(one) != hash_of(other)


def test_the_papers_settings():
    found = paper_experiment("cifar10-2", "x")
    assert (found.batch, found.rounds, found.trials) == (2000, 20, 4)
    assert found.model["epochs"] == 10
    assert found.model["weights"] == "imagenet"
    assert found.model["name"] == "finetune(batch=50, lr=0.0001, weight_decay=5e-05)"
    labels = [c.label for c in found.contenders]
    assert labels == [
        "TAILOR",
        "random",
        "galaxy alone",
        "confidence alone",
        "badge alone",
        "random meta",
        "ALBL",
    ]
    imagenet = paper_experiment("imagenet", "x", wide=True)
    assert "weights" not in imagenet.model
    assert "batch=200" in imagenet.model["name"]
    assert imagenet.contenders[-1].families[-2:] == ("most-likely-positive", "submodular")
    search = paper_experiment("voc", "x", search=True, trials=2, weights="scratch")
    assert (search.reward, search.trials, "weights" in search.model) == ("search", 2, False)
    assert "weak-supervision" in search.contenders[0].families
    with pytest.raises(InputError, match="did you mean 'cifar10-2'"):
        paper_experiment("cifar10", "x")
