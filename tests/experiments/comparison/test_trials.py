"""Trials: paired, measured rightly, and going on wherever they were interrupted."""

from __future__ import annotations

import pickle
from dataclasses import replace
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
from digits_experiment import SMALL
from sklearn.metrics import average_precision_score, balanced_accuracy_score

from tailor import __version__
from tailor.errors import InputError
from tailor.storage import SqliteStore
from tailor.storage.base import StoreBusy
from tailor_experiments.comparison import provenance
from tailor_experiments.comparison.data import load_data
from tailor_experiments.comparison.experiment import Contender
from tailor_experiments.comparison.paper import paper_experiment
from tailor_experiments.comparison.provenance import model_text
from tailor_experiments.comparison.rows import ROWS, RowFile, essence, read_rows
from tailor_experiments.comparison.run import prepare
from tailor_experiments.comparison.trial import Trial, trial_folder
from tailor_experiments.comparison.trial_columns import off_uniform
from tailor_experiments.datasets import PAPER


class Killed(BaseException):
    pass


def test_rows(whole):
    _, rows = whole
    assert len(rows) == 2 * 2 * 4
    for row in rows:
        assert row["labels"] == 15 * (row["round"] + 1) == row["positives"]
        assert sum(row["pulls"].values()) == (15 if row["round"] else 0)
        assert row["top_pulls"] == max(row["pulls"].values(), default=0)
        assert 0 <= row["off_uniform"] < 1
        assert row["off_uniform"] == 0 or row["round"]
        assert row["rarest"] <= row["rarest_class_labels"]
        assert 0 <= row["rarest_accuracy"] <= 1
        assert 0 <= row["test_score"] <= 1
        assert set(row["seconds"]) == {"train", "predict", "prepare", "select", "test"}
        assert row["seconds"]["train"] > 0
        assert row["peak_mib"] > 0
        assert {"tailor", "torch", "python"} <= set(row["versions"])
        assert not row["resumed"]
    assert len({row["config"] for row in rows}) == 4


def test_the_same_seed_is_paired(whole):
    """The same first batch and initial weights: the first rows of a seed agree, those of two seeds
    do not.
    """
    _, rows = whole
    first = {
        (r["contender"], r["seed"]): (r["score"], r["test_score"], r["rarest"])
        for r in rows
        if r["round"] == 0
    }
    assert first["TAILOR", 0] == first["random", 0] != first["TAILOR", 1] == first["random", 1]


@pytest.mark.parametrize("name", ["digits", "digits-multilabel"])
def test_metrics_against_scikit_learn(name, tmp_path):
    few = replace(SMALL, data={"name": name, "options": {}}, rounds=1)
    full = prepare(few, tmp_path)
    trial = Trial(full, full.contenders[0], 0, tmp_path)
    last = trial.run()[-1]
    data = load_data(full.data)
    for labels, model, prefix in (
        (data.labels, trial.model, ""),
        (data.test_labels, trial.test_model, "test_"),
    ):
        probs = model.predict(np.arange(len(labels))).probs
        rarest = data.labels.sum(0).argmin()
        if name == "digits":
            expected = balanced_accuracy_score(labels.argmax(1), probs.argmax(1))
            own = labels[:, rarest] == 1
            of_rarest = (probs[own].argmax(1) == rarest).mean()
        else:
            expected = average_precision_score(labels, probs, average="macro")
            of_rarest = average_precision_score(labels[:, rarest], probs[:, rarest])
        assert last[f"{prefix}score"] == pytest.approx(expected)
        assert last[f"{prefix}rarest_accuracy"] == pytest.approx(of_rarest)


def test_a_kill_after_any_write_changes_nothing(whole, tmp_path, monkeypatch):
    """Ended after each write to the store in turn, and taken up again: the same rows, none twice,
    none missing.
    """
    _, rows = whole
    expected = essence([r for r in rows if r["contender"] == "TAILOR" and r["seed"] == 0])
    full = prepare(SMALL, tmp_path)
    append = SqliteStore.append
    writes = 0
    points = 0

    def fail_after(limit):
        def write(self, *args):
            nonlocal writes
            number = append(self, *args)
            writes += 1
            if writes == limit:
                raise Killed
            return number

        return write

    while True:
        points = points + 1
        writes = 0
        contender = replace(full.contenders[0], label=f"TAILOR {points}")
        monkeypatch.setattr(SqliteStore, "append", fail_after(points))
        try:
            Trial(full, contender, 0, tmp_path).run()
            break
        except Killed:
            pass
        monkeypatch.setattr(SqliteStore, "append", append)
        again = Trial(full, contender, 0, tmp_path).run()
        stripped = [{**r, "contender": "TAILOR", "config": expected[0]["config"]} for r in again]
        assert essence(stripped) == expected, f"killed after write {points}"
    assert points > 12


def test_a_kill_around_a_row_changes_nothing(whole, tmp_path, monkeypatch):
    """Ended before, in the middle of and after the writing of a row."""
    _, rows = whole
    expected = essence([r for r in rows if r["contender"] == "TAILOR" and r["seed"] == 0])
    full = prepare(SMALL, tmp_path)
    write = RowFile.append

    def fail(self, row):
        if row["round"] == number:
            if moment == "after":
                write(self, row)
            elif moment == "within":
                with self.path.open("a") as file:
                    file.write('{"round": 1, "cut o')
            raise Killed
        write(self, row)

    for number in (1, 3):  # one in the middle, and the last
        for moment in ("before", "within", "after"):
            contender = replace(full.contenders[0], label=f"TAILOR {number} {moment}")
            monkeypatch.setattr(RowFile, "append", fail)
            with pytest.raises(Killed):
                Trial(full, contender, 0, tmp_path).run()
            monkeypatch.setattr(RowFile, "append", write)
            again = Trial(full, contender, 0, tmp_path)
            found = again.run()
            assert found == read_rows(again.folder / ROWS)
            stripped = [
                {**r, "contender": "TAILOR", "config": expected[0]["config"]} for r in found
            ]
            assert essence(stripped) == expected, (number, moment)


def test_another_configuration_is_refused(whole):
    out, _ = whole
    full = replace(SMALL, batch=16).complete("multi-class")
    with pytest.raises(InputError, match=r"another configuration \(batch differ\)"):
        Trial(full, full.contenders[0], 0, out)


def test_a_damaged_configuration_is_named(whole, tmp_path):
    full = prepare(SMALL, tmp_path)
    folder = trial_folder(tmp_path, full.contenders[0], 0)
    folder.mkdir(parents=True)
    (folder / "trial.json").write_text('{"hash')
    with pytest.raises(InputError, match=r"trial.json is damaged.*delete the folder .*tailor-0"):
        Trial(full, full.contenders[0], 0, tmp_path)


def test_a_trial_that_runs_elsewhere_is_left_alone(tmp_path):
    """Its rows too: half a line may be one that is being written."""
    full = prepare(SMALL, tmp_path)
    trial = Trial(full, full.contenders[0], 0, tmp_path)
    trial.rows.path.write_text('{"round": 0, "being wri')
    with pytest.raises(StoreBusy, match="is in use by process"):
        Trial(full, full.contenders[0], 0, tmp_path)
    trial.store.close()
    assert trial.rows.path.read_text() == '{"round": 0, "being wri'


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"name": "probe", "device": "cpu"}, "probe"),
        (
            {"name": "finetune(lr=0.01)", "network": "small-cnn"},
            "finetune(lr=0.01, network=small-cnn, epochs=10)",
        ),
        (
            {"name": "finetune", "epochs": 3, "weights": "a/b.pt"},
            "finetune(epochs=3, weights=b.pt)",
        ),
        ({"name": "simulated(start=0.5)"}, "simulated(start=0.5)"),
    ],
)
def test_a_row_says_which_model_it_was(given, text):
    assert model_text(given) == text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": 100}, "1515 labels, more than the pool's 1348"),
        ({"contenders": (Contender("x", "tailer"),)}, "contender 'x': unknown selector 'tailer'"),
        (
            {"contenders": (Contender("x", "tailor", ("margins",)),)},
            "contender 'x': unknown arm family",
        ),
        (
            {"data": {"name": "digits", "options": {"class": 3}}},
            "unknown option of dataset 'digits'",
        ),
        ({"data": {"name": "cifar10"}}, "needs path"),
        ({"data": {"name": "cifar11", "path": "x"}}, "unknown dataset 'cifar11'"),
        ({"data": {"name": "digitz"}}, "did you mean 'digits'"),
    ],
)
def test_wrong_experiments_are_refused_before_anything_runs(changes, message, tmp_path):
    with pytest.raises(InputError, match=message):
        prepare(replace(SMALL, **changes), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_any_pool_with_labels(tmp_path):
    data = load_data({"name": "digits"})
    arrays = {
        "x": np.stack(data.pool.read(range(300))),
        "labels": data.labels[:300].argmax(1).astype(str),
    }
    np.savez(tmp_path / "pool.npz", **arrays)
    found = load_data({"path": str(tmp_path / "pool.npz"), "test": str(tmp_path / "pool.npz")})
    assert found.task.classes == ("0", "1", "2", "3")
    assert (found.labels == data.labels[:300]).all()
    np.save(tmp_path / "bare.npy", arrays["x"])
    with pytest.raises(InputError, match="no known labels"):
        load_data({"path": str(tmp_path / "bare.npy")})


@pytest.mark.filterwarnings("ignore::tailor.models.base.Notice")
def test_a_setting_of_the_paper_on_files_in_cifars_format(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for name in [*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]:
        data = rng.integers(0, 256, (20, 3072), np.uint8)
        batch = {b"data": data, b"labels": rng.permutation(np.arange(20) % 10).tolist()}
        (tmp_path / name).write_bytes(pickle.dumps(batch, 2))
    monkeypatch.setitem(
        PAPER, "cifar10-2", replace(PAPER["cifar10-2"], batch=10, rounds=1, epochs=1)
    )
    found = paper_experiment("cifar10-2", str(tmp_path), trials=1, device="cpu", weights="scratch")
    full = prepare(found, tmp_path / "out")
    rows = Trial(full, full.contenders[0], 0, tmp_path / "out").run()
    assert [(r["labels"], r["data"], r["metric"]) for r in rows] == [
        (10, "cifar10", "balanced accuracy"),
        (20, "cifar10", "balanced accuracy"),
    ]
    assert all(0 <= r["test_score"] <= 1 for r in rows)


def test_a_row_names_this_version_also_where_it_is_not_installed(monkeypatch):
    def unknown(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr(provenance, "version", unknown)
    provenance.versions.cache_clear()
    found = provenance.versions()
    provenance.versions.cache_clear()
    assert found["tailor"] == __version__


def test_how_far_chances_are_from_uniform():
    assert off_uniform(None) == 0
    assert off_uniform(np.array([0.1, 0.3, 0.6])) == pytest.approx(0.6 - 1 / 3)
    assert off_uniform(np.array([0.05, 0.5, 0.45])) == pytest.approx(1 / 3 - 0.05)
